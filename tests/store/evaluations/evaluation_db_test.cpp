#include "store/evaluations/evaluation_db.h"

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>

#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/database/schema.h"
#include "store/plain_evaluation.h"
#include "store/plain_records.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::plain_task;
using olmo::test::TemporaryDirectory;

namespace {

EvaluationRecord an_evaluation(const std::string& content_key = "key") {
  auto record = test::plain_evaluation("20260101T000000-00000000");
  record.content_key = content_key;
  record.settings = R"({"limit":10})";
  return record;
}

/// Two options of an instance, the first of which is chosen.
std::vector<OptionRow> an_instance(std::int64_t doc_id, std::int64_t chosen = 0,
                                   const std::string& task = "piqa") {
  std::vector<OptionRow> rows(2);
  for (std::int64_t i = 0; i < 2; ++i) {
    OptionRow& row = rows[static_cast<std::size_t>(i)];
    row.task = task;
    row.doc_id = doc_id;
    row.cont_id = i;
    row.native_id = "id-" + std::to_string(doc_id);
    row.label = 1;
    row.ctx_tokens = 17;
    row.cont_tokens = 3;
    row.cont_chars = 9;
    row.cont_bytes = 11;
    row.truncated_tokens = 2;
    row.request_hash = std::string(64, 'e');
    row.logprob = std::nextafter(-1.0 / 3.0, -1.0) - static_cast<double>(i);
    row.is_greedy = i == 0;
    row.rank = i == chosen ? 1 : 2;
    row.margin = i == chosen ? 0.5 : -0.5;
  }
  rows[0].unconditional_logprob = -std::numeric_limits<double>::infinity();
  rows[0].unconditional_logit_sum = std::numeric_limits<double>::denorm_min();
  return rows;
}

DocumentRow a_document(std::int64_t index) {
  return {.suite = "paloma",
          .source = "c4",
          .subdomain = "",
          .index = index,
          .document = "val.jsonl#" + std::to_string(index),
          .windows = 2,
          .tokens = 3000,
          .bytes = 12000,
          .chars = 11990,
          .words = 2000,
          .text_hash = std::string(64, 'b'),
          .nll = 9000.1};
}

StepRecord a_step(std::int64_t step) {
  StepRecord row;
  row.step = step;
  row.batch_hash = row.chain_hash = "h";
  return row;
}

bool equal(const OptionRow& a, const OptionRow& b) {
  return a.task == b.task && a.doc_id == b.doc_id && a.cont_id == b.cont_id &&
         a.native_id == b.native_id && a.label == b.label && a.ctx_tokens == b.ctx_tokens &&
         a.cont_tokens == b.cont_tokens && a.cont_chars == b.cont_chars &&
         a.cont_bytes == b.cont_bytes && a.truncated_tokens == b.truncated_tokens &&
         a.request_hash == b.request_hash && a.logprob == b.logprob && a.is_greedy == b.is_greedy &&
         a.unconditional_logprob == b.unconditional_logprob &&
         a.unconditional_logit_sum == b.unconditional_logit_sum && a.rank == b.rank &&
         a.margin == b.margin;
}

/// What version 1 of the harness left behind: one run with its tables only.
void make_version_1(const std::filesystem::path& path) {
  Database db(path, OpenMode::kCreate);
  db.execute(kMigrations[0]);
  db.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
             "; PRAGMA user_version = 1");
  db.execute(
      "INSERT INTO runs VALUES ('20260101T000000-00000000', 'old', '2026-01-01', "
      "'finished', '{}', 'd', 1, 10, 100)");
}

}  // namespace

