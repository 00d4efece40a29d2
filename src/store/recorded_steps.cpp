#include "store/recorded_steps.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash_chain.h"
#include "core/json.h"
#include "store/state_seal.h"

namespace olmo::store {
namespace {

class Reader {
 public:
  Reader(const RecordDatabase& records, const std::string& run_id)
      : db_(records.connection()), schema_(records.schema_version()) {
    recorded_.run_id = run_id;
  }

  RecordedSteps read(std::int64_t chain_format) {
    db_.check_pages();
    recorded_.chain_format = chain_format;
    read_run();
    read_attempts();
    read_steps();
    read_state_hashes();
    read_files();
    return std::move(recorded_);
  }

 private:
  Statement rows(const std::string& sql) {
    Statement statement = db_.prepare(sql);
    statement.bind_all({recorded_.run_id});
    return statement;
  }

  void read_run() {
    auto row = rows("SELECT name, config, experiment_digest FROM runs WHERE run_id = ?");
    OLMO_CHECK(row.step());
    recorded_.name = row.text(0);
    recorded_.config = row.text(1);
    recorded_.experiment_digest = row.text(2);
    if (recorded_.experiment_digest.empty()) {
      throw Error(ErrorKind::kUsage,
                  db_.path().string() + ": the run " + recorded_.run_id +
                      " was imported from a log: there is nothing to compute again, expected a "
                      "run of `train`");
    }
  }

  void read_attempts() {
    auto row = rows("SELECT policy, environment FROM attempts WHERE run_id = ? ORDER BY attempt");
    while (row.step()) {
      recorded_.policy = row.text(0);
      recorded_.environment = row.text(1);
      const Json policy = Json::parse(recorded_.policy, nullptr, /*allow_exceptions=*/false);
      if (!policy.is_object() || policy.value("numerics", Json()) != "portable")
        recorded_.fast = true;
    }
  }

  void read_steps() {
    const std::string loss_hash = recorded_.chain_format == 1 ? "NULL" : "loss_hash";
    auto row = rows(
        "SELECT step, epoch, tokens, lr, ce_loss, ce_loss_per_label, z_loss, loss, grad_norm, "
        "max_grad_norm, clipping_rate, param_norm, masked_instances, seconds, batch_hash, "
        "chain_hash, " +
        loss_hash + " FROM surviving_steps WHERE run_id = ? ORDER BY step");
    while (row.step()) {
      StepRecord step;
      step.step = row.integer(0);
      step.epoch = row.integer(1);
      step.tokens = row.integer(2);
      step.lr = row.real(3);
      step.ce_loss = row.real(4);
      step.ce_loss_per_label = row.real(5);
      step.z_loss = row.optional_real(6);
      step.loss = row.real(7);
      step.grad_norm = row.real(8);
      step.max_grad_norm = row.optional_real(9);
      step.clipping_rate = row.optional_real(10);
      step.param_norm = row.real(11);
      step.masked_instances = row.integer(12);
      step.seconds = row.real(13);
      step.batch_hash = row.text(14);
      step.chain_hash = row.text(15);
      step.loss_hash = row.text(16);
      recorded_.seconds += step.seconds;
      recorded_.steps.emplace(step.step, std::move(step));
    }
    if (recorded_.steps.empty()) {
      throw Error(ErrorKind::kUsage, db_.path().string() + ": the run " + recorded_.run_id +
                                         " has recorded no step yet: there is nothing to audit");
    }
  }

  void read_state_hashes() {
    auto row = rows(
        "SELECT step, part, name, sha256 FROM state_hashes s WHERE run_id = ? AND attempt = "
        "(SELECT max(attempt) FROM state_hashes t WHERE t.run_id = s.run_id AND t.step = s.step) "
        "ORDER BY step, part, name");
    while (row.step())
      recorded_.state_hashes[row.integer(0)].push_back({row.text(1), row.text(2), row.text(3)});
    if (schema_ < 4) return;
    auto seal =
        rows("SELECT step, sha256 FROM state_seals WHERE run_id = ? ORDER BY step, attempt");
    while (seal.step()) recorded_.state_seals[seal.integer(0)] = seal.text(1);
  }

