#include "eval/document_reader.h"

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/files/input_file.h"
#include "core/files/json.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::eval;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

std::string line_of(const Json& document) { return document.dump() + "\n"; }

std::filesystem::path put(const ScratchFolder& folder, const std::string& name,
                          const std::string& bytes) {
  std::filesystem::create_directories((folder / name).parent_path());
  return folder.write(name, bytes);
}

void put_gzip(const ScratchFolder& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories((folder / name).parent_path());
  gzFile file = gzopen((folder / name).c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::vector<Document> read_all(const std::vector<SuiteSource>& sources,
                               std::optional<std::int64_t> limit = std::nullopt) {
  DocumentReader reader(sources, limit);
  std::vector<Document> documents;
  for (Document document; reader.next(document);) documents.push_back(document);
  CHECK(reader.fraction_read() == 1.0);
  return documents;
}

std::vector<std::string> names_of(const std::vector<SuiteSource>& sources) {
  std::vector<std::string> names;
  for (const SuiteSource& source : sources) names.push_back(source.name);
  return names;
}

}  // namespace

TEST_CASE("a text has the bytes, characters and words that Python counts", "[eval]") {
  const Json golden = olmo::read_json_file(OLMO_TEST_DATA "/eval/perplexity.json");
  for (const Json& expected : golden.at("texts")) {
    const std::string text = expected.at("text");
    INFO(expected.dump());
    const TextCounts counts = count_text(text);
    CHECK(counts.bytes == expected.at("bytes"));
    CHECK(counts.chars == expected.at("chars"));
    CHECK(counts.words == expected.at("words"));
  }
}

TEST_CASE("Paloma's layout: folders name the sources, documents or file names the subdomains",
          "[eval]") {
  const ScratchFolder folder;
  put_gzip(folder, "paloma/forums/val/forums_5_www.example.org_00000000.jsonl.gz",
           line_of({{"text", "in the file's domain"}, {"id", "1"}, {"source", "ignored"}}) +
               line_of({{"text", "in its own"}, {"subdomain", "own"}}));
  put(folder, "paloma/forums/test/forums_00000000.jsonl", line_of({{"text", "of the test split"}}));
  put(folder, "paloma/c4_en/val/val_00000000.jsonl", line_of({{"text", "no domain"}}));
  put(folder, "paloma/README.md", "not data");

  const auto sources = find_sources("paloma", folder / "paloma", "val");
  CHECK(names_of(sources) == std::vector<std::string>{"c4_en", "forums"});
  const auto documents = read_all(sources);
  REQUIRE(documents.size() == 3);
  CHECK(documents[0].source == "c4_en");
  CHECK(documents[0].subdomain.empty());
  CHECK(documents[0].id == "val_00000000.jsonl#1");
  CHECK(documents[1].source == "forums");
  CHECK(documents[1].subdomain == "5_www.example.org");
  CHECK(documents[1].id == "1");
  CHECK(documents[2].subdomain == "own");
  CHECK(documents[2].id == "forums_5_www.example.org_00000000.jsonl.gz#2");
  CHECK(documents[2].text == "in its own");

  const auto test_split = find_sources("paloma", folder / "paloma", "test");
  CHECK(names_of(test_split) == std::vector<std::string>{"forums"});
  CHECK(read_all(find_sources("x", folder / "paloma/forums", "val")).size() == 2);
  CHECK(find_sources("x", folder / "paloma/forums/val", "val").at(0).name == "forums");
  const auto error = thrown_by([&] { find_sources("paloma", folder / "paloma/c4_en", "test"); });
  REQUIRE(error);
  CHECK(error->says("has no split `test`, but others"));
}

TEST_CASE("in-loop sets are found with their split in a folder or in the file's name", "[eval]") {
  const ScratchFolder folder;
  put(folder, "v3/c4_en/val/part-0-00000.npy", "1234");
  put(folder, "v3/pile/val/part-0-00000.npy", "1234");
  put(folder, "v3/pile/val/part-0-00000.npy.json", "{}");
  put(folder, "v2/gab/val.npy", "1234");
  put(folder, "v2/gab/test.npy", "1234");
  const auto v3 = find_sources("v3", folder / "v3", "val");
  CHECK(names_of(v3) == std::vector<std::string>{"c4_en", "pile"});
  CHECK(v3[1].files.size() == 1);
  const auto v2 = find_sources("v2", folder / "v2", "val");
  REQUIRE(v2.size() == 1);
  REQUIRE(v2[0].files.size() == 1);
  CHECK(v2[0].files[0].path.filename() == "val.npy");
  CHECK(v2[0].files[0].subdomain.empty());
}

TEST_CASE("a file is a source of its own: lines with their sources, or one text", "[eval]") {
  const ScratchFolder folder;
  const auto lines = put(folder, "mix.jsonl",
                         line_of({{"text", "a"}, {"source", "s"}, {"subdomain", "d"}}) + "\n" +
                             line_of({{"text", ""}, {"source", nullptr}, {"id", 7}}));
  const auto documents = read_all(find_sources("mine", lines, "val"));
  REQUIRE(documents.size() == 2);
  CHECK(documents[0].source == "s");
  CHECK(documents[0].subdomain == "d");
  CHECK(documents[1].source == "mine");
  CHECK(documents[1].text.empty());
  CHECK(documents[1].id == "mix.jsonl#3");

  const auto text = put(folder, "book.md", "  kept\r\nas it is \n");
  const auto book = read_all(find_sources("book", text, "val"));
  REQUIRE(book.size() == 1);
  CHECK(book[0].text == "  kept\r\nas it is \n");
  CHECK(book[0].id == "book.md");
}

TEST_CASE("files of a folder without splits belong to their first-level folders", "[eval]") {
  const ScratchFolder folder;
  put(folder, "mine/a/one.txt", "1");
  put(folder, "mine/a/deep/two-2.txt", "2");
  put(folder, "mine/b.jsonl", line_of({{"text", "3"}}));
  const auto documents = read_all(find_sources("mine", folder / "mine", "val"));
  REQUIRE(documents.size() == 3);
  CHECK(documents[0].source == "a");
  CHECK(documents[0].subdomain == "two-2");
  CHECK(documents[1].subdomain == "one");
  CHECK(documents[2].source == "mine");
  CHECK(documents[2].subdomain == "b");
}

TEST_CASE("a limit holds for each source by itself", "[eval]") {
  const ScratchFolder folder;
  for (const std::string source : {"a", "b"})
    for (const std::string file : {"1", "2"})
      put(folder, "s/" + source + "/val/" + file + ".jsonl",
          line_of({{"text", source + file}}) + line_of({{"text", source + file + "+"}}));
  std::string texts;
  for (const Document& document : read_all(find_sources("s", folder / "s", "val"), 3))
    texts += document.text + " ";
  CHECK(texts == "a1 a1+ a2 b1 b1+ b2 ");
}

TEST_CASE("what cannot be read is named by file and line", "[eval]") {
  const ScratchFolder folder;
  const auto complaint = [&](const std::string& name, const std::string& bytes) {
    const auto path = put(folder, name, bytes);
    const auto error = thrown_by([&] { read_all(find_sources("x", path, "val")); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kInput);
    CHECK(error->says(path.string()));
    return error->text;
  };
  const std::string good = line_of({{"text", "fine"}});
  CHECK(complaint("a.jsonl", good + "{\"text\": 5}\n").find(":2: has a `text`") !=
        std::string::npos);
  CHECK(complaint("b.jsonl", good + good + "{\"text\"").find(":3: is not valid JSON") !=
        std::string::npos);
  CHECK(complaint("c.jsonl", "{\"text\": \"\xff\"}\n").find(":1: ") != std::string::npos);
  CHECK(complaint("d.txt", "abc\xc3(").find("is not UTF-8 at byte 3") != std::string::npos);
  complaint("e.jsonl.gz", good);
  complaint("f.jsonl.zst", "\x28\xb5\x2f\xfd damaged");

  put_gzip(folder, "g.jsonl.gz", good + good);
  const std::string whole = olmo::read_file(folder / "g.jsonl.gz");
  complaint("g.jsonl.gz", whole.substr(0, whole.size() - 6));

  const auto missing = thrown_by([&] { find_sources("x", folder / "nowhere", "val"); });
  REQUIRE(missing);
  CHECK(missing->says("does not exist"));
  std::filesystem::create_directories(folder / "empty");
  CHECK(thrown_by([&] { find_sources("x", folder / "empty", "val"); })->says("holds no .jsonl"));
  put(folder, "both/s/val/a.npy", "12");
  put(folder, "both/s/val/b.jsonl", good);
  CHECK(
      thrown_by([&] { find_sources("x", folder / "both", "val"); })->says("token files and text"));
}

TEST_CASE("the digest of sources follows their content and names, not where they lie", "[eval]") {
  const ScratchFolder folder;
  const auto digest = [&](const std::string& root, const std::string& name,
                          const std::string& text) {
    put(folder, root + "/s/val/" + name, line_of({{"text", text}}));
    return sources_digest(find_sources("s", folder / root, "val")).hex();
  };
  const auto first = digest("1", "a.jsonl", "text");
  CHECK(first == digest("2", "a.jsonl", "text"));
  CHECK(first != digest("3", "a.jsonl", "another"));
  CHECK(first != digest("4", "b.jsonl", "text"));
}
