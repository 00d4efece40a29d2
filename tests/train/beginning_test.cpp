#include "train/beginning.h"

#include "config/train_config.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::train;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// What is wrong with a start in `run_dir`, of a config with these settings; "" if nothing is.
std::string problem_in(const fs::path& run_dir, const std::vector<std::string>& settings = {}) {
  const auto config =
      config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", settings).config;
  const SessionOptions options{run_dir, {}, {}, ""};
  Preparation nothing;
  Problems problems;
  check_beginning(options, config, nothing, problems);
  REQUIRE(problems.all().size() <= 1);
  return problems.all().empty() ? "" : problems.all().front().what();
}

}  // namespace

TEST_CASE("a new run begins in a folder without checkpoints, or in one it may overwrite",
          "[train]") {
  const store::test::TempFolder folder;
  CHECK(problem_in(folder.path()).empty());
  CHECK(problem_in(folder / "to come").empty());
  const auto saved = store::save_checkpoint(folder.path(), store::test::example(3)).path;
  CHECK_THAT(problem_in(folder.path()), Contains("(the last is step3): go on with --resume"));
  CHECK(problem_in(folder.path(), {"save_overwrite=true"}).empty());
  fs::resize_file(saved / "checkpoint.h5", 10);
  CHECK_THAT(problem_in(folder.path()),
             Contains("none of which can be read (") && Contains("): choose another --run-dir"));
}

TEST_CASE("load_path takes over weights and counters together, or nothing", "[train]") {
  const store::test::TempFolder folder;
  const auto from = "load_path=" + (folder / "absent").string();
  CHECK_THAT(problem_in(folder.path(), {from}), Contains("absent"));
  CHECK_THAT(problem_in(folder.path(), {from, "reset_optimizer_state=true"}),
             Contains("must be equal here"));
}
