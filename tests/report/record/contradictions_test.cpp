#include "report/record/contradictions.h"

#include "config/run_columns.h"
#include "config/train_config.h"
#include "core/hash.h"
#include "report/run_of_losses.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

store::AttemptRecord attempt(std::int64_t number, std::int64_t start_step = 0) {
  store::AttemptRecord made;
  made.attempt = number;
  made.outcome = "stopped";
  made.start_step = start_step;
  return made;
}

/// Twenty steps of a training to fifty, as it is recorded.
store::RecordedRun recorded() {
  const std::string config = R"({"seed": 7, "max_duration": 50})";
  const auto columns = config::run_columns(config);
  store::RecordedRun run =
      run_of_losses(std::vector<double>(20, 3), columns.value().tokens_per_step);
  run.config = config;
  run.chain_format = kChainFormat;
  run.experiment_digest =
      config::experiment_digest(config::parse_config(config, "config.json").config).hex();
  run.seed = columns->seed;
  run.n_parameters = columns->n_parameters;
  run.max_steps = *columns->max_steps;
  run.status = "stopped";
  run.attempts = {attempt(1)};
  run.attempts[0].world_size = 2;
  run.ranks = {{.rank = 0, .attempt = 1}, {.rank = 1, .attempt = 1}};
  return run;
}

/// The one sentence about a record of which something was edited.
template <class Edit>
std::string sentence(const Edit& edit) {
  store::RecordedRun run = recorded();
  edit(run);
  const auto found = contradictions_of(run);
  REQUIRE(found.size() == 1);
  return found[0];
}

}  // namespace

TEST_CASE("a record that nobody edited contradicts nothing", "[report]") {
  CHECK(contradictions_of(recorded()).empty());
  store::RecordedRun unreadable = recorded();
  unreadable.config = R"({"a key of a newer program": 1})";
  unreadable.seed = 8;
  CHECK(contradictions_of(unreadable).empty());
}

TEST_CASE("a record whose config cannot be read here says that it was not checked, and why",
          "[report]") {
  store::RecordedRun run = recorded();
  CHECK(unchecked_of(run).empty());
  run.config = R"({"a key of a newer program": 1})";
  CHECK(unchecked_of(run).find("was not checked against its config, which this olmo-harness cannot "
                               "read: config.json:1: `a key of a newer program`") == 0);
  run.config = R"({"seed": "another type"})";
  CHECK(unchecked_of(run).find("`seed`") != std::string::npos);
  run.imported = true;
  CHECK(unchecked_of(run).empty());
}

TEST_CASE("a record of an older format says that it was not checked against its config",
          "[report]") {
  store::RecordedRun run = recorded();
  run.chain_format = 1;
  CHECK(unchecked_of(run) == "was not checked against its config, as it has the older format 1");
}

TEST_CASE("a config that is no JSON object is no newer program's, but damage", "[report]") {
  CHECK(sentence([](auto& run) { run.config = R"({"seed": 7,)"; }) == kAlteredConfig);
  CHECK(sentence([](auto& run) { run.config = "[]"; }) == kAlteredConfig);
}

TEST_CASE("a column that is not what the config says is named with both values", "[report]") {
  CHECK(sentence([](auto& run) { run.seed = 8; }) ==
        "runs.seed is 8, and its config says 7: one of them was altered");
  CHECK(sentence([](auto& run) { run.n_parameters = 8; }).find("runs.n_parameters is 8, and ") ==
        0);
  CHECK(sentence([](auto& run) { run.max_steps = 20; }) ==
        "runs.max_steps is 20, and its config says 50: one of them was altered");
}

TEST_CASE("a later attempt may have another end, and no step lies behind it", "[report]") {
  store::RecordedRun run = recorded();
  run.attempts.push_back(attempt(2, 10));
  run.max_steps = 30;
  CHECK(contradictions_of(run).empty());
  run.max_steps = 15;
  CHECK(contradictions_of(run).front() ==
        "runs.max_steps is 15, and its last step is 20: one of them was altered");
}

