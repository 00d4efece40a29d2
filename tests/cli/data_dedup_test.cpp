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

struct Scene {
  TemporaryDirectory folder;
  std::string input = (folder / "documents" / "a.jsonl").string();
  std::string output = (folder / "out.jsonl").string();

  Scene() {
    std::filesystem::create_directories(folder / "documents");
    std::ofstream(input) << "{\"id\":\"a\",\"text\":\"x\\ny\"}\n{\"id\":\"b\",\"text\":\"x\\ny\"}\n"
                            "{\"id\":\"c\",\"text\":\"z\\nx\"}\n";
  }
  [[nodiscard]] Said dedup(const Words& more) const {
    return say(with({"data", "dedup", input}, more));
  }
};

}  // namespace

TEST_CASE("data dedup says what it found and writes what remains", "[cli]") {
  const Scene scene;
  const Said said = scene.dedup({"--output", scene.output});
  CHECK(said.code == 0);
  CHECK(said.out.starts_with(scene.input + ": 3 documents, 1 found (33.33 %)\n"));
  CHECK(said.out.find("found: 1 of 3 documents, 3 B of 9 B of text (33.33 %)\nwrote " +
                      scene.output + "\n") != std::string::npos);
  CHECK(olmo::read_file(scene.output) ==
        "{\"id\":\"a\",\"text\":\"x\\ny\"}\n{\"id\":\"c\",\"text\":\"z\\nx\"}\n");
}

TEST_CASE("data dedup --json tells the same in one object", "[cli]") {
  const Scene scene;
  const Said said = scene.dedup({"--by", "paragraph", "--attributes", "dup", "--json"});
  CHECK(said.code == 0);
  const Json report = Json::parse(said.out);
  CHECK((report.at("documents") == 3 && report.at("duplicates") == 1));
  CHECK(report.at("sources").at(0).at("duplicate_paragraphs") == 3);
  CHECK(report.at("outputs").at(0) == (scene.folder / "attributes" / "dup" / "a.jsonl").string());
}

TEST_CASE("data dedup wants one kind of output", "[cli]") {
  const Scene scene;
  for (const Words& words : {Words{}, Words{"--output", scene.output, "--attributes", "dup"}}) {
    const Said said = scene.dedup(words);
    CHECK(said.code == 2);
    CHECK(said.error.find("give either --output FILE") != std::string::npos);
  }
}

TEST_CASE("data dedup against evaluation texts points to data fetch if they are not here",
          "[cli]") {
  const Scene scene;
  const Said said = scene.dedup({"--by", "words", "--against", "evaluation", "--data",
                                 (scene.folder / "none").string(), "--output", scene.output});
  CHECK(said.code == 3);
  CHECK(said.error.find("data fetch") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scene.output));
}