TEST_CASE("options, documents and metrics come back with the same bits", "[store]") {
  const TemporaryDirectory folder;
  std::string id;
  std::vector<OptionRow> written = an_instance(7);
  {
    RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
    EvaluationDb db(records);
    id = db.begin(an_evaluation());
    db.begin_task(plain_task());
    db.record_options(written);
    db.begin_task({"paloma", "perplexity", "catwalk", "f", "d", "ppl_token"});
    db.record_documents(std::vector{a_document(1), a_document(0)});
    db.record_metrics(
        "piqa", std::vector<EvaluationMetric>{{"piqa", "", "acc", 0.1, 0.01, 0.08, 0.12, 1},
                                              {"piqa", "category=x", "acc", NAN, {}, {}, {}, 0}});
    db.end_task("piqa", "finished");
    db.end_task("paloma", "failed", "it is cut short");
    db.end("failed");
  }
  RecordDatabase records(folder / "evals.db", OpenMode::kReadOnly);
  const EvaluationDb db(records);
  CHECK(db.find("") == id);
  const auto read = db.options(id, "piqa");
  REQUIRE(read.size() == 2);
  CHECK(equal(read[0], written[0]));
  CHECK(equal(read[1], written[1]));
  CHECK(db.instance(id, "piqa", 7).size() == 2);
  CHECK(db.instance(id, "piqa", 8).empty());
  const auto documents = db.documents(id, "paloma");
  REQUIRE(documents.size() == 2);
  CHECK(documents[0].index == 0);
  CHECK(documents[1].document == "val.jsonl#1");
  CHECK(documents[1].words == 2000);
  CHECK(documents[1].nll == 9000.1);
  const auto metrics = db.metrics(id, "piqa");
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].value == 0.1);
  CHECK(metrics[0].high == 0.12);
  CHECK(std::isnan(metrics[1].value));
  CHECK_FALSE(metrics[1].standard_error);
  const auto tasks = db.tasks(id);
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].record.task == "piqa");
  CHECK(tasks[1].status == "failed");
  CHECK(tasks[1].message == "it is cut short");
  const auto entry = db.entry(id);
  CHECK(entry.status == "failed");
  CHECK(entry.ended_utc);
  CHECK(entry.record.step == 100);
  CHECK_FALSE(entry.record.attempt);
  CHECK(entry.record.settings == R"({"limit":10})");
}

TEST_CASE("a score that is not a number comes back as one", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  EvaluationDb db(records);
  const auto id = db.begin(an_evaluation());
  db.begin_task(plain_task());
  auto rows = an_instance(0);
  rows[0].logprob = NAN;
  rows[1].margin = NAN;
  db.record_options(rows);
  db.flush();
  const auto read = db.options(id, "piqa");
  CHECK(std::isnan(read[0].logprob));
  CHECK(std::isnan(read[1].margin));
}

TEST_CASE("an interrupted evaluation goes on where it stopped", "[store]") {
  const TemporaryDirectory folder;
  std::string id;
  {
    RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
    EvaluationDb db(records);
    id = db.begin(an_evaluation());
    db.begin_task(plain_task());
    for (const std::int64_t doc_id : {4, 2}) db.record_options(an_instance(doc_id));
    db.end("interrupted");
    db.begin(an_evaluation("another key"));
    db.end("finished");
  }
  RecordDatabase records(folder / "evals.db", OpenMode::kReadWrite);
  EvaluationDb db(records);
  CHECK_FALSE(db.find_unfinished(an_evaluation("no such key")));
  CHECK_FALSE(db.find_unfinished(an_evaluation("another key")));
  REQUIRE(db.find_unfinished(an_evaluation("key")) == id);
  auto other_step = an_evaluation("key"), no_run = an_evaluation("key");
  other_step.step = 200;
  no_run.run_id.reset();
  CHECK_FALSE(db.find_unfinished(other_step));
  CHECK_FALSE(db.find_unfinished(no_run));
  db.resume(id);
  CHECK(db.entry(id).status == "running");
  CHECK_FALSE(db.entry(id).ended_utc);
  db.begin_task(plain_task());
  CHECK(db.done_instances("piqa") == std::set<std::int64_t>{2, 4});
  CHECK(db.done_instances("winogrande").empty());
  db.record_options(an_instance(4));  // the same rows again do no harm
  db.flush();
  CHECK(db.options(id, "piqa").size() == 4);
  db.end("finished");
  CHECK_FALSE(db.find_unfinished(an_evaluation("key")));
}

