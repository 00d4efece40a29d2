#include "report/recorded_run.h"

#include <cmath>

#include "core/error.h"
#include "core/hash_chain.h"

namespace olmo::report {
namespace {

using store::Statement;

std::uint64_t prefix(const Digest& digest) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = (value << 8) | digest.bytes[static_cast<std::size_t>(i)];
  return value;
}

/// Reads the rows of one run and looks for damage on the way.
class Reader {
 public:
  Reader(const store::Database& db, std::int64_t schema, const std::string& run_id)
      : db_(db), schema_(schema) {
    run_.run_id = run_id;
  }

  RecordedRun read() {
    read_run();
    read_attempts();
    read_inputs();
    read_rest();
    if (schema_ >= 3) read_energy();
    if (run_.imported) {
      read_imported_steps();
    } else {
      read_steps();
    }
    check_order();
    return std::move(run_);
  }

 private:
  Statement rows(const char* sql) {
    Statement statement = db_.prepare(sql);
    statement.bind_all({run_.run_id});
    return statement;
  }

  void damaged(const std::string& sentence) {
    constexpr std::size_t kMostSentences = 20;
    if (run_.damage.size() < kMostSentences) run_.damage.push_back(sentence);
  }

  void read_run() {
    auto row = rows(
        "SELECT name, created_utc, status, config, experiment_digest, n_parameters, max_steps "
        "FROM runs WHERE run_id = ?");
    OLMO_CHECK(row.step());
    run_.name = row.text(0);
    run_.created_utc = row.text(1);
    run_.status = row.text(2);
    run_.config = row.text(3);
    run_.experiment_digest = row.text(4);
    run_.n_parameters = row.integer(5);
    run_.max_steps = row.integer(6);
    run_.imported = run_.experiment_digest.empty();
    if (schema_ < 6) return;
    auto format = rows("SELECT chain_format FROM runs WHERE run_id = ?");
    format.step();
    run_.chain_format = format.integer(0);
  }

  void read_attempts() {
    auto row = rows(
        "SELECT attempt, start_step, started_utc, ended_utc, outcome, resumed_from, command_line, "
        "policy, build, environment FROM attempts WHERE run_id = ? ORDER BY attempt");
    while (row.step()) {
      run_.attempts.push_back({row.integer(0), row.integer(1), row.text(2), row.text(3),
                               row.text(4), row.text(5), row.text(6), row.text(7), row.text(8),
                               row.text(9)});
    }
  }

  void read_inputs() {
    auto row = rows("SELECT kind, path, sha256, bytes FROM inputs WHERE run_id = ? ORDER BY 1, 2");
    while (row.step())
      run_.inputs.push_back({row.text(0), row.text(1), row.text(2), row.integer(3)});
  }

  void read_rest() {
    auto event = rows(
        "SELECT attempt, step, utc, kind, message FROM events WHERE run_id = ? ORDER BY event_id");
    while (event.step()) {
      run_.events.push_back(
          {event.integer(0), event.integer(1), event.text(2), event.text(3), event.text(4)});
    }
    auto hash = rows(
        "SELECT step, part, name, sha256 FROM state_hashes s WHERE run_id = ? AND attempt = "
        "(SELECT max(attempt) FROM state_hashes t WHERE t.run_id = s.run_id AND t.step = s.step) "
        "ORDER BY step, part, name");
    while (hash.step())
      run_.state_hashes.push_back({hash.integer(0), hash.text(1), hash.text(2), hash.text(3)});
    auto metric = rows(
        "SELECT name, count(*), max(step), value FROM metrics WHERE run_id = ? GROUP BY name ORDER "
        "BY name");
    while (metric.step())
      run_.metrics.push_back(
          {metric.text(0), metric.integer(1), metric.integer(2), metric.real(3)});
    auto tag = rows("SELECT tag FROM tags WHERE run_id = ? ORDER BY tag");
    while (tag.step()) run_.tags.push_back(tag.text(0));
  }

  void read_energy() {
    auto row = rows(
        "SELECT attempt, source, device, covers, joules, seconds, samples, note FROM energy "
        "WHERE run_id = ? ORDER BY attempt, source, device");
    while (row.step()) {
      run_.energy.push_back({row.integer(0), row.text(1), row.text(2), row.text(3),
                             row.optional_real(4), row.optional_real(5), row.integer(6),
                             row.text(7)});
    }
  }

