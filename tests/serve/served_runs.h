// Folders of runs as trainings leave them, and a site that serves them.
#pragma once

#include <filesystem>
#include <string>

#include "serve/site.h"
#include "store/plain_records.h"
#include "store/runs/run_db.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// A run in RUN_DIR/run.db that goes on as long as the object lives: loss 10 / step, 512 tokens and
/// half a second a step.
class ServedRun {
 public:
  ServedRun(const std::filesystem::path& folder, const std::string& name, std::int64_t steps,
            const std::string& config = "{}")
      : db_(open(folder)), id_(db_.begin_run(run_of(name, config), plain_attempt(), {})) {
    train(1, steps);
  }

  void train(std::int64_t first, std::int64_t last, double loss = 10) {
    for (std::int64_t step = first; step <= last; ++step) {
      store::StepRecord row;
      row.step = step;
      row.tokens = 512 * step;
      row.ce_loss = row.loss = loss / static_cast<double>(step);
      row.lr = 0.001;
      row.grad_norm = 1 + 1.0 / static_cast<double>(step);
      row.param_norm = 30;
      row.seconds = 0.5;
      row.tokens_per_second = 1024;
      row.batch_hash = row.chain_hash = "0";
      db_.record_step(row);
    }
    db_.flush();
  }
  void resume(std::int64_t from) { db_.resume_run(id_, plain_attempt(from), 100); }
  void metric(std::int64_t step, const std::string& name, double value) {
    db_.record_metric(step, name, value);
    db_.flush();
  }
  void end(const std::string& outcome = "finished") {
    db_.end_attempt(outcome);
    db_.flush();
  }
  [[nodiscard]] store::RunDb& db() { return db_; }
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  static store::RunDb open(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    return store::RunDb::open(folder / "run.db", store::OpenMode::kCreate);
  }
  static store::RunRecord run_of(const std::string& name, const std::string& config) {
    store::RunRecord run = plain_run(name);
    run.config = config;
    return run;
  }

  store::RunDb db_;
  std::string id_;
};

/// A site that has looked into its folders. A page that is asked for before waits a moment for that
/// and then shows what is known so far.
class KnownSite : public serve::Site {
 public:
  explicit KnownSite(std::vector<std::filesystem::path> places) : Site(std::move(places)) {
    static_cast<void>(catalog().listing(std::chrono::seconds(100)));
  }
};

/// The key of a run in the catalog of a site.
inline std::string key_of(serve::Site& site, const std::string& run_id) {
  std::string key;
  happens([&] {
    for (const auto& run : site.catalog().listing(std::chrono::seconds(60))->runs)
      if (run.summary.run.run_id == run_id) key = run.key;
    return !key.empty();
  });
  return key;
}

}  // namespace olmo::test
