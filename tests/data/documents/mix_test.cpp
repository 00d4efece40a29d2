#include "data/documents/mix.h"

#include <nlohmann/json.hpp>

#include "data/documents/json_lines.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::lines_of;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

namespace fs = std::filesystem;

std::string document(const std::string& id, const std::string& text) {
  return Json{{"id", id}, {"text", text}}.dump() + "\n";
}

std::string attributes(const std::string& id, const Json& values) {
  return Json{{"id", id}, {"attributes", values}}.dump() + "\n";
}

Json spans(const std::string& text) { return Json::parse(text); }

/// One stream of files below `documents`.
struct Scene {
  ScratchFolder folder;
  MixOptions options;

  Scene() {
    MixStream stream;
    stream.name = "s";
    stream.output = folder / "out";
    stream.ending = "";
    options.streams = {stream};
  }
  MixStream& stream() { return options.streams.front(); }
  void add(const std::string& name, const std::string& lines) {
    write("documents/" + name, lines);
    stream().documents.push_back((folder / ("documents/" + name)).string());
  }
  void write(const std::string& name, const std::string& lines) const {
    fs::create_directories((folder / name).parent_path());
    folder.write(name, lines);
  }
  /// The texts that were written, by id.
  [[nodiscard]] std::map<std::string, std::string> mixed() const {
    mix(options);
    std::map<std::string, std::string> texts;
    for (const Json& line : lines_of(folder / "out/s-0000.jsonl"))
      texts[line.at("id")] = line.at("text");
    return texts;
  }
};

using Texts = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("documents are taken that match an include and no exclude", "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "1") + document("b", "2") + document("c", "3") + "\n");
  scene.stream().include = {JsonPath("$[?(@.id == 'a')]"), JsonPath("$[?(@.id == 'b')]")};
  CHECK(scene.mixed() == Texts{{"a", "1"}, {"b", "2"}});
  scene.stream().exclude = {JsonPath("$[?(@.text == '1')]")};
  scene.options.overwrite = true;
  CHECK(scene.mixed() == Texts{{"b", "2"}});
  const MixReport report = mix(scene.options);
  CHECK((report.streams[0].documents == 3 && report.streams[0].filtered == 2));
}

TEST_CASE("filters take the documents that Dolma's mixer takes", "[data]") {
  const fs::path golden = fs::path(OLMO_TEST_DATA) / "data/dolma";
  Scene scene;
  scene.stream().documents = {(golden / "documents").string()};
  scene.stream().attributes = {"first", "second"};
  scene.stream().min_text_length = 20;
  scene.options.overwrite = true;
  const auto filters = lines_of(golden / "filters.jsonl");
  CHECK(filters.size() > 50);
  for (const Json& filter : filters) {
    const auto path = filter.at("path").get<std::string>();
    INFO(path);
    scene.stream().include = {JsonPath(path)};
    mix(scene.options);
    Json taken = Json::array();
    for (const Json& line : lines_of(scene.folder / "out/s-0000.jsonl"))
      taken.push_back(line.at("id"));
    CHECK(taken == filter.at("documents"));
  }
}

TEST_CASE("attributes are merged, later names over earlier ones, and go with the document",
          "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "1") + "\n" + document("b", "2"));
  scene.write("attributes/x/a.jsonl",
              attributes("a", {{"p", 1}, {"q", 1}}) + attributes("b", Json::object()));
  scene.write("attributes/y/a.jsonl",
              "\n" + attributes("a", {{"q", 2}}) + attributes("b", {{"q", 3}}));
  scene.stream().attributes = {"x", "y"};
  mix(scene.options);
  const auto lines = lines_of(scene.folder / "out/s-0000.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == Json{{"id", "a"},
                         {"text", "1"},
                         {"attributes", {{"p", 1}, {"q", 2}}},
                         {"metadata", {{"provenance", "a.jsonl:1"}}}});
  CHECK(lines[1]["attributes"] == Json{{"q", 3}});
  CHECK(lines[1]["metadata"]["provenance"] == "a.jsonl:3");
}

TEST_CASE("spans are replaced whose score is in range", "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "0123456789"));
  scene.write("attributes/x/a.jsonl",
              attributes("a", {{"pii", spans("[[0,2,0.5],[3,5,0.4],[8,10,0.9]]")}}));
  scene.stream().attributes = {"x"};
  scene.stream().span_replacement = {
      {.span = JsonPath("$.attributes.pii"),
       .min_score = 0.5,
       .max_score = 0.9,
       .replacement = "<{}>"},
      {.span = JsonPath("$.attributes.absent"), .min_score = {}, .max_score = {}}};
  CHECK(scene.mixed() == Texts{{"a", "<01>23456789"}});
}

TEST_CASE("texts that are too short after replacing are left out", "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "  1234 ") + document("b", " 123 ") + document("c", "éé"));
  scene.stream().min_text_length = 4;
  CHECK(scene.mixed() == Texts{{"a", "  1234 "}, {"c", "éé"}});
}

TEST_CASE("fields can be left out", "[data]") {
  Scene scene;
  scene.add("a.jsonl", R"({"id":"a","text":"1","added":"today","metadata":{"n":1}})"
                       "\n");
  scene.stream().discard_fields = {"added", "absent"};
  mix(scene.options);
  CHECK(lines_of(scene.folder / "out/s-0000.jsonl").at(0) ==
        Json{{"id", "a"}, {"text", "1"}, {"metadata", {{"n", 1}, {"provenance", "a.jsonl:1"}}}});
}

