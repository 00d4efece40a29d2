#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "exports/tools.h"
#include "support/catch.h"

namespace olmo::test {

TEST_CASE("runs export writes several runs for each tool, and says what to type then", "[cli]") {
  const Scene scene;
  for (const char* name : {"a", "b"}) REQUIRE(scene.train(name, {"stop_at=2"}).code == 0);
  const std::string a = (scene / "a").string(), b = (scene / "b").string();
  for (const auto& tool : exports::tools()) {
    INFO(tool);
    const std::string folder = (scene / ("for " + tool)).string();
    const auto ended = harness(scene / "log", {"runs", "export", a, b, "--to", tool, folder});
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(std::count(ended.out.begin(), ended.out.end(), '\n') == 3);
    CHECK(ended.out.find(" of 2 steps\n") != std::string::npos);
    const auto advice = ended.out.find("look at it: ");
    REQUIRE(advice != std::string::npos);
    CHECK(ended.out.find("'" + folder, advice) != std::string::npos);  // for a shell
    CHECK_FALSE(fs::is_empty(folder));
  }
}

TEST_CASE("runs export refuses words that do not go together", "[cli]") {
  const Scene scene;
  fs::create_directory(scene / "a");
  store::RunDb::open(scene / "a" / "run.db", store::OpenMode::kCreate);
  const std::string a = (scene / "a").string();
  for (const auto& [words, sentence] : std::vector<std::pair<Words, std::string>>{
           {{a, "--to", "wandb"}, "needs the runs, and then the folder to write to"},
           {{a, "--to", "wandb", ""}, "the folder to write to has no name"},
           {{a, a}, "a table is of one run"},
           {{a, "x", "--to", "wandb", "--format", "csv"}, "--format"},
           {{a, "x", "--to", "wandbb"}, "wandb"},
           {{a, "--project", "p"}, "--to"}}) {
    Words all = {"runs", "export"};
    all.insert(all.end(), words.begin(), words.end());
    const auto ended = harness(scene / "log", all);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.err.find(sentence) != std::string::npos);
  }
}

}  // namespace olmo::test
