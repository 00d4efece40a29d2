#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/said.h"
#include "cli/words.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace {

using Json = nlohmann::json;
using olmo::test::Said;
using olmo::test::say;
using olmo::test::TemporaryDirectory;
using olmo::test::with;
using olmo::test::Words;

/// Two documents, and a mix that takes the second.
struct Scene {
  TemporaryDirectory folder;
  std::string config = (folder / "mix.yaml").string();
  std::string output = (folder / "out" / "s-0000.jsonl").string();

  Scene() {
    std::ofstream(folder / "a.jsonl") << "{\"id\":\"a\",\"text\":\"x\"}\n"
                                         "{\"id\":\"b\",\"text\":\"yy\"}\n";
    std::ofstream(config) << "streams:\n"
                             "  - name: s\n"
                             "    documents: ["
                          << (folder / "*.jsonl").string()
                          << "]\n"
                             "    filter: {exclude: [\"$[?(@.id == 'a')]\"]}\n"
                             "    compression: {output: ''}\n"
                             "    output: {path: "
                          << (folder / "out").string() << "}\n";
  }
  [[nodiscard]] Said mix(const Words& more) const {
    return say(with({"data", "mix", config}, more));
  }
};

}  // namespace

TEST_CASE("data mix writes what its config takes, and says how much", "[cli]") {
  const Scene scene;
  const Said said = scene.mix({});
  CHECK(said.code == 0);
  CHECK(
      said.out.starts_with("s: 1 of 2 documents, 2 B of text; left out 1 by filters, 0 too "
                           "short; 0 spans replaced\nwrote " +
                           scene.output + "\n"));
  CHECK(olmo::read_file(scene.output) ==
        R"({"id":"b","metadata":{"provenance":"a.jsonl:2"},"text":"yy"})"
        "\n");
}

TEST_CASE("data mix --dry-run shows what would be written and writes nothing", "[cli]") {
  const Scene scene;
  const Said text = scene.mix({"--dry-run"});
  CHECK(text.code == 0);
  CHECK(text.out == scene.output + ": from 1 file, " + (scene.folder / "a.jsonl").string() + "\n");
  const Said json = scene.mix({"dryrun=true", "--json"});
  CHECK(Json::parse(json.out).at("streams").at(0).at("outputs").at(0).at("path") == scene.output);
  CHECK_FALSE(std::filesystem::exists(scene.folder / "out"));
}

TEST_CASE("data mix --json tells the same in one object", "[cli]") {
  const Scene scene;
  const Json report = Json::parse(scene.mix({"--json"}).out);
  const Json& stream = report.at("streams").at(0);
  CHECK((stream.at("documents") == 2 && stream.at("filtered") == 1 && stream.at("written") == 1));
}

TEST_CASE("data mix refuses a config with the line that is wrong", "[cli]") {
  const Scene scene;
  const Said said = scene.mix({"streams.0.nmae=x"});
  CHECK(said.code == 2);
  CHECK(said.error.find("did you mean `name`?") != std::string::npos);
}
