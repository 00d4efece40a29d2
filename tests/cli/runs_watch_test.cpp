#include "cli/training.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/says.h"

namespace olmo::test {
namespace {

Ended watch(const Scene& scene, Words words) {
  words.insert(words.begin(), {"runs", "watch"});
  return harness(scene / "watch-log", words);
}

}  // namespace

TEST_CASE("runs watch --once prints one page of a finished run and ends", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=5", "run_name=five"}).code == 0);
  const auto ended = watch(scene, {(scene / "run").string(), "--once"});
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  for (const char* part : {"five", "finished", "step 5", "loss", "checkpoints", "finish: step 5"}) {
    INFO(part << "\n" << ended.out);
    CHECK(says(ended.out, part));
  }
  CHECK_FALSE(says(ended.out, "\x1b"));
}

TEST_CASE("runs watch into a file prints a line a look until the run has ended", "[cli]") {
  const Scene scene;
  StoppingChild training(scene.command("run", {"stop_at=20", "run_name=live"}), scene / "log",
                         "manifest.json");
  REQUIRE(training.stops_when([] { return true; }));
  Child watching({OLMO_BINARY, "runs", "watch", (scene / "run").string(), "--interval", "1"},
                 scene / "watch");
  REQUIRE(happens([&] { return says(read_file(scene / "watch.out"), "live  running"); }));
  CHECK(watching.running());
  CHECK(training.wait().code == 0);
  const auto ended = watching.wait();
  CHECK(ended.code == 0);
  CHECK(says(ended.out, "live  finished | step 20"));
}

TEST_CASE("runs watch does not take a training that was killed for one that runs", "[cli]") {
  const Scene scene;
  StoppingChild training(scene.command("run", {"stop_at=20"}), scene / "log", "manifest.json");
  REQUIRE(training.stops_when([] { return true; }));
  training.signal(SIGKILL);
  training.wait();
  const auto ended = watch(scene, {(scene / "run").string(), "--once"});
  CHECK(ended.code == 0);
  INFO(ended.out);
  CHECK(says(ended.out, "not running"));
}

TEST_CASE("runs watch --once of what is not there or damaged is one sentence", "[cli]") {
  const Scene scene;
  const auto absent = watch(scene, {(scene / "nothing.db").string(), "--once"});
  CHECK(absent.code == 2);
  CHECK(says(absent.err, "there is no such run database"));
  std::ofstream(scene / "bad.db") << "SQLite format 3" << '\0' << std::string(4000, 'x');
  const auto damaged = watch(scene, {(scene / "bad.db").string(), "--once"});
  CHECK(damaged.code == 4);
  CHECK(std::count(damaged.err.begin(), damaged.err.end(), '\n') == 1);
}

}  // namespace olmo::test