  void add(const Statement& row) {
    StepColumns& steps = run_.steps;
    steps.step.push_back(row.integer(0));
    steps.tokens.push_back(row.integer(1));
    steps.loss.push_back(row.real(2));
    steps.grad_norm.push_back(row.real(3));
    steps.lr.push_back(row.real(4));
    steps.seconds.push_back(row.real(5));
    steps.tokens_per_second.push_back(row.real(6));
  }

  void read_imported_steps() {
    auto row = rows(
        schema_ >= 5
            ? "SELECT position, tokens, ce_loss, grad_norm, lr, seconds, tokens_per_second, step, "
              "tokens_per_second_per_device FROM imported_steps WHERE run_id = ? ORDER BY position"
            : "SELECT step, tokens, ce_loss, grad_norm, lr, seconds, tokens_per_second, step, NULL "
              "FROM imported_steps WHERE run_id = ? ORDER BY step");
    while (row.step()) {
      if (std::holds_alternative<std::monostate>(row.column(1))) run_.tokens_known = false;
      if (std::holds_alternative<std::monostate>(row.column(7))) run_.steps.steps_known = false;
      run_.steps.tokens_per_second_per_device.push_back(row.real(8));
      add(row);
    }
    if (!run_.tokens_known) run_.steps.tokens = run_.steps.step;
  }

  /// A later attempt that started before a step has replaced it (view surviving_steps; written out
  /// with the attempts' starts, because the view looks them up for every row).
  bool survives(std::int64_t attempt, std::int64_t step) const {
    for (const auto& later : run_.attempts)
      if (later.attempt > attempt && later.start_step < step) return false;
    return true;
  }

  void read_steps() {
    auto row = rows(
        run_.chain_format == 1
            ? "SELECT step, tokens, ce_loss, grad_norm, lr, seconds, tokens_per_second, z_loss, "
              "batch_hash, chain_hash, attempt FROM steps WHERE run_id = ? ORDER BY attempt, step"
            : "SELECT step, tokens, ce_loss, grad_norm, lr, seconds, tokens_per_second, z_loss, "
              "batch_hash, chain_hash, attempt, loss_hash FROM steps WHERE run_id = ? ORDER BY "
              "attempt, step");
    Digest chain = chain_start(Digest::from_hex(run_.experiment_digest), run_.chain_format);
    bool sound = true;
    while (row.step()) {
      const std::int64_t step = row.integer(0);
      if (!survives(row.integer(10), step)) continue;
      add(row);
      const Digest batch = Digest::from_hex(row.text(8));
      const Digest recorded = Digest::from_hex(row.text(9));
      const Digest losses = run_.chain_format == 1 ? Digest{} : Digest::from_hex(row.text(11));
      chain = chain_next(chain,
                         {step, batch, losses, run_.steps.loss.back(), row.optional_real(7),
                          static_cast<float>(run_.steps.grad_norm.back())},
                         run_.chain_format);
      if (sound && !(chain == recorded)) {
        damaged("step " + std::to_string(step) +
                ": the recorded batch, losses and gradient norm do not give the recorded chain "
                "hash: the record was altered here, or steps before it are missing");
        sound = false;
      }
      chain = recorded;
      run_.steps.batch.push_back(prefix(batch));
      run_.steps.chain.push_back(prefix(recorded));
    }
    if (run_.steps.size() > 0) run_.last_chain = chain.hex();
  }

  void check_order() {
    const StepColumns& steps = run_.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!std::isfinite(steps.loss[i]))
        damaged("step " + std::to_string(steps.step[i]) + ": the loss is missing or not finite");
      if (i == 0) continue;
      if (steps.step[i] <= steps.step[i - 1])
        damaged("step " + std::to_string(steps.step[i]) + " comes after step " +
                std::to_string(steps.step[i - 1]));
      if (!run_.imported && steps.step[i] > steps.step[i - 1] + 1)
        damaged("steps " + std::to_string(steps.step[i - 1] + 1) + " to " +
                std::to_string(steps.step[i] - 1) + " are missing");
      if (steps.tokens[i] <= steps.tokens[i - 1])
        damaged("step " + std::to_string(steps.step[i]) + ": the tokens seen so far do not grow (" +
                std::to_string(steps.tokens[i]) + ")");
    }
  }

  const store::Database& db_;
  std::int64_t schema_;
  RecordedRun run_;
};

}  // namespace

RecordedRun read_run(const store::RecordDatabase& records, const std::string& run_id) {
  RecordedRun run = Reader(records.connection(), records.schema_version(), run_id).read();
  run.audits = store::read_audits(records, run_id);
  return run;
}

}  // namespace olmo::report
