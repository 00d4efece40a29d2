#include "data/public/corpus.h"

#include <nlohmann/json.hpp>

#include "data/scratch.h"
#include "data/text_reader.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

/// Writes requests as the reference does: the doc first, then a context that repeats other
/// documents.
void write_requests(const ScratchFolder& folder, const std::string& below,
                    const std::vector<std::string>& docs) {
  std::string lines;
  for (const std::string& doc : docs) {
    for (int choice = 0; choice < 2; ++choice) {
      lines +=
          R"({"request_type": "loglikelihood", "doc": )" + doc +
          R"(, "request": {"context": "Question: a shot that every request repeats?\nAnswer: yes\n\n", "continuation": " x"}})"
          "\n";
    }
  }
  const auto path = folder / ("oe_eval_tasks/" + below);
  std::filesystem::create_directories(path);
  // The content decides that this is plain text; only the name ends in .gz, which would promise
  // gzip.
  folder.write("oe_eval_tasks/" + below + "/requests.jsonl", lines);
  const std::string command = "gzip -n " + (path / "requests.jsonl").string();
  REQUIRE(std::system(command.c_str()) == 0);
}

std::string question(const std::string& text, const std::string& right, const std::string& wrong) {
  return Json{
      {"query", "Question: " + text + "\nAnswer:"}, {"choices", {wrong, right}}, {"gold", 1}}
      .dump();
}

std::string passage(const std::string& text, const std::string& asked) {
  return Json{{"query", text + "\nQuestion: " + asked + "\nAnswer:"},
              {"choices", {"yes", "no"}},
              {"gold", 0}}
      .dump();
}

struct Corpus {
  CorpusReport report;
  std::vector<std::string> texts;
};

Corpus corpus_of(const ScratchFolder& folder) {
  Corpus corpus;
  corpus.report = make_corpus(folder.path(), folder.path(), folder / "corpus.jsonl");
  LineReader reader(folder / "corpus.jsonl");
  for (Line line; reader.next(line);)
    corpus.texts.push_back(parse_document(line.bytes).text.value());
  return corpus;
}

const std::string kLong =
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

}  // namespace

TEST_CASE("each training document comes once, without the examples of its context", "[data]") {
  const ScratchFolder folder;
  write_requests(folder, "arc/train_rc_5shot",
                 {question("what is up?", "the sky", "a cat"), question("who?", "me", "you")});
  write_requests(
      folder, "boolq/train_rc_5shot",
      {passage("A passage -- of text.", "is it?"), passage("A passage -- of text.", "was it?")});
  write_requests(
      folder, "winogrande/train_rc_5shot",
      {R"({"sentence": "It was late because _ slept.", "option1": "Ann", "option2": "Bob", "answer": "2"})"});
  write_requests(folder, "arc/val_rc_5shot", {question("something else?", "yes", "no")});
  const Corpus corpus = corpus_of(folder);
  CHECK(corpus.texts == std::vector<std::string>{
                            "Question: what is up?\nAnswer: the sky", "Question: who?\nAnswer: me",
                            "A passage -- of text.", "It was late because Bob slept."});
  CHECK(corpus.report.sources[1].repeated == 1);
  CHECK(corpus.report.evaluation_documents == 1);
}

TEST_CASE("text of evaluation records is dropped: passages, questions, long runs of words",
          "[data]") {
  const ScratchFolder folder;
  write_requests(folder, "boolq/train_rc_5shot",
                 {passage("A shared passage.", "is it?"), passage("Another one.", "is it?")});
  write_requests(folder, "arc/train_rc_5shot",
                 {question("Shared question?", "right", "wrong"),
                  question("Before " + kLong + " after", "x", "y"), question("Kept?", "x", "y")});
  write_requests(folder, "boolq/rc_0shot", {passage("A shared   PASSAGE", "other?")});
  write_requests(
      folder, "arc/test_rc_5shot",
      {question("shared question", "another", "answer"), question("Here: " + kLong, "p", "q")});
  const Corpus corpus = corpus_of(folder);
  CHECK(corpus.texts == std::vector<std::string>{"Question: Kept?\nAnswer: x", "Another one."});
  CHECK((corpus.report.sources[0].evaluation == 2 && corpus.report.sources[1].evaluation == 1));
}

TEST_CASE("the corpus is the same bytes each time", "[data]") {
  const ScratchFolder folder;
  write_requests(folder, "arc/train_rc_5shot", {question("what is up?", "the sky", "a cat")});
  write_requests(folder, "arc/rc_0shot", {question("else?", "a", "b")});
  make_corpus(folder.path(), folder.path(), folder / "a.jsonl.gz");
  make_corpus(folder.path(), folder.path(), folder / "b.jsonl.gz");
  CHECK(olmo::sha256_file(folder / "a.jsonl.gz") == olmo::sha256_file(folder / "b.jsonl.gz"));
  LineReader reader(folder / "a.jsonl.gz");
  Line line;
  REQUIRE(reader.next(line));
  CHECK(Json::parse(line.bytes) == Json{{"id", "arc-train-0"},
                                        {"text", "Question: what is up?\nAnswer: the sky"},
                                        {"source", "arc"}});
}

TEST_CASE("a folder without records points to data fetch", "[data]") {
  const ScratchFolder folder;
  const auto error =
      thrown_by([&] { make_corpus(folder.path(), folder.path(), folder / "x.jsonl"); });
  REQUIRE(error);
  CHECK((error->kind == olmo::ErrorKind::kInput && error->says("data fetch")));
}
