// What `train --dry-run` finds: all that would keep a run from starting, by the checks of a start.
#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/training.h"
#include "core/compute/libtorch.h"
#include "core/compute/machine.h"
#include "store/runs/run_folder.h"
#include "support/catch.h"
#include "train/session_alone.h"

using namespace olmo;
using namespace olmo::train;
using olmo::test::Words;

namespace {

namespace fs = std::filesystem;

/// A folder with tokens for the tiny config.
struct Place {
  test::TemporaryDirectory folder;
  std::string tokens = (folder / "tokens.npy").string();
  Place() { test::write_tokens(tokens, test::token_ids<std::uint16_t>()); }

  [[nodiscard]] TrainPlan plan(Words overrides, std::optional<std::string> resume = {},
                               const std::string& run_dir = "run") const {
    overrides.insert(overrides.begin(), {"data.paths=[" + tokens + "]", "threads=1"});
    const auto loaded = config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", overrides);
    return plan_session(loaded, {.run_dir = folder / run_dir,
                                 .database = {},
                                 .resume = std::move(resume),
                                 .command_line = {}});
  }
};

/// The messages, a line each.
std::string problems_of(const TrainPlan& plan) {
  std::string text;
  for (const auto& problem : plan.problems) text += std::string(problem.what()) + "\n";
  return text;
}

void check_names(const std::string& text, const Words& parts) {
  INFO(text);
  for (const auto& part : parts) {
    INFO("must say: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("the plan of a sound run has no problem, needs, a step time and the passes over its data",
          "[train]") {
  const Place place;
  const auto plan = place.plan({});
  INFO(problems_of(plan));
  CHECK(plan.problems.empty());
  REQUIRE(plan.step_time);
  CHECK(plan.step_time->seconds > 0);
  CHECK(plan.epochs() == 2.5);  // 20 steps of 8 sequences, 64 in the data
  REQUIRE(plan.needs);
  CHECK(plan.needs->memory == plan.memory.total());
  CHECK(plan.needs->checkpoint == 3 * 4 * plan.parameters.total);
  CHECK(plan.needs->free_on_disk.value_or(0) > 0);
  const auto json = to_json(plan);
  CHECK(json["problems"].empty());
  CHECK(json["step_time"]["seconds"] == plan.step_time->seconds);
  CHECK(json["machine"]["checkpoint_bytes"] == plan.needs->checkpoint);
  CHECK_FALSE(fs::exists(place.folder / "run"));
}

TEST_CASE("a plan for the folder of a running training says who has it", "[train]") {
  const Place place;
  const store::RunLock running(place.folder / "run");
  check_names(problems_of(place.plan({})),
              {"process " + std::to_string(::getpid()), "is writing to this run folder"});
  CHECK(running.held());
}

TEST_CASE("every problem of a plan is told at once, with the exit code of the start", "[train]") {
  const Place place;
  const auto plan = place.plan({"data.paths=[/no/a.npy,/no/b.npy]", "precision=amp_fp16"},
                               (place.folder / "none").string());
  check_names(problems_of(plan), {"/no/a.npy", "/no/b.npy", "precision", "none"});
  const auto json = to_json(plan);
  REQUIRE(json["problems"].size() == 4);
  CHECK(json["problems"][0]["exit_code"] == 2);
  CHECK(json["problems"][1]["exit_code"] == 3);
  check_names(to_text(plan), {"this run would not start", "/no/b.npy"});
}

TEST_CASE("a plan finds what a start would stop at", "[train]") {
  const Place place;
  const auto finds = [&](const Words& overrides, const Words& parts,
                         std::optional<std::string> resume = {},
                         const std::string& run_dir = "run") {
    const auto plan = place.plan(overrides, std::move(resume), run_dir);
    INFO(problems_of(plan));
    CHECK(plan.problems.size() == 1);
    check_names(problems_of(plan), parts);
  };
  finds({"data.paths=[https://olmo-data.org/a.npy]"},
        {"https://olmo-data.org/a.npy", "give local files"});
  finds({"data.paths=[/no/*.npy]"}, {"/no/*.npy", "path.glob"});
  finds({"data.paths=${path.glob:" + (place.folder / "x*.npy").string() + "}"}, {"x*.npy"});
  finds({"global_train_batch_size=128"}, {"64 instances", "too few"});
  finds({"load_weights=" + (place.folder / "none").string()}, {"none"});
  finds({}, {"none"}, (place.folder / "none").string());
  finds({}, {"tokens.npy", "not a directory"}, {}, "tokens.npy/run");
  finds({"evaluators=[{label: no_task, type: downstream}]"}, {"no_task"});
  std::ofstream(place.folder / "bad.db") << "no database, but long enough to be looked at";
  fs::create_directory(place.folder / "old");
  fs::rename(place.folder / "bad.db", place.folder / "old" / "run.db");
  finds({}, {"run.db"}, {}, "old");
}

TEST_CASE(
    "a plan in a folder that holds a run finds what a resume would, and changes nothing there",
    "[train]") {
  const Place place;
  const auto loaded =
      config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json",
                          {"data.paths=[" + place.tokens + "]", "threads=1", "stop_at=2"});
  run_session(loaded,
              {.run_dir = place.folder / "run", .database = {}, .resume = {}, .command_line = {}});
  const auto listing = [&] {
    Words names;
    for (const auto& entry : fs::recursive_directory_iterator(place.folder / "run")) {
      const std::string name = entry.path().string();
      if (!name.ends_with("-wal") && !name.ends_with("-shm")) names.push_back(name);  // of a reader
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto before = listing();
  check_names(problems_of(place.plan({})), {"already holds checkpoints", "--resume latest"});
  CHECK(problems_of(place.plan({}, "latest")).empty());
  check_names(problems_of(place.plan({"optimizer.learning_rate=1"}, "latest")),
              {"another config", "optimizer.learning_rate"});
  auto ids = test::token_ids<std::uint16_t>();
  ids[5] = 3;
  test::write_tokens(place.tokens, ids);
  check_names(problems_of(place.plan({}, "latest")), {"tokens.npy"});
  CHECK(listing() == before);
}

TEST_CASE("a model that the machine has no memory for is a problem in words", "[train]") {
  const auto of_batch = [](const config::TrainConfig& config) {
    return config.micro_batch() << 30;
  };
  Needs needs{.memory = std::int64_t{83} << 30,
              .memory_of = of_batch,
              .machine = {.total = std::uint64_t{64} << 30,
                          .available = std::uint64_t{20} << 30,
                          .limit = std::uint64_t{25} << 30},
              .checkpoint = std::int64_t{70} << 30,
              .checkpoints = 2,
              .free_on_disk = std::uint64_t{10} << 30};
  const auto lines = shortages(needs, {}, "runs/a");
  REQUIRE(lines.size() == 2);
  check_names(lines[0], {"needs 83 GiB", "you have 25 GiB", "control group", "less is needed",
                         "device_train_microbatch_size=1 with", "(1.00 GiB)"});
  check_names(lines[1], {"needs 70 GiB", "10 GiB are free"});
  needs.free_on_disk = std::uint64_t{5} << 19;
  check_names(shortages(needs, {}, "runs/a")[1], {"needs 70 GiB", "2.5 MiB are free"});
  needs.machine.limit.reset();
  needs.memory = std::int64_t{63} << 30;
  needs.free_on_disk = std::uint64_t{71} << 30;
  CHECK(shortages(needs, {}, "runs/a").empty());
}

TEST_CASE("the step time of a model too large to try is reckoned from a part of it", "[train]") {
  const auto config = config::load_config(OLMO_SOURCE_DIR "/configs/train/olmo-7b.json").config;
  const auto policy = resolve_policy("portable", "auto", 2);
  apply_policy(policy);
  const auto time = estimate_step_time(config, policy);
  CHECK(time.seconds > 60);
  check_names(time.how, {"reckoned", "layers"});
}

TEST_CASE("what a run holds in a GPU's memory is not held against that of the host", "[train]") {
  config::TrainConfig config;
  MemoryPlan weights, batch;
  weights.weights = batch.data = std::int64_t{1} << 50;
  const auto shortage = [&](const MemoryPlan& plan) -> std::string {
    const auto of_host = [&](const config::TrainConfig& one) { return plan.on_host(one.device); };
    for (const auto& line : shortages(needs_of(config, of_host, "/", {}), config, "/"))
      if (line.starts_with("memory")) return line;
    return "";
  };
  CHECK_FALSE(shortage(weights).empty());
  config.device = "cuda";
  CHECK(shortage(weights).empty());
  CHECK_FALSE(shortage(batch).empty());
}

TEST_CASE("what makes activations smaller is no way out of a shortage of a GPU's host", "[train]") {
  const Place place;
  const auto problems = problems_of(
      place.plan({"device=cuda", "global_train_batch_size=16777216",
                  "device_train_microbatch_size=1024", "model.max_sequence_length=65536"}));
  check_names(problems, {"memory: a step needs", "only a smaller model"});
}

TEST_CASE("this machine tells its memory", "[train]") {
  const auto memory = machine_memory();
  REQUIRE(memory.usable());
  CHECK(*memory.usable() > (std::uint64_t{1} << 28));
  CHECK(*memory.usable() <= memory.total.value_or(0));
}