TEST_CASE("inputs are put together by name until their sizes exceed the limit", "[data]") {
  Scene scene;
  for (const char* name : {"c", "a", "b", "d"})
    scene.write("documents/" + std::string(name) + ".jsonl", document(name, "12345"));
  const auto size = fs::file_size(scene.folder / "documents/a.jsonl");
  scene.stream().documents = {(scene.folder / "documents/*.jsonl").string()};
  scene.stream().max_size_in_bytes = 2 * size;
  const auto shards = plan_mix(scene.stream(), true);
  REQUIRE(shards.size() == 2);
  CHECK(shards[0].inputs == std::vector<fs::path>{scene.folder / "documents/a.jsonl",
                                                  scene.folder / "documents/b.jsonl"});
  CHECK(shards[1].output == scene.folder / "out/s-0001.jsonl");
  scene.stream().max_size_in_bytes = 1;
  CHECK(plan_mix(scene.stream(), true).size() == 4);
  mix(scene.options);
  CHECK(lines_of(scene.folder / "out/s-0003.jsonl").at(0)["id"] == "d");
}

TEST_CASE("without shuffle each input has its output, below the same folders", "[data]") {
  Scene scene;
  scene.add("en/a.jsonl", document("a", "1"));
  scene.add("b.jsonl", document("b", "2"));
  scene.options.shuffle = false;
  mix(scene.options);
  CHECK(lines_of(scene.folder / "out/documents/en/a.jsonl").at(0)["id"] == "a");
  CHECK(lines_of(scene.folder / "out/documents/b.jsonl").at(0)["id"] == "b");
}

TEST_CASE("attributes that do not belong to their documents stop the run with both places",
          "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "1") + document("b", "2"));
  scene.stream().attributes = {"x"};
  const struct {
    std::string lines;
    const char* says;
  } cases[] = {
      {attributes("a", Json::object()) + attributes("c", Json::object()),
       "x/a.jsonl:2: belongs to the document with the id \"c\", but "},
      {attributes("a", Json::object()), "x/a.jsonl: ends before line 2 of its documents "},
      {attributes("a", Json::object()) + attributes("b", Json::object()) +
           attributes("c", Json::object()),
       "x/a.jsonl: goes on behind the last line of its documents "},
      {"{\"id\": \"a\"}\n" + attributes("b", Json::object()), "x/a.jsonl:1: has no object"},
      {"no JSON\n" + attributes("b", Json::object()), "x/a.jsonl:1: is not valid JSON"},
  };
  for (const auto& [lines, says] : cases) {
    INFO(says);
    scene.write("attributes/x/a.jsonl", lines);
    const auto error = thrown_by([&] { mix(scene.options); });
    REQUIRE(error);
    CHECK((error->kind == ErrorKind::kInput && error->says(says)));
    CHECK_FALSE(fs::exists(scene.folder / "out"));
  }
  fs::remove(scene.folder / "attributes/x/a.jsonl");
  const auto absent = thrown_by([&] { mix(scene.options); });
  REQUIRE(absent);
  CHECK((absent->kind == ErrorKind::kInput && absent->says("attributes/x/a.jsonl")));
}

TEST_CASE("what should be a span and is none is told with its document", "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "12345"));
  scene.stream().attributes = {"x"};
  scene.stream().span_replacement = {
      {.span = JsonPath("$.attributes.s"), .min_score = {}, .max_score = {}}};
  for (const char* bad : {"[[0,1]]", "[[-1,1,1]]", "[[0,1,\"x\"]]", "7", "\"x\"", "[1,2]"}) {
    INFO(bad);
    scene.write("attributes/x/a.jsonl", attributes("a", {{"s", spans(bad)}}));
    const auto error = thrown_by([&] { mix(scene.options); });
    REQUIRE(error);
    CHECK((error->kind == ErrorKind::kInput &&
           error->says("a.jsonl:1: expected a span [begin, end, score], got ")));
  }
  for (const char* none : {"[]", "null"}) {
    INFO(none);
    scene.write("attributes/x/a.jsonl", attributes("a", {{"s", spans(none)}}));
    scene.options.overwrite = true;
    CHECK(scene.mixed() == Texts{{"a", "12345"}});
  }
}

TEST_CASE("what is mixed does not depend on threads", "[data]") {
  Scene scene;
  std::string documents, tags;
  for (int i = 0; i < 20'000; ++i) {
    documents += document(std::to_string(i), "text of " + std::to_string(i));
    tags += attributes(std::to_string(i), {{"n", i * i % 17}});
  }
  scene.add("a.jsonl", documents);
  scene.write("attributes/x/a.jsonl", tags);
  scene.stream().attributes = {"x"};
  scene.stream().exclude = {JsonPath("$.attributes[?(@.n < 8)]")};
  const auto one = scene.mixed();
  CHECK((one.size() > 1000 && one.size() < 19'000));
  scene.options.threads = 3;
  scene.options.overwrite = true;
  CHECK(scene.mixed() == one);
}

TEST_CASE("patterns without files, and outputs that meet or exist, are refused", "[data]") {
  Scene scene;
  scene.add("a.jsonl", document("a", "1"));
  auto nothing = scene.options;
  nothing.streams[0].documents = {(scene.folder / "documents/*.gz").string()};
  const auto none = thrown_by([&] { mix(nothing); });
  REQUIRE(none);
  CHECK((none->kind == ErrorKind::kInput && none->says("*.gz: matches no file")));
  auto twice = scene.options;
  twice.streams.push_back(twice.streams[0]);
  const auto meet = thrown_by([&] { mix(twice); });
  REQUIRE(meet);
  CHECK((meet->kind == ErrorKind::kUsage && meet->says("s-0000.jsonl")));
  mix(scene.options);
  const auto exists = thrown_by([&] { mix(scene.options); });
  REQUIRE(exists);
  CHECK((exists->kind == ErrorKind::kUsage && exists->says("--overwrite")));
}
