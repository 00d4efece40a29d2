#include "config/file.h"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/text.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

using olmo::Error;
using olmo::ErrorKind;
using olmo::Json;
using olmo::nearest;
using namespace olmo::config;

namespace {

Json json_of(const std::string& text) {
  return to_json(parse_config_document(text, "c.json").root);
}
Json yaml_of(const std::string& text) {
  return to_json(parse_config_document(text, "c.yaml").root);
}

/// Message of the error that reading `text` gives, or "" if it gives none.
std::string error_of(const std::string& text, const std::string& name) {
  try {
    parse_config_document(text, name);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

Json resolved(const std::string& text, const std::string& defaults = "{}") {
  auto document = parse_config_document(text, "c.yaml");
  const auto errors = resolve_references(document, parse_json_config(defaults, "d").root);
  CHECK(errors.empty());
  return to_json(document.root);
}

std::vector<std::string> reference_errors(const std::string& text) {
  auto document = parse_config_document(text, "c.yaml");
  return sorted_texts(resolve_references(document, ConfigNode()));
}

}  // namespace

TEST_CASE("JSON configs may hold comments and trailing commas", "[config]") {
  const auto json = json_of(R"(// top
  { "a": 1, /* two
  lines */ "b": [1, 2.5, "x // not a comment", true, null,],
    "c": {"d": "\u00e9\ud83d\ude00\n\/",}, } // end)");
  CHECK(
      json ==
      Json::parse(
          R"({"a":1,"b":[1,2.5,"x // not a comment",true,null],"c":{"d":"\u00e9\ud83d\ude00\n/"}})"));
}

TEST_CASE("a number that no double holds is left to its key to refuse", "[config]") {
  for (const char* number : {"1e400", "-1e400", "1e-400"})
    CHECK(error_of("{\"a\": " + std::string(number) + "}", "c.json").empty());
  for (const char* word : {"1e400x", "1e", "e400"})
    CHECK_THAT(error_of("{\"a\": " + std::string(word) + "}", "c.json"),
               Catch::Matchers::Contains("where a value is expected"));
}

TEST_CASE("every key of a config knows its line", "[config]") {
  const auto json = parse_config_document("{\n\"a\":\n1,\n\"b\": {\n\"c\": [\n7,\n8]}}", "c.json");
  CHECK(json.root.at_path("a")->line == 2);
  CHECK(json.root.at_path("b.c")->line == 5);
  CHECK(json.root.at_path("b.c.1")->line == 7);
  const auto yaml = parse_config_document("# one\na: 1\nb:\n  c:\n    - 7\n    - 8\n", "c.yaml");
  CHECK(yaml.root.at_path("a")->line == 2);
  CHECK(yaml.root.at_path("b.c")->line == 4);
  CHECK(yaml.root.at_path("b.c.1")->line == 6);
}

TEST_CASE("a syntax error of JSON is named with file and line", "[config]") {
  CHECK(error_of("{\n\"a\": 1\n\"b\": 2}", "c.json") ==
        "c.json:3: expects , or } after the value before it");
  CHECK(error_of("{\n\"a\": frog}", "c.json").rfind("c.json:2: has `frog`", 0) == 0);
  CHECK(error_of("{\"a\": \"\\ud800x\"}", "c.json").find("surrogate") != std::string::npos);
  CHECK(error_of("{\n\n/* ", "c.json").rfind("c.json:3: ", 0) == 0);
  CHECK(error_of("[1]", "c.json").find("expected keys and values") != std::string::npos);
  CHECK(error_of("{} {}", "c.json").find("after its closing brace") != std::string::npos);
  CHECK_FALSE(error_of("", "c.json").empty());
}

TEST_CASE("a syntax error of YAML is named with file and line", "[config]") {
  CHECK(error_of("a: 1\nb: [1, 2\nc: 3\n", "c.yaml").rfind("c.yaml:", 0) == 0);
  CHECK(error_of("a: 1\n---\nb: 1\n", "c.yaml").find("more than one") != std::string::npos);
  CHECK(error_of("a: !!python/object:os.system x\n", "c.yaml").find("tag") != std::string::npos);
  CHECK(error_of("- 1\n- 2\n", "c.yaml").find("expected keys and values") != std::string::npos);
}

TEST_CASE("duplicate keys are all named with both lines", "[config]") {
  CHECK(error_of("a: 1\nb: 2\na: 3\nb: 4\n", "c.yaml") ==
        "c.yaml:3: `a` is set twice, first in line 1\nc.yaml:4: `b` is set twice, first in line 2");
  CHECK(error_of("{\"a\": 1,\n\"a\": 2}", "c.json") ==
        "c.json:2: `a` is set twice, first in line 1");
}

TEST_CASE("text that is not UTF-8 is refused with its line", "[config]") {
  CHECK(error_of("a: 1\nb: \xff\n", "c.yaml") == "c.yaml:2: is not text in UTF-8");
  CHECK(error_of(std::string("{\"a\": \"\0\"}", 10), "c.json") == "c.json:1: is not text in UTF-8");
}

TEST_CASE("an indentation that YAML does not take is told in plain words", "[config]") {
  CHECK(error_of("model:\n\td_model: 64\n", "c.yaml").find("indented with a tab") !=
        std::string::npos);
  CHECK(error_of("model:\n  d_model: 64\n n_heads: 2\n", "c.yaml").find("same column") !=
        std::string::npos);
}

TEST_CASE("scalars of YAML are read as OmegaConf reads them", "[config]") {
  const auto json = yaml_of(R"(
a: 739_328
b: 1e-4
c: 4.0e-4
d: 2e12T
e: 0x1F
f: [yes, No, ON, off, True]
g: ~
h: null
i: "12"
j: .inf
k: -3
l: 1_000.5
m: 017
n: +5
o: 1e3
)");
  CHECK(json["a"] == 739328);
  CHECK(json["b"] == 1e-4);
  CHECK(json["c"] == 4.0e-4);
  CHECK(json["d"] == "2e12T");
  CHECK(json["e"] == 31);
  CHECK(json["f"] == Json({true, false, true, false, true}));
  CHECK(json["g"].is_null());
  CHECK(json["h"].is_null());
  CHECK(json["i"] == "12");
  CHECK(read_double(".inf") == std::numeric_limits<double>::infinity());
  CHECK(json["k"] == -3);
  CHECK(json["l"] == 1000.5);
  CHECK(json["m"] == 15);
  CHECK(json["n"] == 5);
  CHECK(json["o"] == 1000.0);
}

TEST_CASE("words that look like numbers are none", "[config]") {
  for (const auto* text :
       {"", "-", "+", ".", "_1", "1x", "0x", "inf", "nan", "1e400", "--1", "+-1", "1e", "true"}) {
    INFO(text);
    CHECK_FALSE(read_double(text));
    CHECK_FALSE(read_int(text));
  }
  CHECK_FALSE(read_int("9223372036854775808"));
  CHECK_FALSE(read_int("1.0"));
}

TEST_CASE("references give the value they name, at any depth", "[config]") {
  const auto json = resolved(R"(
name: run
n: 5
m: ${n}
model: {width: 64, twin: "${model.width}"}
path: ${oc.env:OLMO_TEST_UNSET,${name}}/x${n}
chosen: "${path.choose: /no/such/one , ${oc.env:OLMO_TEST_UNSET,/}}${n}"
list: [a, "${list.0}"]
escaped: \${n}
none: ${oc.env:OLMO_TEST_UNSET,null}
)");
  CHECK(json["m"] == 5);
  CHECK(json["model"]["twin"] == 64);
  CHECK(json["path"] == "run/x5");
  CHECK(json["chosen"] == "/5");
  CHECK(json["list"] == Json({"a", "a"}));
  CHECK(json["escaped"] == "${n}");
  CHECK(json["none"].is_null());
}

TEST_CASE("a value within a text is written as Python writes it", "[config]") {
  const auto text_of = [](const std::string& value) {
    return resolved("v: " + value + "\nt: x${v}\n")["t"];
  };
  CHECK(text_of("null") == "xNone");
  CHECK(text_of("true") == "xTrue");
  CHECK(text_of("'true'") == "xtrue");
  CHECK(text_of("0x10") == "x16");
  CHECK(text_of("3.0e-4") == "x0.0003");
  CHECK(text_of("1.0e-5") == "x1e-05");
  CHECK(text_of("1.0e15") == "x1000000000000000.0");
  CHECK(text_of("1.0e16") == "x1e+16");
  CHECK(text_of("-.inf") == "x-inf");
  CHECK(text_of("'3.0e-4'") == "x3.0e-4");
}

TEST_CASE("what the environment or a path gives is text", "[config]") {
  const olmo::test::Environment number("OLMO_TEST_NUMBER", "3.0e-4");
  CHECK(resolved("a: x${oc.env:OLMO_TEST_NUMBER}\n")["a"] == "x3.0e-4");
}

TEST_CASE("the last checkpoint of a folder is that of the highest step, in shards if it can be",
          "[config]") {
  const olmo::test::TemporaryDirectory folder;
  for (const char* name :
       {"step9", "step10-unsharded", "step10", "step8-unsharded", "stepping", "latest", "step0"})
    std::filesystem::create_directory(folder.path() / name);
  std::ofstream(folder.path() / "step11") << "no folder";
  const auto last = [&](const std::string& of) {
    return resolved("f: " + of + "\nc: ${path.last_checkpoint:${f}}\n")["c"];
  };
  CHECK(last(folder.path()) == (folder.path() / "step10").string());
  std::filesystem::create_directory(folder.path() / "step12-unsharded");
  CHECK(last(folder.path()) == (folder.path() / "step12-unsharded").string());
  auto document = parse_config_document("c: ${path.last_checkpoint:/no/such/folder}\n", "c.yaml");
  CHECK(resolve_references(document, ConfigNode()).empty());
  CHECK(document.root.find("c")->kind == ConfigNode::Kind::kUnresolved);
}

TEST_CASE("a list or a map, and a function that no config of OLMo's calls, are refused",
          "[config]") {
  const auto errors = reference_errors(
      "a: {b: 1}\nc: ${a}\nd: ${oc.select:a.b,3}\ne: ${path.last_checkpoint:/x,/y}\nf: "
      "${oc.env:A,B,C}\n");
  REQUIRE(errors.size() == 4);
  CHECK(errors[0] ==
        "c.yaml:2: `c` refers to `${a}`, which is a list or a map: only single values can be "
        "referred to");
  for (std::size_t i = 1; i < 4; ++i)
    CHECK(errors[i].find("which is not one of oc.env:NAME,DEFAULT, path.choose") !=
          std::string::npos);
}

TEST_CASE("a reference to a known key that is not set gives its default", "[config]") {
  CHECK(resolved("a: ${b.c}\n", R"({"b": {"c": 16}})")["a"] == 16);
}

TEST_CASE("cycles, unknown references and open braces are all reported with their lines",
          "[config]") {
  const auto errors = reference_errors(
      "a: ${b}\nb: ${c}\nc: ${a}\nd: ${nowhere}\ne: ${x\nf: ${no.such:1}\ng: {h: '${g.h}'}\n");
  REQUIRE(errors.size() == 5);
  CHECK(errors[0] == "c.yaml:3: `c` refers to itself: a -> b -> c -> a");
  CHECK(errors[1] == "c.yaml:4: `d` refers to `${nowhere}`, which is not set");
  CHECK(errors[2].rfind("c.yaml:5: `e` has a reference", 0) == 0);
  CHECK(errors[3].rfind("c.yaml:6: `f` calls `no.such`", 0) == 0);
  CHECK(errors[4].rfind("c.yaml:7: `g.h` refers to itself", 0) == 0);
}

TEST_CASE("what only this machine lacks is kept as unresolved with its reason", "[config]") {
  auto document = parse_config_document(
      "a: ${path.choose:/no/such/one,/nor/this}\nb: x/${oc.env:OLMO_TEST_UNSET}\n", "c.yaml");
  CHECK(resolve_references(document, ConfigNode()).empty());
  CHECK(document.root.find("a")->kind == ConfigNode::Kind::kUnresolved);
  CHECK(document.root.find("a")->text == "none of `/no/such/one`, `/nor/this` exists");
  CHECK(document.root.find("b")->text == "the environment variable `OLMO_TEST_UNSET` is not set");
}

TEST_CASE("a value put in by a reference is text, whatever it looks like", "[config]") {
  const olmo::test::Environment nasty("OLMO_TEST_NASTY", "${a}");
  CHECK(resolved("a: 1\nb: ${oc.env:OLMO_TEST_NASTY}\nc: ${b}\n")["c"] == "${a}");
}

TEST_CASE("overrides set scalars, lists and maps, and make the keys on their way", "[config]") {
  auto document = parse_config_document("a: {b: 1}\nl: [x, y]\nn: ~\n", "c.yaml");
  const auto errors = apply_overrides(
      document, {"a.b=2", "--a.c.d=[p, 1e-3]", "l.1=z", "n.m=${a.b}", "e={f: no}", "g="});
  CHECK(errors.empty());
  CHECK(resolve_references(document, ConfigNode()).empty());
  CHECK(
      to_json(document.root) ==
      Json::parse(
          R"({"a":{"b":2,"c":{"d":["p",1e-3]}},"l":["x","z"],"n":{"m":2},"e":{"f":false},"g":null})"));
  CHECK(document.where(document.root.at_path("a.b")->line) == "command line");
}

TEST_CASE("overrides with dashes are read as OLMo's launch scripts mean them", "[config]") {
  auto document = parse_config_document("n: 1\n", "c.yaml");
  CHECK(apply_overrides(document, {"--save-overwrite", "--dry_run", "--run-name=a-b",
                                   "--m.rope-theta=5", "x-y=1"})
            .empty());
  CHECK(to_json(document.root) ==
        Json::parse(R"({"n":1,"save_overwrite":true,"dry_run":true,"run_name":"a-b",
                        "m":{"rope_theta":5},"x-y":1})"));
}

TEST_CASE("overrides that cannot be applied are all named", "[config]") {
  auto document = parse_config_document("a: {b: 1}\nl: [x]\n", "c.yaml");
  const auto errors =
      apply_overrides(document, {"a", "a.b.c=1", "l.5=1", "a..b=1", "a.=1", "=1", "--", "a.b=[1"});
  CHECK(errors.size() == 8);
  for (const auto& error : errors) CHECK(error.text.rfind("command line: `", 0) == 0);
  CHECK(errors.back().text.find("a bracket that is not closed") != std::string::npos);
}

TEST_CASE("deep nesting, alias bombs and reference bombs end with an error", "[config]") {
  CHECK(error_of("{\"a\":" + std::string(5000, '['), "c.json").find("nested deeper") !=
        std::string::npos);
  CHECK(error_of("a: " + std::string(5000, '['), "c.yaml").find("c.yaml:1: ") == 0);
  CHECK(error_of("a: " + std::string(5000, '{'), "c.yaml").find("c.yaml:1: ") == 0);
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  std::string references = "r0: xxxxxxxxxxxxxxxxxxxx\n";
  for (int i = 1; i < 12; ++i) {
    const auto n = std::to_string(i);
    const auto before = "*a" + std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [" + before;
    references += "r" + n + ": \"";
    for (int k = 0; k < 9; ++k) bomb += ", " + before;
    for (int k = 0; k < 10; ++k) references += "${r" + std::to_string(i - 1) + "}";
    bomb += "]\n";
    references += "\"\n";
  }
  CHECK(error_of(bomb, "c.yaml").find("holds more than") != std::string::npos);
  CHECK_FALSE(reference_errors(references).empty());
  std::string nested = "z", chain = "k0: x\n";
  for (int i = 0; i < 100; ++i) {
    nested = "${oc.env:OLMO_TEST_UNSET," + nested + "}";
    chain = "k" + std::to_string(i + 1) + ": ${k" + std::to_string(i) + "}\n" + chain;
  }
  CHECK(reference_errors("a: " + nested + "\n").at(0).find("nested deeper") != std::string::npos);
  CHECK(reference_errors(chain).at(0).find("nested deeper") != std::string::npos);
  CHECK(error_of("a: &x [*x]\n", "c.yaml").find("contains it") != std::string::npos);
}
