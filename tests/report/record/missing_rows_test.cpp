#include "report/record/missing_rows.h"

#include "core/hash.h"
#include "report/run_of_losses.h"
#include "store/plain_evaluation.h"
#include "store/plain_records.h"
#include "store/runs/op_traces.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;

namespace {

/// Ten steps that ended in order: every fourth is traced and every fifth is hashed.
class Recorded {
 public:
  explicit Recorded(const std::string& paths = R"("a.npy", "b.npy", "a.npy")")
      : db_(store::RunDb::open(folder_ / "run.db", store::OpenMode::kCreate)),
        run(run_of_losses(std::vector<double>(10, 3))) {
    run.run_id = db_.begin_run(test::plain_run(), test::plain_attempt(), {});
    run.config =
        R"({"trace_interval": 4, "hash_interval": 5, "max_duration": 10, "data": {"paths": [)" +
        paths + "]}}";
    run.chain_format = kChainFormat;
    run.status = "finished";
    run.max_steps = 10;
    run.attempts = {test::plain_attempt()};
    run.attempts[0].attempt = 1;
    run.attempts[0].outcome = "finished";
    run.attempts[0].world_size = 2;
    run.ranks = {{.rank = 0, .attempt = 1}, {.rank = 1, .attempt = 1}};
    event(0, "start");
    event(10, "finish");
    run.inputs = {{"tokens", "/data/a.npy", 9, "1"}, {"tokens", "/data/b.npy", 9, "2"}};
    for (const std::int64_t step : {0, 5, 10}) run.state_hashes[step] = {{"model", "a", "1"}};
    for (const std::int64_t step : {1, 4, 8}) trace(step);
  }

  void trace(std::int64_t step, std::int64_t attempt = 1) {
    store::record_trace(db_.records(), run.run_id, {.attempt = attempt, .audit = 0}, step,
                        std::vector<OpDigest>{{"forward", sha256("x")}});
  }
  void event(std::int64_t step, const std::string& kind, std::int64_t attempt = 1) {
    run.events.push_back({.attempt = attempt,
                          .step = step,
                          .utc = "",
                          .kind = kind,
                          .message = kind == "start" ? "from initial weights" : "a checkpoint"});
  }
  void checkpoint(std::int64_t step) {
    db_.record_checkpoint({step, "step" + std::to_string(step), 1, "", 0, 0});
  }
  void score(std::int64_t step) {
    db_.record_metric(step, "eval/downstream/piqa_acc", 0.5);
    db_.flush();
  }
  /// Begins to evaluate a step.
  void evaluate(std::int64_t step) {
    auto record = test::plain_evaluation(run.run_id, step);
    record.attempt = 1;
    store::EvaluationDb(db_.records()).begin(record);
  }
  void forget_trace(std::int64_t step) {
    db_.records().connection().execute("DELETE FROM op_traces WHERE step = " +
                                       std::to_string(step));
  }
  [[nodiscard]] std::vector<std::string> missing() const {
    return missing_rows(db_.records(), run);
  }

 private:
  test::TemporaryDirectory folder_;
  store::RunDb db_;

 public:
  store::RecordedRun run;
};

}  // namespace

TEST_CASE("a record with all its rows lacks none", "[report]") {
  CHECK(Recorded().missing().empty());
  CHECK(Recorded(R"("a.npy", "/data/a.npy", "b.npy")").missing().empty());  // two names of one file
}

TEST_CASE("traces that the config asks for are told by the first that is missing", "[report]") {
  for (const std::int64_t step : {1, 4, 8}) {
    Recorded record;
    record.forget_trace(step);
    const auto found = record.missing();
    REQUIRE(found.size() == 1);
    CHECK(found[0] ==
          "step " + std::to_string(step) +
              ": no operation of it is recorded, and its config has all of them traced: "
              "rows of op_traces were removed");
  }
}

TEST_CASE("states that every training hashes are told by their step", "[report]") {
  for (const std::int64_t step : {0, 5, 10}) {
    Recorded record;
    record.run.state_hashes.erase(step);
    const auto found = record.missing();
    REQUIRE_FALSE(found.empty());
    CHECK(found[0].find("step " + std::to_string(step) + ": no hash of its state") == 0);
  }
}

TEST_CASE("ranks and token files that are missing are told", "[report]") {
  Recorded record;
  record.run.ranks.clear();
  record.run.inputs.pop_back();
  CHECK(
      record.missing() ==
      std::vector<std::string>{
          "its config names 2 token files, and the record has 1: rows of inputs were removed",
          "attempt 1 was trained by 2 ranks, and the record has none: rows of ranks were removed"});
}

TEST_CASE("what a kill may have cost is not expected, nor what a later attempt was told",
          "[report]") {
  Recorded killed;
  killed.run.attempts[0].outcome.clear();
  killed.run.events.pop_back();
  killed.run.status = "running";
  for (auto* column : {&killed.run.steps.step, &killed.run.steps.tokens}) column->resize(8);
  for (auto* column : {&killed.run.steps.loss, &killed.run.steps.grad_norm}) column->resize(8);
  killed.run.state_hashes.erase(10);
  killed.forget_trace(8);
  CHECK(killed.missing().empty());

  killed.run.attempts.push_back(test::plain_attempt(6));  // it went back
  killed.run.attempts[1].attempt = 2;
  killed.run.attempts[1].world_size = 1;
  killed.event(6, "resume", 2);
  killed.run.ranks.push_back({.rank = 0, .attempt = 2});
  CHECK(killed.missing().empty());
  killed.forget_trace(4);
  CHECK(killed.missing().size() == 1);
}

