#include "report/missing_rows.h"

#include "core/hash.h"
#include "report/run_of_losses.h"
#include "store/audit_records.h"
#include "store/plain_records.h"
#include "store/run_db.h"
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
    run.inputs = {{"tokens", "/data/a.npy", 9, "1"}, {"tokens", "/data/b.npy", 9, "2"}};
    for (const std::int64_t step : {0, 5, 10}) run.state_hashes[step] = {{"model", "a", "1"}};
    for (const std::int64_t step : {1, 4, 8}) trace(step);
  }

  void trace(std::int64_t step, std::int64_t attempt = 1) {
    store::record_trace(db_.records(), run.run_id, {.attempt = attempt, .audit = 0}, step,
                        std::vector<OpDigest>{{"forward", sha256("x")}});
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
  killed.run.status = "running";
  for (auto* column : {&killed.run.steps.step, &killed.run.steps.tokens}) column->resize(8);
  for (auto* column : {&killed.run.steps.loss, &killed.run.steps.grad_norm}) column->resize(8);
  killed.run.state_hashes.erase(10);
  killed.forget_trace(8);
  CHECK(killed.missing().empty());

  killed.run.attempts.push_back(test::plain_attempt(6));  // it went back
  killed.run.attempts[1].attempt = 2;
  killed.run.attempts[1].world_size = 1;
  killed.run.ranks.push_back({.rank = 0, .attempt = 2});
  CHECK(killed.missing().empty());
  killed.forget_trace(4);
  CHECK(killed.missing().size() == 1);
}

TEST_CASE("a rank that is lost between a step and the hashes of its state costs these",
          "[report]") {
  Recorded failed;
  failed.run.attempts[0].outcome = failed.run.status = "failed";
  failed.run.state_hashes.erase(10);
  CHECK(failed.missing().empty());
  failed.run.state_hashes.erase(5);
  CHECK(failed.missing().size() == 1);
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
