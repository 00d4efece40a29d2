#include "data/documents/dedup.h"

#include <csignal>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "data/documents/json_lines.h"
#include "data/scratch.h"
#include "support/catch.h"
#include "support/forked.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::lines_of;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

std::string document(const std::string& id, const std::string& text, const Json& more = {}) {
  Json line = {{"id", id}, {"text", text}};
  if (more.is_object()) line.update(more);
  return line.dump() + "\n";
}

std::vector<std::string> ids_of(const std::filesystem::path& path) {
  std::vector<std::string> ids;
  for (const Json& line : lines_of(path)) ids.push_back(line.at("id"));
  return ids;
}

/// Documents in a file, and what dedup() makes of them.
struct Scene {
  ScratchFolder folder;

  DedupOptions options(const std::string& documents) const {
    DedupOptions options;
    std::filesystem::create_directories(folder / "documents");
    options.inputs = {folder.write("documents/a.jsonl", documents)};
    options.output = folder / "out.jsonl";
    return options;
  }
  [[nodiscard]] std::vector<std::string> remaining() const { return ids_of(folder / "out.jsonl"); }
};

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("of documents with one text the first stays, its line as it was", "[data]") {
  const Scene scene;
  const std::string first = "{\"text\":\"same\",  \"id\": \"a\", \"é\": 1.50}";
  auto options = scene.options(first + "\n" + document("b", "other") + document("c", "same") +
                               document("d", "same "));
  const DedupReport report = dedup(options);
  CHECK(scene.remaining() == Ids{"a", "b", "d"});
  LineReader reader(options.output);
  Line line;
  REQUIRE(reader.next(line));
  CHECK(line.bytes == first);
  REQUIRE(report.sources.size() == 1);
  CHECK((report.sources[0].documents == 4 && report.sources[0].duplicates == 1));
  CHECK((report.text_bytes == 18 && report.duplicate_bytes == 4));
}

TEST_CASE("what is found is what Dolma's deduper finds", "[data]") {
  const auto golden = std::filesystem::path(OLMO_TEST_DATA) / "data/dolma";
  const Json expected = olmo::read_json_file(golden / "duplicates.json");
  const ScratchFolder folder;
  std::filesystem::copy(golden / "documents", folder / "documents");
  for (const auto& [by, duplicates] : expected.items()) {
    INFO(by);
    DedupOptions options;
    options.inputs = {folder / "documents"};
    options.by = by == "document"    ? DedupBy::kDocument
                 : by == "paragraph" ? DedupBy::kParagraph
                                     : DedupBy::kField;
    options.field = by;
    options.attributes = "dup";
    options.overwrite = true;
    Json found = Json::array();
    for (const auto& output : dedup(options).outputs) {
      for (const Json& line : lines_of(output)) {
        for (const Json& span : line.at("attributes").at("dup"))
          found.push_back(by == "paragraph" ? Json{line.at("id"), span.at(0)} : line.at("id"));
      }
    }
    CHECK(found == duplicates);
  }
}

TEST_CASE("texts of white space alone equal none", "[data]") {
  const Scene scene;
  dedup(scene.options(document("a", "") + document("b", "") + document("c", " \n") +
                      document("d", " \n")));
  CHECK(scene.remaining() == Ids{"a", "b", "c", "d"});
}

TEST_CASE("paragraphs that were there before are cut out with their newline", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "one\ntwo\n\ntwo") + document("b", "é\none\n\ntwo\n") +
                               document("c", "one\n\ntwo") + document("d", "\n\n"));
  options.by = DedupBy::kParagraph;
  const DedupReport report = dedup(options);
  const auto lines = lines_of(options.output);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == Json{{"id", "a"}, {"text", "one\ntwo\n\n"}});
  CHECK(lines[1] == Json{{"id", "b"}, {"text", "é\n\n"}});
  CHECK(lines[2]["id"] == "d");
  CHECK((report.sources[0].paragraphs == 8 && report.sources[0].duplicate_paragraphs == 5 &&
         report.sources[0].duplicates == 1));
}

TEST_CASE("a field decides, wherever it lies; documents without it stay", "[data]") {
  const Scene scene;
  const auto with_url = [](const Json& url) { return Json{{"metadata", {{"url", url}}}}; };
  auto options =
      scene.options(document("a", "1", with_url("x")) + document("b", "1", with_url("y")) +
                    document("c", "2", with_url("x")) + document("d", "3") + document("e", "4") +
                    document("f", "5", with_url(7)) + document("g", "6", with_url(7)) +
                    document("h", "7", with_url("7")) + document("i", "8", with_url(nullptr)));
  options.by = DedupBy::kField;
  options.field = "metadata.url";
  const DedupReport report = dedup(options);
  CHECK(scene.remaining() == Ids{"a", "b", "d", "e", "f", "h", "i"});
  CHECK(report.sources[0].without_field == 3);
}

TEST_CASE("a field that no document has is told, since it is most likely misspelt", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "1") + document("b", "1"));
  options.by = DedupBy::kField;
  options.field = "documents";
  const auto error = thrown_by([&] { dedup(options); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("`documents`")));
  CHECK_FALSE(std::filesystem::exists(options.output));
}

