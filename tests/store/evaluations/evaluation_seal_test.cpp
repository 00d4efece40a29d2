#include "store/evaluations/evaluation_seal.h"

#include "store/plain_evaluation.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::store::test {
namespace {

using olmo::test::TemporaryDirectory;

/// A database with one evaluation of a task and a suite, ended.
struct Recorded {
  Recorded() : records(folder / "run.db", OpenMode::kCreate), db(records) {
    auto record = olmo::test::plain_evaluation("run");
    record.attempt = 1;
    db.begin(record);
    for (const char* task : {"piqa", "arc"}) {
      db.begin_task(olmo::test::plain_task(task));
      OptionRow option;
      option.task = task;
      option.logprob = -0.5;
      option.rank = 1;
      db.record_options({&option, 1});
      DocumentRow document;
      document.suite = task;
      document.nll = 3.25;
      db.record_documents({&document, 1});
      EvaluationMetric metric;
      metric.task = task;
      metric.metric = "acc";
      metric.value = 1;
      metric.n = 1;
      db.record_metrics(task, {&metric, 1});
      db.end_task(task, "finished");
    }
    db.end("finished");
  }
  [[nodiscard]] SealCheck check() const { return check_seals(records, db.evaluation_id()); }

  TemporaryDirectory folder;
  RecordDatabase records;
  EvaluationDb db;
};

}  // namespace

TEST_CASE("an evaluation is sealed when it ends, and reads as sound", "[store]") {
  const Recorded recorded;
  CHECK(recorded.check().sealed);
  CHECK(recorded.check().altered.empty());
}

TEST_CASE("of one database each evaluation is checked once", "[store]") {
  Recorded recorded;
  SealChecks checks;
  CHECK(checks.of(recorded.records, recorded.db.evaluation_id()).altered.empty());
  recorded.records.write({{"UPDATE evaluation_metrics SET value = 0.5", {}}});
  CHECK(checks.of(recorded.records, recorded.db.evaluation_id()).altered.empty());
  CHECK(recorded.check().altered.size() == 2);
}

TEST_CASE("no value of an evaluation can be altered, added or removed without notice", "[store]") {
  Recorded recorded;
  for (const char* sql :
       {"UPDATE evaluation_options SET logprob = logprob + 1e-16 WHERE task = 'piqa'",
        "UPDATE evaluation_options SET logprob = NULL WHERE task = 'piqa'",
        "UPDATE evaluation_options SET label = 1 WHERE task = 'piqa'",
        "DELETE FROM evaluation_options WHERE task = 'piqa'",
        "UPDATE evaluation_documents SET nll = 3 WHERE task = 'piqa'",
        "UPDATE evaluation_metrics SET value = 0.9 WHERE task = 'piqa'",
        "INSERT INTO evaluation_metrics SELECT evaluation_id, task, scope, 'f1', value, NULL, "
        "NULL, "
        "NULL, n FROM evaluation_metrics WHERE task = 'piqa'",
        "UPDATE evaluation_tasks SET primary_metric = 'f1' WHERE task = 'piqa'",
        "UPDATE evaluations SET weights_digest = 'other'", "UPDATE evaluations SET step = 200",
        "UPDATE evaluations SET run_id = NULL", "DELETE FROM evaluation_tasks WHERE task = 'piqa'",
        "DELETE FROM evaluation_seals WHERE task = 'piqa'",
        "DELETE FROM evaluation_seals WHERE task = ''",
        "INSERT INTO evaluation_tasks SELECT evaluation_id, 'new', kind, convention, "
        "definition_digest, data_digest, primary_metric, status, message FROM evaluation_tasks "
        "WHERE task = 'piqa'"}) {
    INFO(sql);
    Database& db = recorded.records.connection();
    db.execute(std::string("BEGIN; ") + sql);
    CHECK(recorded.check().sealed);
    CHECK_FALSE(recorded.check().altered.empty());
    db.execute("ROLLBACK");
    REQUIRE(recorded.check().altered.empty());
  }
}

TEST_CASE("an evaluation that goes on is not sealed until it ends again", "[store]") {
  Recorded recorded;
  recorded.db.resume(recorded.db.evaluation_id());
  CHECK_FALSE(recorded.check().sealed);
  recorded.db.end("interrupted");
  CHECK(recorded.check().sealed);
  CHECK(recorded.check().altered.empty());
}

}  // namespace olmo::store::test
