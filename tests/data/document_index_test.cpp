#include "data/document_index.h"

#include "core/hash.h"
#include "data/scratch.h"
#include "data/text_reader.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

std::vector<std::string> ids(const std::vector<IndexedDocument>& documents) {
  std::vector<std::string> ids;
  for (const auto& document : documents) ids.push_back(document.origin.id);
  return ids;
}

using Ids = std::vector<std::string>;

/// Ten documents of ten tokens each, "0" to "9".
struct Scene {
  ScratchFolder folder;
  std::filesystem::path index = document_index_path(folder / "a.npy");

  Scene() {
    DocumentIndexWriter writer(folder / "a.npy");
    for (std::uint64_t i = 0; i < 10; ++i)
      writer.add({.tokens = {.begin = 10 * i, .end = 10 * i + 10},
                  .origin = {.id = std::to_string(i), .source = "x.jsonl", .line = i + 1}});
    writer.finish();
    writer.publish();
  }
  [[nodiscard]] DocumentIndex whole() const { return {.path = index, .tokens = 100, .sha256 = {}}; }
};

}  // namespace

TEST_CASE("an index lies beside its token file, under the name that Dolma's toolkit gives it",
          "[data]") {
  CHECK(document_index_path("a/part-0-00000.npy") == "a/part-0-00000.csv.gz");
}

TEST_CASE("an index is read as it was written, whatever its ids hold", "[data]") {
  const ScratchFolder folder;
  const Ids names = {"plain", "with, comma", "with \"quotes\"", "of two\nlines", "", "é日"};
  DocumentIndexWriter writer(folder / "a.npy");
  std::uint64_t token = 0;
  for (const auto& name : names) {
    writer.add({.tokens = {.begin = token, .end = token + 7},
                .origin = {.id = name, .source = "a, b.jsonl", .line = token + 1}});
    token += 7;
  }
  writer.finish();
  writer.publish();
  const auto read = find_documents({.path = folder / "a.csv.gz", .tokens = token, .sha256 = {}},
                                   {{.begin = 0, .end = token}});
  CHECK(ids(read) == names);
  CHECK((read[3].tokens.begin == 21 && read[3].tokens.end == 28));
  CHECK((read[3].origin.source == "a, b.jsonl" && read[3].origin.line == 22));
}

TEST_CASE("an index has the bytes that Dolma's toolkit writes", "[data]") {
  const ScratchFolder folder;
  DocumentIndexWriter writer(folder / "a.npy");
  writer.add(
      {.tokens = {.begin = 0, .end = 3}, .origin = {.id = "d1", .source = "a.jsonl", .line = 1}});
  writer.add({.tokens = {.begin = 3, .end = 9},
              .origin = {.id = "d,\"2\"", .source = "a.jsonl", .line = 2}});
  writer.finish();
  writer.publish();
  std::string text(100, ' ');
  text.resize(ByteSource(folder / "a.csv.gz").read(text.data(), text.size()));
  CHECK(text == "0,3,d1,a.jsonl,1\r\n3,9,\"d,\"\"2\"\"\",a.jsonl,2\r\n");
}

TEST_CASE("what Dolma's toolkit writes is read", "[data]") {
  const ScratchFolder folder;
  folder.write("a.csv", "0,3,d1,s3://x/a.jsonl.gz,1\r\n3,9,\"d,2\",s3://x/a.jsonl.gz,2\r\n");
  const auto read = find_documents({.path = folder / "a.csv", .tokens = 9, .sha256 = {}},
                                   {{.begin = 4, .end = 5}});
  REQUIRE(read.size() == 1);
  CHECK((read[0].origin.id == "d,2" && read[0].origin.line == 2));
}

TEST_CASE("the documents of a range are those that share tokens with it", "[data]") {
  const Scene scene;
  const auto found = [&](std::vector<TokenRange> ranges) {
    return ids(find_documents(scene.whole(), std::move(ranges)));
  };
  CHECK(found({{.begin = 0, .end = 1}}) == Ids{"0"});
  CHECK(found({{.begin = 9, .end = 21}}) == Ids{"0", "1", "2"});
  CHECK(found({{.begin = 20, .end = 30}}) == Ids{"2"});
  CHECK(found({{.begin = 75, .end = 80}, {.begin = 5, .end = 15}, {.begin = 99, .end = 100}}) ==
        Ids{"0", "1", "7", "9"});
  CHECK(found({}).empty());
}

TEST_CASE("an index of another file is refused", "[data]") {
  const Scene scene;
  auto index = scene.whole();
  index.tokens = 99;
  const auto fewer = thrown_by([&] { find_documents(index, {}); });
  REQUIRE(fewer);
  CHECK((fewer->kind == ErrorKind::kInput && fewer->says("tells of 100 tokens") &&
         fewer->says("has 99")));
  index = scene.whole();
  index.sha256 = olmo::sha256_file(scene.index).hex();
  CHECK_FALSE(thrown_by([&] { find_documents(index, {}); }));
  index.sha256 = std::string(64, '0');
  const auto other = thrown_by([&] { find_documents(index, {}); });
  REQUIRE(other);
  CHECK((other->kind == ErrorKind::kInput && other->says("sidecar")));
}

TEST_CASE("sources are counted, those with most tokens first", "[data]") {
  const ScratchFolder folder;
  folder.write("a.csv", "0,3,a,x,1\n3,9,b,y,1\n9,10,c,x,2\n");
  const auto counts = count_sources({.path = folder / "a.csv", .tokens = 10, .sha256 = {}});
  REQUIRE(counts.size() == 2);
  CHECK((counts[0].source == "y" && counts[0].documents == 1 && counts[0].tokens == 6));
  CHECK((counts[1].source == "x" && counts[1].documents == 2 && counts[1].tokens == 4));
  const auto both = sum(counts, {{.source = "x", .documents = 1, .tokens = 5}});
  CHECK((both[0].source == "x" && both[0].documents == 3 && both[0].tokens == 9));
}

TEST_CASE("rows that are none are refused with their line", "[data]") {
  const ScratchFolder folder;
  const struct {
    const char* text;
    const char* says;
  } cases[] = {{"0,3,a,b,1\n0,5,a,b,2\n", ":2: tells tokens 0 to 5, expected the ones from 3 on"},
               {"0,3,a,b,1\n5,6,a,b,2\n", ":2: tells tokens 5 to 6"},
               {"0,3,a,b\n", ":1: has 4 fields, expected 5"},
               {"0,x,a,b,1\n", ":1: expected a whole number, got \"x\""},
               {"0,3,a,b,-1\n", ":1: expected a whole number, got \"-1\""},
               {"0,3,\"a,b,1\n", ": has a quote that is never closed"},
               {"start,end,id,src,loc\n", ":1: expected a whole number, got \"start\""}};
  for (const auto& [text, says] : cases) {
    INFO(text);
    folder.write("a.csv", text);
    const auto error = thrown_by(
        [&] { find_documents({.path = folder / "a.csv", .tokens = 3, .sha256 = {}}, {}); });
    REQUIRE(error);
    CHECK((error->kind == ErrorKind::kInput && error->says(says)));
  }
}