TEST_CASE("the number of ranks is that of the ranks that were recorded", "[report]") {
  CHECK(sentence([](auto& run) { run.attempts[0].world_size = 8; }) ==
        "attempts.world_size of attempt 1 is 8, and the ranks that it recorded are 2: one of them "
        "was altered");
  store::RecordedRun older = recorded();
  older.ranks.clear();
  CHECK(contradictions_of(older).empty());
}

TEST_CASE("a strategy is that of the config, and of one rank that of one", "[report]") {
  CHECK(sentence([](auto& run) { run.attempts[0].strategy = "NO_SHARD"; }) ==
        "attempts.strategy of attempt 1 is NO_SHARD, and of 2 ranks its config gives FULL_SHARD: "
        "one of them was altered");
  CHECK(sentence([](auto& run) {
          run.attempts[0].strategy = "single";
        }).find("attempts.strategy of attempt 1 is single") == 0);
  store::RecordedRun run = recorded();
  run.attempts[0].strategy = "FULL_SHARD";
  run.attempts.push_back(attempt(2, 10));
  run.attempts[1].world_size = 4;
  run.attempts[1].strategy = "ddp";
  CHECK(contradictions_of(run).empty());
  run.attempts[1].strategy = "single";
  CHECK(contradictions_of(run).size() == 1);
}

TEST_CASE("a status is that of the last attempt, and no run diverges after its last step",
          "[report]") {
  CHECK(sentence([](auto& run) { run.status = "diverged"; }) ==
        "runs.status is diverged, and its last attempt is recorded as stopped: one of them was "
        "altered");
  CHECK(sentence([](auto& run) {
          run.steps = run_of_losses(std::vector<double>(50, 3), 524288).steps;
          run.status = run.attempts[0].outcome = "diverged";
        }).find("runs.status is diverged, and its last step is the last of the training") == 0);
  store::RecordedRun running = recorded();
  running.status = "running";
  running.attempts[0].outcome = "";
  CHECK(contradictions_of(running).empty());
}

TEST_CASE("a step that the config contradicts is among them", "[report]") {
  CHECK(sentence([](auto& run) {
          for (auto& tokens : run.steps.tokens) tokens *= 2;
        }).find("step 1: its tokens are 1048576 more than before") == 0);
}

TEST_CASE("the seed of a log is that of its config", "[report]") {
  CHECK(sentence([](auto& run) {
          run.imported = true;
          run.seed = 8;
        }).find("runs.seed is 8") == 0);
}

TEST_CASE("numerics of an attempt that its config does not say are told", "[report]") {
  CHECK(sentence([](auto& run) { run.attempts[0].policy = R"({"numerics":"fast"})"; }) ==
        "the numerics of attempt 1 is \"fast\", and its config says portable: one of them was "
        "altered");
  store::RecordedRun run = recorded();
  run.attempts[0].policy = R"({"numerics":"portable"})";
  CHECK(contradictions_of(run).empty());
  CHECK(sentence([](auto& altered) {
          altered.attempts.push_back(altered.attempts[0]);
          altered.attempts.back().attempt = 2;
          altered.attempts.back().policy = R"({"numerics":"fast"})";
        }).find("the numerics of attempt 2 is \"fast\"") == 0);
}

TEST_CASE("what no machine measures is told with the contradictions", "[report]") {
  CHECK(sentence([](auto& run) { run.ranks[0].compute_seconds = -5; }).find("compute_seconds") !=
        std::string::npos);
}

TEST_CASE("columns of steps whose chain is broken are left to the chain and to audits",
          "[report]") {
  const auto half = [](auto& run) {
    for (auto& tokens : run.steps.tokens) tokens /= 2;
  };
  CHECK(sentence(half).find("the column tokens was altered") != std::string::npos);
  store::RecordedRun run = recorded();
  half(run);
  run.damage = {{.step = 4, .quantity = "chain_hash", .sentence = "step 4: chain_hash …"}};
  CHECK(contradictions_of(run).empty());
}
