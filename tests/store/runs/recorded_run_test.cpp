#include "store/runs/recorded_run.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/hash.h"
#include "store/plain_records.h"
#include "store/runs/run_db.h"
#include "store/runs/verify_record.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;

namespace {

/// A database with one run, whose steps a test writes with their right chain hashes.
class RunFile {
 public:
  explicit RunFile(const std::string& experiment = sha256("experiment").hex(),
                   std::int64_t start_step = 0)
      : db_(store::RunDb::open(directory_ / "run.db", store::OpenMode::kCreate)) {
    id_ = db_.begin_run({.name = "test",
                         .config = R"({"seed":1})",
                         .experiment_digest = experiment,
                         .seed = 1,
                         .n_parameters = 10,
                         .max_steps = 100,
                         .chain_format = kChainFormat},
                        test::plain_attempt(start_step), {});
    if (!experiment.empty())
      chain_.assign(static_cast<std::size_t>(start_step) + 1,
                    chain_start(Digest::from_hex(experiment)));
  }

  void write_steps(std::int64_t first, std::int64_t last, double loss_of_first = 10) {
    for (std::int64_t step = first; step <= last; ++step) {
      store::StepRecord row;
      row.step = step;
      row.tokens = 8 * step;
      row.ce_loss = loss_of_first / static_cast<double>(step);
      if (step % 2 == 0) row.z_loss = 0.125;
      row.loss = row.ce_loss + row.z_loss.value_or(0);
      row.grad_norm = 0.1F;
      const Digest batch = sha256("batch " + std::to_string(step));
      const Digest losses = sha256("losses " + std::to_string(step));
      const Digest chain = chain_next(chain_.at(static_cast<std::size_t>(step - 1)),
                                      {step, batch, losses, row.ce_loss, row.z_loss, 0.1F});
      chain_.resize(static_cast<std::size_t>(step));
      chain_.push_back(chain);
      row.batch_hash = batch.hex();
      row.loss_hash = losses.hex();
      row.chain_hash = chain.hex();
      db_.record_step(row);
    }
    db_.flush();
  }

  void seal_state(std::int64_t step) {
    const std::vector<StateHash> hashes = {{"model", "weight", "1"}};
    db_.record_state_hashes(step, hashes, seal_of(hashes, chain_.back()).hex());
  }
  void resume(std::int64_t start_step, const std::string& start_link = "") {
    auto attempt = test::plain_attempt(start_step);
    attempt.start_link = start_link;
    db_.resume_run(id_, attempt, 100);
  }
  [[nodiscard]] std::string link(std::int64_t step) const {
    return chain_.at(static_cast<std::size_t>(step)).hex();
  }
  void sql(const std::string& text) {
    db_.flush();
    db_.records().connection().execute(text);
  }
  void import(std::int64_t step, const std::string& tokens, const std::string& loss) {
    sql("INSERT INTO imported_steps VALUES ('" + id_ + "', " + std::to_string(step) + ", " +
        tokens + ", " + loss + ", NULL, NULL, NULL, NULL, " + std::to_string(step) + ", NULL)");
  }
  /// A row that tells tokens and no step.
  void import_tokens(std::int64_t tokens, const std::string& loss) {
    sql("INSERT INTO imported_steps VALUES ('" + id_ + "', " + std::to_string(tokens) + ", " +
        std::to_string(tokens) + ", " + loss + ", NULL, NULL, NULL, NULL, NULL, 1000)");
  }

  store::RecordedRun read() { return store::read_run(db_.records(), id_); }
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "run.db"; }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::string last_chain() const { return chain_.back().hex(); }

 private:
  TemporaryDirectory directory_;
  store::RunDb db_;
  std::string id_;
  std::vector<Digest> chain_;  ///< after so many steps
};