TEST_CASE("against other documents, only what they have is found", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "x") + document("b", "y") + document("c", "y") + "\n");
  options.against = {scene.folder.write("ref.jsonl", document("r", "x") + document("s", "z"))};
  CHECK(dedup(options).compared_with == 2);
  CHECK(scene.remaining() == Ids{"b", "c"});
}

TEST_CASE("by words a text is found that shares 13 in a row with another", "[data]") {
  const Scene scene;
  const std::string run = "1 2 3 4 5 6 7 8 9 10 11 12 13";
  auto options =
      scene.options(document("a", "before " + run + " behind") +
                    document("b", "1 2 3 4 5 6 7 8 9 10 11 12 x") + document("c", "short, TEXT"));
  options.by = DedupBy::kWords;
  options.against = {scene.folder.write(
      "ref.jsonl", document("r", "0 " + run + " 14") + document("s", "Short text!"))};
  dedup(options);
  CHECK(scene.remaining() == Ids{"b"});
}

TEST_CASE("by words, texts that were added before count, too", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "Yes, no!") + document("b", "yes"));
  options.by = DedupBy::kWords;
  options.words.add("yes no");
  options.words_texts = 1;
  CHECK(dedup(options).compared_with == 1);
  CHECK(scene.remaining() == Ids{"b"});
}

TEST_CASE("attributes have a line for each document, with the spans that were found", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "é\ntwo\n") + "\nbad\n" + document("b", "x\né\ntwo"));
  options.output.clear();
  options.attributes = "dup";
  options.by = DedupBy::kParagraph;
  options.on_bad_line = BadLinePolicy::kSkip;
  const DedupReport report = dedup(options);
  const auto path = scene.folder / "attributes/dup/a.jsonl";
  CHECK(report.outputs == std::vector<std::filesystem::path>{path});
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == Json::parse(R"({"id": "a", "attributes": {"dup": []}})"));
  CHECK(lines[1] == Json::parse(R"({"id": null, "attributes": {}})"));
  CHECK(lines[2] == Json::parse(R"({"id": "b", "attributes": {"dup": [[2,4,1.0],[4,7,1.0]]}})"));
  CHECK(report.bad_lines.count() == 1);
}

TEST_CASE("every input has its attributes, those without documents, too", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "x"));
  options.inputs.push_back(scene.folder.write("documents/b.jsonl", ""));
  options.inputs.push_back(scene.folder.write("documents/c.jsonl", document("c", "x")));
  options.output.clear();
  options.attributes = "dup";
  dedup(options);
  CHECK(lines_of(scene.folder / "attributes/dup/b.jsonl").empty());
  CHECK(lines_of(scene.folder / "attributes/dup/c.jsonl").at(0)["attributes"]["dup"] ==
        Json::parse("[[0,1,1.0]]"));
}

TEST_CASE("what is found does not depend on threads", "[data]") {
  const Scene scene;
  std::string documents;
  for (int i = 0; i < 30'000; ++i)
    documents += document(std::to_string(i), "text " + std::to_string(i * i % 9973));
  auto options = scene.options(documents);
  dedup(options);
  const Ids one = scene.remaining();
  CHECK(one.size() == 4987);
  options.threads = 3;
  options.overwrite = true;
  dedup(options);
  CHECK(scene.remaining() == one);
}

TEST_CASE("bad lines and outputs that exist stop dedup, and nothing is written", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "x") + "{}\n");
  const auto bad = thrown_by([&] { dedup(options); });
  REQUIRE(bad);
  CHECK((bad->kind == ErrorKind::kInput && bad->says("a.jsonl:2: the line has no field `text`")));
  CHECK_FALSE(std::filesystem::exists(options.output));
  scene.folder.write("out.jsonl", "mine");
  options.on_bad_line = BadLinePolicy::kSkip;
  const auto exists = thrown_by([&] { dedup(options); });
  REQUIRE(exists);
  CHECK((exists->kind == ErrorKind::kUsage && exists->says("--overwrite")));
}

TEST_CASE("a signal leaves nothing of attributes and their folders", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "x"));
  options.output.clear();
  options.attributes = "dup";
  options.on_progress = [](const olmo::Progress&) { std::raise(SIGTERM); };
  const pid_t child = olmo::test::fork_briefly();  // which takes the signal
  if (child == 0) {
    const auto error = thrown_by([&] { dedup(options); });
    ::_exit(error ? static_cast<int>(error->kind) : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(ErrorKind::kStopped));
  CHECK_FALSE(std::filesystem::exists(scene.folder / "attributes"));
}

TEST_CASE("words need something to compare with, and evaluation records words", "[data]") {
  const Scene scene;
  auto options = scene.options(document("a", "x"));
  options.by = DedupBy::kWords;
  const auto alone = thrown_by([&] { dedup(options); });
  REQUIRE(alone);
  CHECK((alone->kind == ErrorKind::kUsage && alone->says("--against")));
  options.by = DedupBy::kDocument;
  options.words_texts = 1;
  const auto records = thrown_by([&] { dedup(options); });
  REQUIRE(records);
  CHECK((records->kind == ErrorKind::kUsage && records->says("--by words")));
}