TEST_CASE("a task whose data changed begins anew", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  EvaluationDb db(records);
  const auto id = db.begin(an_evaluation());
  for (const char* task : {"piqa", "copa"}) {
    db.begin_task(plain_task(task));
    db.record_options(an_instance(1, 0, task));
    db.record_metrics(task, std::vector<EvaluationMetric>{{task, "", "acc", 1.0, {}, {}, {}, 1}});
  }
  auto with_other_data = plain_task("piqa");
  with_other_data.data_digest = "other data";
  db.begin_task(with_other_data);
  CHECK(db.done_instances("piqa").empty());
  CHECK(db.metrics(id, "piqa").empty());
  CHECK(db.done_instances("copa") == std::set<std::int64_t>{1});
}

TEST_CASE("a killed evaluation keeps whole instances only", "[store]") {
  const TemporaryDirectory folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = olmo::test::fork_briefly();
  if (child == 0) {
    try {
      RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
      EvaluationDb db(records);
      db.begin(an_evaluation());
      db.begin_task(plain_task());
      for (std::int64_t doc_id = 0;; ++doc_id) {
        db.record_options(an_instance(doc_id));
        if (doc_id % 7 == 0) db.flush();
        if (doc_id == 21 && ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    } catch (const Error&) {
      ::_exit(1);
    }
  }
  ::close(ready[1]);
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  RecordDatabase records(folder / "evals.db", OpenMode::kReadWrite);
  EvaluationDb db(records);
  const auto id = db.find_unfinished(an_evaluation("key"));
  REQUIRE(id);
  db.resume(*id);
  const auto done = db.done_instances("piqa");
  CHECK(done.size() >= 22);
  CHECK(db.options(*id, "piqa").size() == 2 * done.size());
}

TEST_CASE("a run and its evaluations write through one connection", "[store]") {
  const TemporaryDirectory folder;
  std::string id;
  {
    RunDb run = RunDb::open(folder / "run.db", OpenMode::kCreate);
    run.begin_run(test::plain_run("test"), test::plain_attempt(), {});
    EvaluationDb evaluations(run.records());
    EvaluationRecord record = an_evaluation();
    record.run_id = run.run_id();
    record.attempt = run.attempt();
    record.step = 1;
    run.record_step(a_step(1));
    id = evaluations.begin(record);
    evaluations.begin_task(plain_task());
    evaluations.record_options(an_instance(0));
    run.record_step(a_step(2));
    evaluations.record_metrics(
        "piqa", std::vector<EvaluationMetric>{{"piqa", "", "acc", 0.25, {}, {}, {}, 4}});
    evaluations.end_task("piqa", "finished");
    evaluations.end("finished");
  }
  RunDb run = RunDb::open(folder / "run.db", OpenMode::kReadOnly);
  const EvaluationDb evaluations(run.records());
  CHECK(evaluations.list(run.find_run("")).size() == 1);
  CHECK(evaluations.list("another run").empty());
  CHECK(evaluations.options(id, "piqa").size() == 2);
  run.query("SELECT step, task, metric, value FROM evaluation_curve", {},
            [](const auto&, const auto& row) {
              CHECK(std::get<std::int64_t>(row[0]) == 1);
              CHECK(std::get<double>(row[3]) == 0.25);
            });
  run.query("SELECT count(*) FROM steps", {},
            [](const auto&, const auto& row) { CHECK(std::get<std::int64_t>(row[0]) == 2); });
}

TEST_CASE("the overview shows the latest score of each task and checkpoint", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  EvaluationDb db(records);
  for (const double score : {0.1, 0.2, 0.3}) {
    db.begin(an_evaluation());
    db.begin_task(plain_task());
    db.record_metrics("piqa",
                      std::vector<EvaluationMetric>{{"piqa", "", "acc", score, {}, {}, {}, 4},
                                                    {"piqa", "", "bpb", 1.0, {}, {}, {}, 4}});
    db.end_task("piqa", score < 0.3 ? "finished" : "failed");
    db.end("finished");
  }
  int rows = 0;
  records.query("SELECT task, metric, value FROM evaluation_overview", {},
                [&](const auto&, const auto& row) {
                  ++rows;
                  CHECK(std::get<std::string>(row[1]) == "acc");
                  CHECK(std::get<double>(row[2]) == 0.2);
                });
  CHECK(rows == 1);
}

TEST_CASE("a query of evaluation_choices finds what two evaluations chose differently", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  EvaluationDb db(records);
  std::vector<std::string> ids;
  for (const std::int64_t chosen : {0, 1}) {
    ids.push_back(db.begin(an_evaluation()));
    db.begin_task(plain_task());
    db.record_options(an_instance(3, 0));
    db.record_options(an_instance(5, chosen));
    if (chosen == 0) db.record_options(an_instance(9, 0));  // only one of them has it
  }
  db.flush();
  std::vector<std::string> flips;
  records.query(
      "SELECT a.native_id || ' ' || a.chosen || ' ' || b.chosen FROM evaluation_choices a JOIN "
      "evaluation_choices b USING (task, doc_id) "
      "WHERE a.evaluation_id = ?1 AND b.evaluation_id = ?2 AND a.chosen <> b.chosen",
      {ids[0], ids[1]},
      [&](const auto&, const auto& row) { flips.push_back(std::get<std::string>(row[0])); });
  CHECK(flips == std::vector<std::string>{"id-5 0 1"});
}

TEST_CASE("an evaluation is found by an unambiguous prefix", "[store]") {
  const TemporaryDirectory folder;
  RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
  EvaluationDb db(records);
  CHECK_THROWS_WITH(db.find(""), Catch::Contains("holds no evaluation"));
  const auto first = db.begin(an_evaluation());
  db.begin(an_evaluation());
  CHECK(db.find(first) == first);
  CHECK_THROWS_WITH(db.find("2"), Catch::Contains("names several evaluations"));
  CHECK_THROWS_WITH(db.find("x"), Catch::Contains("begins with 'x'"));
}

TEST_CASE("a database of version 1 is read as it is, and migrated when it is written", "[store]") {
  const TemporaryDirectory folder;
  const auto path = folder / "run.db";
  make_version_1(path);
  {
    RunDb run = RunDb::open(path, OpenMode::kReadOnly);
    CHECK(run.run(run.find_run("")).config == "{}");
    const EvaluationDb evaluations(run.records());
    CHECK(evaluations.list().empty());
    CHECK_THROWS_WITH(evaluations.find(""), Catch::Contains("holds no evaluation"));
  }
  RunDb run = RunDb::open(path, OpenMode::kReadWrite);
  EvaluationDb evaluations(run.records());
  const auto id = evaluations.begin(an_evaluation());
  CHECK(evaluations.find("") == id);
  CHECK(run.run(run.find_run("")).config == "{}");
  run.query("PRAGMA user_version", {}, [](const auto&, const auto& row) {
    CHECK(std::get<std::int64_t>(row[0]) == kSchemaVersion);
  });
}

TEST_CASE("a schema version that never was is refused", "[store]") {
  const TemporaryDirectory folder;
  make_version_1(folder / "run.db");
  for (const int version : {0, -1, -1000}) {
    Database(folder / "run.db", OpenMode::kReadWrite)
        .execute("PRAGMA user_version = " + std::to_string(version));
    CHECK_THROWS_WITH(RecordDatabase(folder / "run.db", OpenMode::kReadWrite),
                      Catch::Contains("never was"));
  }
}

TEST_CASE("a flipped byte in evaluations is an error or harmless, never a crash", "[store]") {
  const TemporaryDirectory folder;
  {
    RecordDatabase records(folder / "evals.db", OpenMode::kCreate);
    EvaluationDb db(records);
    db.begin(an_evaluation());
    db.begin_task(plain_task());
    for (std::int64_t doc_id = 0; doc_id < 20; ++doc_id) db.record_options(an_instance(doc_id));
    db.end("finished");
  }
  const std::string sound = read_file(folder / "evals.db");
  for (std::size_t at = 0; at < sound.size(); at += 397) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::ofstream(folder / "damaged.db", std::ios::binary) << damaged;
    try {
      RecordDatabase records(folder / "damaged.db", OpenMode::kReadOnly);
      const EvaluationDb db(records);
      for (const auto& entry : db.list()) {
        for (const auto& task : db.tasks(entry.evaluation_id))
          (void)db.options(entry.evaluation_id, task.record.task);
      }
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDamaged);
    }
  }
}