bool mentions(const std::vector<Finding>& findings, const std::string& words) {
  for (const auto& finding : findings)
    if (finding.sentence.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a run that goes on is read as it was at one moment", "[store]") {
  RunFile file;
  file.write_steps(1, 1);
  std::atomic<bool> enough = false;
  std::thread training([&] {
    for (std::int64_t step = 2; !enough; ++step) {
      file.write_steps(step, step);
      file.seal_state(step);
    }
  });
  std::size_t sound = 0;
  const RecordDatabase reader(file.path(), OpenMode::kReadOnly);
  while (sound < 50 && read_run(reader, file.id()).damage.empty()) ++sound;
  enough = true;
  training.join();
  CHECK(sound == 50);
}

TEST_CASE("a sound run is read without damage", "[store]") {
  RunFile file;
  file.write_steps(1, 4);
  const store::RecordedRun run = file.read();
  CHECK(run.damage.empty());
  CHECK(!run.imported);
  CHECK(run.steps.step == std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(run.steps.tokens == std::vector<std::int64_t>{8, 16, 24, 32});
  CHECK(run.steps.loss == std::vector<double>{10, 5, 10.0 / 3, 2.5});
  CHECK(run.steps.batch.size() == 4);
  CHECK(run.last_chain == file.last_chain());
  CHECK(run.attempts.size() == 1);
}

TEST_CASE("an altered value breaks the hash chain where it was altered", "[store]") {
  const std::string change =
      GENERATE("ce_loss = ce_loss + 1e-12", "grad_norm = 0.2", "z_loss = 0.25", "z_loss = NULL",
               "batch_hash = chain_hash", "loss_hash = chain_hash");
  RunFile file;
  file.write_steps(1, 4);
  file.sql("UPDATE steps SET " + change + " WHERE step = 2");
  const store::RecordedRun run = file.read();
  REQUIRE(run.damage.size() == 1);
  CHECK(run.damage[0].sentence.rfind("step 2: ", 0) == 0);
}

TEST_CASE("an altered chain hash is damage", "[store]") {
  RunFile file;
  file.write_steps(1, 3);
  file.sql("UPDATE steps SET chain_hash = batch_hash WHERE step = 3");
  CHECK(mentions(file.read().damage, "step 3: "));
  file.sql("UPDATE steps SET chain_hash = 'no hash' WHERE step = 3");
  CHECK(mentions(file.read().damage, "step 3: chain_hash no hash"));
}

TEST_CASE("missing steps are damage", "[store]") {
  RunFile file;
  file.write_steps(1, 6);
  file.sql("DELETE FROM steps WHERE step IN (3, 4)");
  const store::RecordedRun run = file.read();
  CHECK(mentions(run.damage, "steps 3 to 4 are missing"));
  CHECK(run.damage.size() == 1);  // after the gap the recorded chain is followed on
  file.sql("DELETE FROM steps WHERE step < 5");
  CHECK(mentions(file.read().damage, "steps 1 to 4 are missing"));
}

TEST_CASE("tokens that do not grow are damage", "[store]") {
  RunFile file;
  file.write_steps(1, 3);
  file.sql("UPDATE steps SET tokens = 8 WHERE step = 2");
  CHECK(mentions(file.read().damage, "the tokens seen so far do not grow (8)"));
}

TEST_CASE("only the steps that survive a resumption are read", "[store]") {
  RunFile file;
  file.write_steps(1, 5);
  file.resume(3);
  file.write_steps(4, 6, 20);
  const store::RecordedRun run = file.read();
  CHECK(run.damage.empty());
  CHECK(run.steps.step == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(run.steps.loss[2] == 10.0 / 3);
  CHECK(run.steps.loss[3] == 5);
  CHECK(run.steps.loss[4] == 4);
  CHECK(run.attempts.size() == 2);
  CHECK(run.last_chain == file.last_chain());
}

TEST_CASE("a run that took over a checkpoint begins there, and that is no damage", "[store]") {
  RunFile file(sha256("experiment").hex(), 2);
  file.write_steps(3, 5);
  CHECK(file.read().damage.empty());
  file.sql("DELETE FROM steps WHERE step = 3");
  CHECK(mentions(file.read().damage, "step 3: the record lacks it"));
}

TEST_CASE("a run is one from a checkpoint if its first attempt is, whatever later ones do",
          "[store]") {
  const TemporaryDirectory folder;
  auto db = RunDb::open(folder / "run.db", OpenMode::kCreate);
  const auto begin = [&](const std::string& name, const std::string& from) {
    const AttemptRecord attempt{.resumed_from = from,
                                .command_line = "train",
                                .policy = "{}",
                                .build = "{}",
                                .environment = "{}"};
    return db.begin_run({.name = name,
                         .config = "{}",
                         .experiment_digest = sha256(name).hex(),
                         .seed = 1,
                         .n_parameters = 1,
                         .max_steps = 1,
                         .chain_format = kChainFormat},
                        attempt, {});
  };
  const std::string fresh = begin("fresh", ""), branch = begin("branch", "step3");
  const AttemptRecord later{.resumed_from = "step1",
                            .command_line = "train",
                            .policy = "{}",
                            .build = "{}",
                            .environment = "{}"};
  db.resume_run(fresh, later, 1);
  db.flush();
  CHECK(runs_from_checkpoints(db.records()) == std::vector<std::string>{branch});
}

TEST_CASE("an attempt went on from the state that the record's step led to", "[store]") {
  RunFile file;
  file.write_steps(1, 4);
  const std::string left = file.link(3);
  file.resume(2, file.link(2));
  file.write_steps(3, 5, 20);
  CHECK(file.read().damage.empty());
  file.resume(3, left);
  file.write_steps(4, 5);
  CHECK(mentions(file.read().damage,
                 "step 3: attempt 3 went on from a state after step 3 with the chain"));
  file.resume(1, file.link(1));  // what came after step 1 is left, and with it that start
  file.write_steps(2, 3);
  CHECK(file.read().damage.empty());
}

TEST_CASE("the first step of a run from a checkpoint is held to the link that it began from",
          "[store]") {
  RunFile file(sha256("experiment").hex(), 4);
  file.write_steps(5, 6);
  CHECK(file.read().damage.empty());
  file.sql("UPDATE attempts SET start_link = '" + sha256("x").hex() + "'");
  CHECK(mentions(file.read().damage, "step 5: chain_hash "));
}

TEST_CASE("altered seals of a state are damage", "[store]") {
  RunFile file;
  file.write_steps(1, 2);
  file.seal_state(2);
  CHECK(file.read().damage.empty());
  file.sql("UPDATE state_hashes SET sha256 = 'x'");
  CHECK(mentions(file.read().damage, "step 2: the seal of the state's hashes does not fit them"));
}

TEST_CASE("a training is no log once its experiment is gone, nor a log a training", "[store]") {
  RunFile training(sha256("experiment").hex());
  training.write_steps(1, 3);
  CHECK(training.read().damage.empty());
  training.sql("UPDATE runs SET experiment_digest = ''");
  REQUIRE(training.read().damage.size() == 1);
  CHECK(training.read().damage[0].sentence ==
        "the run has steps that a training recorded, and its experiment_digest is gone: altered or "
        "damaged");
  RunFile log("");
  log.import(10, "80", "3.5");
  log.sql("UPDATE runs SET experiment_digest = '" + sha256("experiment").hex() + "'");
  REQUIRE(log.read().damage.size() == 2);
  CHECK(log.read().damage[0].quantity == "runs");  // a seal is over it
  CHECK(log.read().damage[1].quantity == "experiment_digest");
}

TEST_CASE("an imported log may have gaps, but no losses that are not finite or negative",
          "[store]") {
  RunFile file("");
  file.import(10, "80", "3.5");
  file.import(20, "160", "3.0");
  store::RecordedRun run = file.read();
  CHECK(run.imported);
  CHECK(run.tokens_known);
  CHECK(run.damage.empty());
  CHECK(run.steps.batch.empty());
  CHECK(run.last_chain.empty());
  CHECK(std::isnan(run.steps.grad_norm[0]));

  file.import(30, "240", "NULL");
  file.import(40, "320", "9e999");
  file.import(50, "400", "-2");
  file.import(60, "480", "-1e-9");
  run = file.read();
  REQUIRE(run.damage.size() == 3);
  CHECK(run.damage[0].sentence == "step 30: the loss is missing or not finite");
  CHECK(run.damage[1].sentence == "step 40: the loss is missing or not finite");
  CHECK(run.damage[2].sentence == "step 50: the loss is -2, and a cross-entropy is not negative");
}

TEST_CASE("an imported log without tokens is aligned on steps", "[store]") {
  RunFile file("");
  file.import(10, "NULL", "3.5");
  file.import(20, "NULL", "3.0");
  const store::RecordedRun run = file.read();
  CHECK(!run.tokens_known);
  CHECK(run.steps.tokens == std::vector<std::int64_t>{10, 20});
  CHECK(run.damage.empty());
}

TEST_CASE("an imported log without steps is read by its tokens, and says so", "[store]") {
  RunFile file("");
  file.import_tokens(64, "3.5");
  file.import_tokens(128, "3.0");
  file.sql(
      "INSERT INTO metrics SELECT run_id, 1, 64, 'eval/c4', 3.25 FROM runs UNION ALL "
      "SELECT run_id, 1, 128, 'eval/c4', 3.125 FROM runs");
  const store::RecordedRun run = file.read();
  CHECK(run.tokens_known);
  CHECK_FALSE(run.steps.steps_known);
  CHECK(run.steps.tokens == std::vector<std::int64_t>{64, 128});
  CHECK(run.steps.tokens_per_second_per_device == std::vector<double>{1000, 1000});
  CHECK(std::isnan(run.steps.tokens_per_second[0]));
  CHECK(run.damage.empty());
  REQUIRE(run.metrics.size() == 1);
  CHECK(run.metrics[0].points == 2);
  CHECK(run.metrics[0].last == 3.125);
  CHECK(run.metrics[0].last_step == 128);
}

TEST_CASE("states, seals and checkpoints of steps that the run has left are not its own",
          "[store]") {
  RunFile file;
  file.write_steps(1, 6);
  file.seal_state(6);
  file.resume(3);
  file.write_steps(4, 5, 20);
  store::RecordedRun run = file.read();
  CHECK(run.damage.empty());
  CHECK(run.state_hashes.empty());
  CHECK(run.state_seals.empty());
  file.seal_state(5);
  file.resume(5);  // the state that it goes on from is its own
  file.write_steps(6, 7, 30);
  run = file.read();
  CHECK(run.damage.empty());
  CHECK(run.state_seals.size() == 1);
  CHECK(run.state_hashes.count(5) == 1);
}
