#include "data/documents/json_path.h"

#include <nlohmann/json.hpp>

#include "data/scratch.h"
#include "support/catch.h"

using olmo::Json;
using olmo::data::JsonPath;
using olmo::test::thrown_by;

namespace {

/// A document as Dolma's taggers leave it.
const Json& document() {
  static const Json kDocument = Json::parse(R"({
    "id": "d1", "text": "x", "source": "s", "metadata": {"length": 700, "a key": "v", "url-1": "u"},
    "attributes": {"spans": [[0, 5, 1.0], [7, 9, 0.25]], "score": [[0, 1, 0.75]], "flag": true,
                   "one": 1, "none": null, "empty": []}})");
  return kDocument;
}

Json found(const std::string& path) {
  Json values = Json::array();
  for (const Json* value : JsonPath(path).find(document())) values.push_back(*value);
  return values;
}

bool holds(const std::string& condition) {
  return !found("$.attributes[?(" + condition + ")]").empty();
}

}  // namespace

TEST_CASE("a path leads to what its keys and indices name", "[data]") {
  CHECK(found("$.source") == Json{"s"});
  CHECK(found("$.metadata['a key']") == Json{"v"});
  CHECK(found("$.metadata.url-1") == Json{"u"});
  CHECK(found("$.attributes.spans[1][2]") == Json{0.25});
  CHECK(found("$@.attributes.one") == Json{1});
  CHECK(found("$.attributes.spans[*][0]") == Json{0, 7});
  CHECK(found("$.attributes.none") == Json{nullptr});
  for (const char* nowhere : {"$.absent", "$.source.x", "$.attributes.spans[2]", "$.metadata[0]",
                              "$.attributes.empty[*]"})
    CHECK(found(nowhere).empty());
}

TEST_CASE("a filter looks at the elements of a list, and at an object as a whole", "[data]") {
  CHECK(found("$.attributes.spans[?(@[2] > 0.5)]") == Json{{0, 5, 1.0}});
  CHECK(found("$.metadata[?(@.length < 1000)]") == Json::array({document()["metadata"]}));
  CHECK(found("$.metadata[?(@.length < 500)]").empty());
}

TEST_CASE("conditions are those of Dolma's configs", "[data]") {
  CHECK(holds("@.spans && @.spans[0] && @.spans[0][2] >= 1.0"));
  CHECK(holds("@.score[0][2] < 0.8"));
  CHECK(holds("@.flag == true"));
  CHECK(holds("@['flag'] && !@['absent']"));
  CHECK(holds("@.absent || @.one"));
  CHECK(holds("(@.absent || @.one) && $.source == 's'"));
  CHECK_FALSE(holds("@.absent"));
  CHECK_FALSE(holds("@.empty[0]"));
  CHECK_FALSE(holds("!(@.one || @.absent)"));
  CHECK_FALSE(holds("@.absent[0][2] >= 0.1"));
  CHECK_FALSE(holds("@.flag > 0"));
}

TEST_CASE("values compare by value, and two that are not there are equal", "[data]") {
  CHECK(holds("@.one == 1.0"));
  CHECK(holds("@.one >= 1e0"));
  CHECK(holds("@.one != 'one'"));
  CHECK(holds("@.none == null"));
  CHECK(holds("@.absent == @.absent2"));
  CHECK(holds("@.absent != 1"));
  CHECK_FALSE(holds("@.spans == @.score"));
}

TEST_CASE("`&&` binds closer than `||`", "[data]") {
  CHECK(holds("@.one || @.absent && @.absent"));
  CHECK_FALSE(holds("(@.one || @.absent) && @.absent"));
}

TEST_CASE("what is no path of this kind is refused at its character", "[data]") {
  const struct {
    const char* path;
    const char* says;
  } cases[] = {
      {"", "`$` or `@` at character 1, got the end"},
      {"attributes", "at character 1, got `attributes`"},
      {"$..a", "a key at character 3"},
      {"$.a[", "a key in quotes, an index, `*` or `?(` at character 5, got the end"},
      {"$.a[1:2]", "`]` at character 6, got `:2]`"},
      {"$.a[-1]", "at character 5"},
      {"$.a[99999999999999999999]", "an index"},
      {"$.a['x", "closing quote at character 5"},
      {"$.a['x\\n']", "a string without `\\` at character 7"},
      {"$.a[?(@.b > )]", "a path, a number, a string, true, false or null at character 13"},
      {"$.a[?(@.b in ['x'])]", "`)` at character 11, got `in ['x'])]`"},
      {"$.a[?(@.b]", "`)` at character 10"},
      {"$.a b", "`.`, `[` or the end at character 5"},
  };
  for (const auto& [path, says] : cases) {
    INFO(path);
    const auto error = thrown_by([&, text = path] { JsonPath{text}; });
    REQUIRE(error);
    CHECK(error->kind == olmo::ErrorKind::kUsage);
    CHECK(error->says(says));
  }
}

TEST_CASE("parentheses may not be nested without an end", "[data]") {
  const auto nested = [](int depth) {
    return "$.a[?(" + std::string(static_cast<std::size_t>(depth), '(') + "@.b" +
           std::string(static_cast<std::size_t>(depth), ')') + ")]";
  };
  CHECK_FALSE(thrown_by([&] { JsonPath{nested(20)}; }));
  CHECK(thrown_by([&] { JsonPath{nested(100'000)}; }));
}