  void read_files() {
    auto checkpoint = rows(
        "SELECT step, path, sha256 FROM checkpoints WHERE run_id = ? AND deleted_utc IS NULL "
        "ORDER BY attempt");
    while (checkpoint.step())
      recorded_.checkpoints[checkpoint.integer(0)] = {checkpoint.text(1), checkpoint.text(2)};
    auto input = rows("SELECT kind, path, bytes, sha256 FROM inputs WHERE run_id = ?");
    while (input.step())
      recorded_.inputs.push_back({input.text(0), input.text(1), input.integer(2), input.text(3)});
  }

  const Database& db_;
  std::int64_t schema_;
  RecordedSteps recorded_;
};

/// Nothing for a text that is no digest.
std::optional<Digest> digest_of(const std::string& hex) {
  try {
    return Digest::from_hex(hex);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The chain after `step`; nothing if the record does not say.
std::optional<Digest> chain_at(const RecordedSteps& recorded, std::int64_t step) {
  if (const auto row = recorded.steps.find(step); row != recorded.steps.end())
    return digest_of(row->second.chain_hash);
  const auto experiment = digest_of(recorded.experiment_digest);
  return step == 0 && experiment ? std::optional(chain_start(*experiment, recorded.chain_format))
                                 : std::nullopt;
}

}  // namespace

RecordedSteps read_recorded_steps(const RunDb& db, const std::string& run_id) {
  return Reader(db.records(), run_id).read(db.chain_format(run_id));
}

std::optional<Digest> next_link(const std::optional<Digest>& previous, const StepRecord& row,
                                std::int64_t chain_format) {
  const auto batch = digest_of(row.batch_hash), own = digest_of(row.chain_hash);
  const auto losses = chain_format == 1 ? std::optional(Digest{}) : digest_of(row.loss_hash);
  const auto grad_norm = static_cast<float>(row.grad_norm);  // the chain holds these bits
  if (!batch || !own || !losses || static_cast<double>(grad_norm) != row.grad_norm)
    return std::nullopt;
  if (!previous) return own;
  const StepProof proof{row.step, *batch, *losses, row.ce_loss, row.z_loss, grad_norm};
  return chain_next(*previous, proof, chain_format) == *own ? own : std::nullopt;
}

std::string follows_not(const StepRecord& row) {
  return "step " + std::to_string(row.step) + ": chain_hash " + row.chain_hash.substr(0, 16) +
         "… does not follow from the link before and the recorded batch_hash, ce_loss, z_loss and "
         "grad_norm: one of them was altered";
}

std::vector<Finding> broken_proofs(const RecordedSteps& recorded) {
  std::vector<Finding> findings;
  std::optional<Digest> link;
  if (recorded.steps.begin()->first == 1) {
    if (const auto experiment = digest_of(recorded.experiment_digest))
      link = chain_start(*experiment, recorded.chain_format);
  }
  std::int64_t expected = recorded.steps.begin()->first;
  for (const auto& [step, row] : recorded.steps) {
    for (; expected < step; ++expected) {
      findings.push_back(
          {expected, "step", "step " + std::to_string(expected) + ": the record lacks it"});
      link.reset();
    }
    ++expected;
    if (!next_link(link, row, recorded.chain_format))
      findings.push_back({step, "chain_hash", follows_not(row)});
    link = digest_of(row.chain_hash);
  }
  for (const auto& [step, seal] : recorded.state_seals) {
    const auto hashes = recorded.state_hashes.find(step);
    const auto chain = chain_at(recorded, step);
    if (hashes != recorded.state_hashes.end() && chain &&
        seal_of(hashes->second, *chain).hex() == seal)
      continue;
    findings.push_back({step, "state_hashes",
                        "step " + std::to_string(step) +
                            ": the seal of the state's hashes does not fit them: one was altered"});
  }
  return findings;
}

}  // namespace olmo::store
