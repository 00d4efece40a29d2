#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "report/parity_parts.h"

namespace olmo::report {
namespace {

std::int64_t tokens_per_step(const StepColumns& steps) {
  return steps.size() == 0 ? 0 : steps.tokens[0] / std::max<std::int64_t>(1, steps.step[0]);
}

std::vector<const StateHashRow*> start_of(const RecordedRun& run) {
  std::vector<const StateHashRow*> rows;
  for (const auto& row : run.state_hashes)
    if (row.step == 0 && row.part == "model") rows.push_back(&row);
  return rows;
}

/// Calls `visit` with the indices of each step that both runs have.
template <class Visit>
void for_common_steps(const StepColumns& a, const StepColumns& b, Visit visit) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a.step[i] == b.step[j]) {
      if (!visit(i, j)) return;
      ++i, ++j;
    } else if (a.step[i] < b.step[j]) {
      ++i;
    } else {
      ++j;
    }
  }
}

}  // namespace

Comparability comparability(const RecordedRun& a, const RecordedRun& b) {
  Comparability found;
  const auto start_a = start_of(a);
  const auto start_b = start_of(b);
  found.start_known = !start_a.empty() && !start_b.empty();
  found.same_start =
      found.start_known && std::equal(start_a.begin(), start_a.end(), start_b.begin(),
                                      start_b.end(), [](const auto* x, const auto* y) {
                                        return x->name == y->name && x->sha256 == y->sha256;
                                      });
  found.order_known = !a.steps.batch.empty() && !b.steps.batch.empty();
  found.same_batch_size = tokens_per_step(a.steps) == tokens_per_step(b.steps);
  std::int64_t common = 0;
  bool same = found.order_known;
  for_common_steps(a.steps, b.steps, [&](std::size_t i, std::size_t j) {
    if (common++ == 0 && std::isfinite(a.steps.loss[i]) && std::isfinite(b.steps.loss[j])) {
      found.first_loss =
          std::abs(b.steps.loss[j] - a.steps.loss[i]) / std::max(std::abs(a.steps.loss[i]), 1e-300);
    }
    same = same && a.steps.batch[i] == b.steps.batch[j];
    return same;
  });
  found.same_order = same && common > 0;
  return found;
}

Kind find_kind(const Side& a, const Side& b, std::optional<Kind> given, std::string& reason) {
  if (given) {
    reason = std::string("--kind ") + to_string(*given) + " says so.";
    return *given;
  }
  if (!a.run || !b.run || a.run->steps.size() == 0 || b.run->steps.size() == 0) {
    if (!a.evaluation || !b.evaluation)
      throw Error(ErrorKind::kUsage, a.label + " and " + b.label +
                                         ": have neither steps nor evaluations in common, "
                                         "so there is nothing to compare");
    const std::string& weights = a.evaluation->weights_digest;
    if (weights.empty() || b.evaluation->weights_digest.empty())
      throw Error(ErrorKind::kUsage,
                  "an imported evaluation does not tell whether both sides had the same weights: "
                  "say --kind checkpoint (the same weights) or --kind outcome (two trainings)");
    const bool same = weights == b.evaluation->weights_digest;
    reason = same ? "Evaluations of the same weights." : "Evaluations of different weights.";
    return same ? Kind::kCheckpoint : Kind::kOutcome;
  }
  if (a.run->imported || b.run->imported)
    throw Error(ErrorKind::kUsage,
                "an imported log does not tell whether both runs had the same start and data: say "
                "--kind trajectory (they had) or --kind outcome (independent trainings)");
  const Comparability found = comparability(*a.run, *b.run);
  if (found.same_order && found.same_start) {
    reason = "The same initial weights and, at every common step, the same batch.";
    return Kind::kTrajectory;
  }
  if (found.same_order && found.first_loss && *found.first_loss <= kFirstLossTolerance) {
    reason = "The same batches, and starts whose first losses differ by less than rounding.";
    return Kind::kTrajectory;
  }
  if (found.same_start && !found.same_batch_size) {
    reason = "The same initial weights; the batch sizes differ, so the runs are aligned on tokens.";
    return Kind::kTrajectory;
  }
  reason = found.same_order ? "The same data order, but other initial weights."
                            : "Another data order, hence independent trainings.";
  return Kind::kOutcome;
}

Identity find_identity(const RecordedRun& a, const RecordedRun& b) {
  Identity identity;
  const StepColumns& x = a.steps;
  const StepColumns& y = b.steps;
  identity.known = !x.chain.empty() && !y.chain.empty();
  if (!identity.known) return identity;
  const bool same_experiment = a.experiment_digest == b.experiment_digest;
  for_common_steps(x, y, [&](std::size_t i, std::size_t j) {
    ++identity.common_steps;
    if (x.batch[i] == y.batch[j]) ++identity.equal_batches;
    if (identity.first_different != 0) return true;
    const char* field = x.batch[i] != y.batch[j]           ? "batch_hash"
                        : x.loss[i] != y.loss[j]           ? "ce_loss"
                        : x.grad_norm[i] != y.grad_norm[j] ? "grad_norm"
                        // All that a chain holds besides, once it began alike.
                        : same_experiment && x.chain[i] != y.chain[j] ? "z_loss"
                                                                      : nullptr;
    if (field) {
      identity.first_different = x.step[i];
      identity.first_field = field;
    } else {
      identity.equal_steps = x.step[i];
    }
    return true;
  });
  auto i = a.state_hashes.begin();
  auto j = b.state_hashes.begin();
  const auto key = [](const StateHashRow& row) { return std::tie(row.step, row.part, row.name); };
  while (i != a.state_hashes.end() && j != b.state_hashes.end()) {
    if (key(*i) < key(*j)) {
      ++i;
    } else if (key(*j) < key(*i)) {
      ++j;
    } else {
      if (i->step != identity.state_step) identity.equal_tensors = identity.tensors = 0;
      identity.state_step = i->step;
      ++identity.tensors;
      if (i->sha256 == j->sha256) {
        ++identity.equal_tensors;
      } else if (identity.first_tensor.empty()) {
        identity.first_tensor = i->part + "/" + i->name;
        identity.first_tensor_step = i->step;
      }
      ++i, ++j;
    }
  }
  identity.chain_a = a.last_chain;
  identity.chain_b = b.last_chain;
  return identity;
}

}  // namespace olmo::report