TEST_CASE("a rank that is lost between a step and the hashes of its state costs these",
          "[report]") {
  Recorded failed;
  failed.run.attempts[0].outcome = failed.run.status = "failed";
  failed.event(10, "error");
  failed.run.state_hashes.erase(10);
  CHECK(failed.missing().empty());
  failed.run.state_hashes.erase(5);
  CHECK(failed.missing().size() == 1);
}

namespace {

/// The first sentence about a record of which something was taken.
template <class Edit>
std::string told_of(const Edit& edit) {
  Recorded record;
  edit(record);
  const auto found = record.missing();
  REQUIRE_FALSE(found.empty());
  return found[0];
}

}  // namespace

TEST_CASE("attempts count from 1, and what names a later one tells that it was removed",
          "[report]") {
  CHECK(told_of([](Recorded& record) {
          record.run.attempts[0].attempt = 2;
          for (auto& event : record.run.events) event.attempt = 2;
          record.run.ranks.clear();
          record.run.attempts[0].world_size.reset();
        }) == "attempt 1 is not in the record: rows of attempts were removed");
  CHECK(told_of([](Recorded& record) {
          record.event(10, "resume", 2);
        }).find("attempt 2, which has events, is not in the record") == 0);
  CHECK(told_of([](Recorded& record) { record.run.audits.emplace_back().audit = 2; }) ==
        "audit 1 is not in the record: rows of audits were removed");
}

TEST_CASE("an attempt has the events of its start and of its end", "[report]") {
  CHECK(told_of([](Recorded& record) { record.run.events.erase(record.run.events.begin()); }) ==
        "attempt 1 has no event of its start: rows of events were removed");
  CHECK(told_of([](Recorded& record) {
          record.run.events.pop_back();
        }).find("attempt 1 is recorded as finished and has no event of that (finish): ") == 0);
  CHECK(told_of([](Recorded& record) {
          record.run.attempts[0].outcome = "stopped";
        }).find("attempt 1 is recorded as stopped and has no event of that (stop): ") == 0);
}

TEST_CASE("an attempt began where the event of its start says", "[report]") {
  CHECK(told_of([](Recorded& record) { record.run.attempts[0].resumed_from = "step5"; }) ==
        "attempt 1 went on from step5, and its event says \"from initial weights\": one of them "
        "was altered");
  CHECK(told_of([](Recorded& record) {
          record.run.events[0].message = "from step5";
        }).find("attempt 1 went on from no checkpoint, and its event says \"from step5\"") == 0);
}

TEST_CASE("a checkpoint and its event tell of each other", "[report]") {
  Recorded record;
  record.checkpoint(5);
  CHECK(record.missing().at(0).find("step 5: its checkpoint is recorded without its event") == 0);
  record.event(5, "checkpoint");
  CHECK(record.missing().empty());
  record.event(8, "checkpoint");
  CHECK(record.missing().at(0).find("step 8: an event tells of its checkpoint") == 0);

  Recorded killed;  // between the two
  killed.checkpoint(5);
  killed.run.attempts[0].outcome.clear();
  CHECK(killed.missing().empty());
}

TEST_CASE("events and later attempts tell of steps that were removed from the end", "[report]") {
  const auto cut = [](Recorded& record) {
    for (auto* column : {&record.run.steps.step, &record.run.steps.tokens}) column->resize(7);
    for (auto* column : {&record.run.steps.loss, &record.run.steps.grad_norm}) column->resize(7);
    record.run.state_hashes.erase(10);
  };
  CHECK(told_of(cut) ==
        "step 10: an event tells of it (finish), and the record ends at step 7: "
        "rows of steps were removed");
  Recorded left;  // the run went back to step 6 and was killed
  left.run.attempts.push_back(test::plain_attempt(6));
  left.run.attempts[1].attempt = 2;
  left.run.status = "running";
  left.run.attempts[1].world_size = 1;
  left.run.ranks.push_back({.rank = 0, .attempt = 2});
  left.event(6, "resume", 2);
  cut(left);
  CHECK(left.missing().empty());
  left.event(8, "error", 2);  // of the step after the last
  CHECK(left.missing().empty());
  left.run.attempts[1].start_step = 9;
  CHECK(left.missing().at(0).find("step 9: attempt 2 went on from it, and the record ends at step "
                                  "7: rows of steps were removed") == 0);
}

TEST_CASE("evaluations that the config asks for are told by the first that is missing",
          "[report]") {
  Recorded record;
  record.run.config.insert(
      1, R"("eval_interval": 3, "evaluators": [{"label": "piqa", "type": "downstream"}], )");
  record.evaluate(3);
  record.evaluate(9);
  CHECK(record.missing().at(0).find("step 6: no evaluation of it is recorded") == 0);
  record.evaluate(6);
  CHECK(record.missing().empty());
  record.score(7);
  CHECK(record.missing().at(0).find("step 7: scores of it are recorded, and no evaluation") == 0);

  Recorded without;  // its data were not there
  without.run.config = record.run.config;
  CHECK(without.missing().empty());
}

TEST_CASE("a config that asks for no traces promises none, and logs promise nothing", "[report]") {
  Recorded record;
  for (const std::int64_t step : {1, 4, 8}) record.forget_trace(step);
  std::string& config = record.run.config;
  config.replace(config.find('4'), 1, "0");
  CHECK(record.missing().empty());
  config.replace(config.find('0'), 1, "4");
  CHECK_FALSE(record.missing().empty());
  record.run.chain_format = 1;
  CHECK(record.missing().empty());
  record.run.chain_format = kChainFormat;
  record.run.imported = true;
  CHECK(record.missing().empty());
}
