#include "data/documents/attributes.h"

#include "core/error.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::test::thrown_by;

TEST_CASE("attributes lie where Dolma's toolkit looks for them", "[data]") {
  CHECK(attribute_file("a/documents/x.jsonl.gz", "dup") == "a/attributes/dup/x.jsonl.gz");
  CHECK(attribute_file("documents/b/c/x.jsonl", "dup") == "attributes/dup/b/c/x.jsonl");
  CHECK(attribute_file("/home/documents/corpus/documents/x.gz", "d") ==
        "/home/documents/corpus/attributes/d/x.gz");
}

TEST_CASE("documents outside of a folder `documents` have no place for attributes", "[data]") {
  for (const char* path : {"x.jsonl", "a/x.jsonl", "a/documents"}) {
    const auto error = thrown_by([&] { (void)attribute_file(path, "dup"); });
    REQUIRE(error);
    CHECK(error->kind == olmo::ErrorKind::kUsage);
    CHECK((error->says(path) && error->says("`documents`")));
  }
}

TEST_CASE("a name that leads elsewhere is none for attributes", "[data]") {
  for (const char* name : {"", ".", "..", "../x", "a/b", "/tmp"})
    CHECK(thrown_by([&] { (void)attribute_file("a/documents/x.jsonl", name); }));
}

TEST_CASE("spans are replaced by characters, whatever their bytes", "[data]") {
  CHECK(replace_spans("aébc日d", {{.begin = 1, .end = 3}}) == "ac日d");
  CHECK(replace_spans("aébc日d", {{.begin = 4, .end = 5, .replacement = "<{}|{}>"}}) ==
        "aébc<日|日>d");
  CHECK(replace_spans("abc", {{.begin = 0, .end = 3}}).empty());
  CHECK(replace_spans("abc", {}) == "abc");
}

TEST_CASE("spans may touch; of those that overlap the first counts", "[data]") {
  CHECK(replace_spans("abcdef", {{.begin = 2, .end = 4, .replacement = "2"},
                                 {.begin = 0, .end = 2, .replacement = "1"}}) == "12ef");
  CHECK(replace_spans("abcdef", {{.begin = 1, .end = 4, .replacement = "1"},
                                 {.begin = 3, .end = 6, .replacement = "2"}}) == "a1ef");
  CHECK(replace_spans("abcdef", {{.begin = 1, .end = 3, .replacement = "1"},
                                 {.begin = 1, .end = 5, .replacement = "2"}}) == "a1def");
}

TEST_CASE("a span without characters is none, and one beyond the text ends with it", "[data]") {
  CHECK(replace_spans("abc", {{.begin = 1, .end = 1, .replacement = "x"}}) == "abc");
  CHECK(replace_spans("abc", {{.begin = 2, .end = 1, .replacement = "x"}}) == "abc");
  CHECK(replace_spans("abc", {{.begin = 2, .end = 9, .replacement = "x"}}) == "abx");
  CHECK(replace_spans("abc", {{.begin = 7, .end = 9, .replacement = "x"}}) == "abc");
}

TEST_CASE("characters are counted, not bytes", "[data]") {
  CHECK(count_characters("") == 0);
  CHECK(count_characters("aé日\xF0\x9F\x99\x82") == 4);
}
