#include "eval/template.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/catch.h"

using namespace olmo::eval;
using Catch::Matchers::Contains;
using olmo::Error;
using olmo::ErrorKind;
using olmo::Json;

namespace {

const Json kRow =
    Json::parse(R"({"text": " Some _ text_ ", "number": -3, "flag": true, "none": null,
    "list": ["a", "b"], "deep": {"list": [{"x": "y"}]}, "kind": "cause", "real": 0.5})");

std::string render(const std::string& text, const FilterChains& chains = {}) {
  return Template(text, chains, "f.json: `context`")
      .render({.row = &kRow, .file = "rows.arrow", .index = 4});
}

TemplateScope row_scope() {
  TemplateScope scope;
  scope.row = &kRow;
  return scope;
}

std::string refusal(const std::string& text, ErrorKind kind) {
  try {
    render(text);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fields, places of lists, numbers and braces are written out", "[eval]") {
  CHECK(render("a{{b}}: {number}/{flag}/{real}") == "a{b}: -3/true/0.5");
  CHECK(render("{list.1}{deep.list.0.x}") == "by");
  CHECK(render("") == "");
}

TEST_CASE("filters follow each other", "[eval]") {
  CHECK(render("[{text|strip}]") == "[Some _ text_]");
  CHECK(render("[{text|lstrip}][{text|rstrip}]") == "[Some _ text_ ][ Some _ text_]");
  CHECK(render("{text|before:'_'|strip}") == "Some");
  CHECK(render("{text|after:'_'|strip}") == "text_");
  CHECK(render("{text|strip|last_word|drop_last}") == "text");
  CHECK(render("{text|strip|lower|capitalize}") == "Some _ text_");
  CHECK(render("{text|strip|lower_first}") == "some _ text_");
  CHECK(render("{kind|map:'cause':'because':'effect':'so'}") == "because");
}

TEST_CASE("arguments may hold quotes, bars, colons and braces", "[eval]") {
  CHECK(render("{kind|replace:'a':'''|:}{'}") == "c'|:}{use");
}

TEST_CASE("a task's own filter is a chain of others", "[eval]") {
  FilterChains chains;
  chains["clean"] = parse_filters("strip|replace:'_':'-'", {}, "f.json");
  CHECK(render("{text|clean|lower}", chains) == "some - text-");
}

TEST_CASE("made fields and the option come before the row's", "[eval]") {
  const std::map<std::string, std::string> made = {{"text", "made"}};
  const std::string option = "one";
  const Template both("{text} {option|capitalize} {kind}", {}, "f");
  CHECK(both.render({.row = &kRow, .made = &made, .option = &option, .file = {}, .index = 0}) ==
        "made One cause");
}

TEST_CASE("a field alone may stand for a list", "[eval]") {
  const Template list("{list}", {}, "f");
  CHECK(list.is_field());
  CHECK(list.render_list(row_scope()) == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(Template("{list|strip}", {}, "f").is_field());
  CHECK_THROWS_WITH(Template("{deep.list}", {}, "f").render_list(row_scope()),
                    Contains("element that is object"));
  CHECK_THROWS_WITH(Template("{kind}", {}, "f").render_list(row_scope()),
                    Contains("expected a list"));
}

TEST_CASE("a row that does not fit is named with file, row and field", "[eval]") {
  const auto missing = refusal("{absent}", ErrorKind::kInput);
  CHECK_THAT(missing,
             Contains("f.json: `context`: rows.arrow, row 4: field `absent` is not there"));
  CHECK_THAT(refusal("{none}", ErrorKind::kInput), Contains("field `none` is null"));
  CHECK_THAT(refusal("{list}", ErrorKind::kInput), Contains("is array"));
  CHECK_THAT(refusal("{list.2}", ErrorKind::kInput), Contains("a list has 2 elements"));
  CHECK_THAT(refusal("{list.x}", ErrorKind::kInput), Contains("`list.x` is not there"));
  CHECK_THAT(refusal("{kind.x}", ErrorKind::kInput), Contains("`kind.x` is not there"));
  CHECK_THAT(refusal("{kind|before:'_'}", ErrorKind::kInput),
             Contains("which the filter `before` cannot take"));
  CHECK_THAT(refusal("{text|map:'a':'b'}", ErrorKind::kInput), Contains("`map`"));
}

TEST_CASE("a template that is not of the form is refused with its key", "[eval]") {
  CHECK_THAT(refusal("a {b", ErrorKind::kUsage),
             Contains("f.json: `context`: a `{` is not closed"));
  CHECK_THAT(refusal("a } b", ErrorKind::kUsage), Contains("without its `{`"));
  CHECK_THAT(refusal("{}", ErrorKind::kUsage), Contains("names no field"));
  CHECK_THAT(refusal("{a..b}", ErrorKind::kUsage), Contains("names no field"));
  CHECK_THAT(refusal("{a|strp}", ErrorKind::kUsage),
             Contains("no filter `strp`; is `strip` meant?"));
  CHECK_THAT(refusal("{a|replace:'b'}", ErrorKind::kUsage),
             Contains("`replace` takes 2 arguments, got 1"));
  CHECK_THAT(refusal("{a|before:''}", ErrorKind::kUsage), Contains("nothing to look for"));
  CHECK_THAT(refusal("{a|before:_}", ErrorKind::kUsage), Contains("single quotes"));
  CHECK_THAT(refusal("{a|map:'x'}", ErrorKind::kUsage), Contains("pairs of arguments"));
}
