#include "report/training/identity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <tuple>

#include "report/comparability/comparability.h"
#include "report/walk.h"
#include "store/runs/op_traces.h"

namespace olmo::report {
namespace {

constexpr char kSeal[] = "seal";
constexpr char kLossHash[] = "loss_hash";

/// Sorts tensors as the network is passed through: embedding, blocks by number, final norm and
/// head; the weights before their moments.
auto tensor_place(const store::StateHash& row) {
  const std::string full = row.part + "/" + row.name;
  const auto has = [&](const char* moment) { return full.find(moment) != std::string::npos; };
  const int part = row.part == "model" ? 0 : has("exp_avg/") ? 1 : has("exp_avg_sq/") ? 2 : 3;
  constexpr std::string_view kBlocks = "blocks.";
  const auto blocks = row.name.find(kBlocks);
  std::int64_t block = row.name.find("wte") != std::string::npos ? -1 : INT64_MAX;
  if (blocks != std::string::npos) {
    const char* digits = row.name.data() + blocks + kBlocks.size();
    std::from_chars(digits, row.name.data() + row.name.size(), block);
  }
  return std::tuple(part, block, std::string_view(row.name));
}

/// The tensors that both sides hashed at a step.
HashedState compare_state(std::int64_t step, const std::vector<store::StateHash>& a,
                          const std::vector<store::StateHash>& b) {
  HashedState state;
  state.step = step;
  std::vector<const store::StateHash*> different;
  walk(
      a, b, [](const store::StateHash& row) { return std::tie(row.part, row.name); },
      [&](const store::StateHash& in_a, const store::StateHash& in_b) {
        if (in_a.part == kSeal) return;
        ++state.tensors;
        if (in_a.sha256 != in_b.sha256) different.push_back(&in_a);
      },
      [](const store::StateHash&, char) {});
  state.different = std::ssize(different);
  std::sort(different.begin(), different.end(), [](const auto* one, const auto* other) {
    return tensor_place(*one) < tensor_place(*other);
  });
  for (std::size_t i = 0; i < std::min(different.size(), kNamedTensors); ++i)
    state.names.push_back(different[i]->part + "/" + different[i]->name);
  return state;
}

void compare_states(Identity& identity, const store::RecordedRun& a, const store::RecordedRun& b) {
  for (const auto& [step, hashes] : a.state_hashes) {
    const auto other = b.state_hashes.find(step);
    if (other == b.state_hashes.end()) continue;
    const HashedState state = compare_state(step, hashes, other->second);
    if (state.tensors == 0) continue;
    identity.last_state = state;
    if (!identity.parted_state)
      (state.different == 0 ? identity.equal_state : identity.parted_state) = state;
  }
}

void compare_chains(Identity& identity, const store::RecordedRun& a, const store::RecordedRun& b) {
  const store::StepColumns& x = a.steps;
  const store::StepColumns& y = b.steps;
  const bool hashes = identity.same_format;
  const bool values = hashes && !x.values.empty() && !y.values.empty();
  const bool same_experiment = a.experiment_digest == b.experiment_digest;
  for (const auto& [i, j] : common_steps(x, y)) {
    ++identity.common_steps;
    if (hashes && x.batch[i] == y.batch[j]) ++identity.equal_batches;
    const bool chained_alike = values && x.chain[i] == y.chain[j];
    if (identity.first_different != 0) {
      const bool equal = chained_alike && x.values[i] == y.values[j];
      if (identity.chained_alike && identity.rejoined == 0 && equal) identity.rejoined = x.step[i];
      continue;
    }
    const char* field = hashes && x.batch[i] != y.batch[j] ? "batch_hash"
                        : x.loss[i] != y.loss[j]           ? "ce_loss"
                        : x.grad_norm[i] != y.grad_norm[j] ? "grad_norm"
                        // All that a chain holds besides, once it began alike.
                        : hashes && same_experiment && x.chain[i] != y.chain[j] ? kLossHash
                                                                                : nullptr;
    // Chains that agree are not over everything: what the last update did shows in param_norm.
    if (values && x.values[i] != y.values[j] && (!field || field == std::string_view(kLossHash)))
      field = kSomeValue;
    if (field) {
      identity.first_different = x.step[i];
      identity.first_field = field;
      identity.chained_alike = chained_alike && field == std::string_view(kSomeValue);
    } else {
      ++identity.equal_steps;
      identity.equal_through = x.step[i];
    }
  }
}

/// A state that is equal tells as much as a step.
void find_rejoining_state(Identity& identity) {
  const auto& state = identity.equal_state;
  if (identity.chained_alike && identity.rejoined == 0 && state &&
      state->step >= identity.first_different)
    identity.rejoined = state->step;
}

std::vector<std::int64_t> steps_to_compare(const PartingSteps& steps, const TracedRun& a,
                                           const TracedRun& b) {
  const auto in_a = store::traced_steps(a.records, a.run_id);
  const auto in_b = store::traced_steps(b.records, b.run_id);
  std::vector<std::int64_t> both;
  std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                        std::back_inserter(both));
  both.erase(both.begin(), std::lower_bound(both.begin(), both.end(), steps.after_equal_state));
  for (const TracedRun& run : {a, b}) {
    const auto altered = store::altered_traces(run.records, run.run_id);
    std::erase_if(both, [&](std::int64_t step) { return altered.contains(step); });
  }
  const auto end = std::lower_bound(both.begin(), both.end(), steps.parted);
  if (end != both.end()) both.erase(end + 1, both.end());
  return both;
}

std::string audit_command(std::int64_t first, std::int64_t last) {
  return "olmo-harness audit RUN --steps " + std::to_string(first) + ".." + std::to_string(last) +
         " --trace --record";
}

}  // namespace

bool Identity::in_chain() const {
  constexpr std::array kChained = {"batch_hash", "ce_loss", "z_loss", "grad_norm", kLossHash};
  return std::ranges::any_of(kChained, [&](const char* field) { return first_field == field; });
}

Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b) {
  Identity identity;
  identity.known = !a.steps.chain.empty() && !b.steps.chain.empty();
  if (!identity.known) return identity;
  identity.same_format = a.chain_format == b.chain_format;
  compare_chains(identity, a, b);
  compare_states(identity, a, b);
  find_rejoining_state(identity);
  identity.reference_a = reference_distance(a);
  identity.reference_b = reference_distance(b);
  identity.between = audited_distance({a, identity.reference_a}, {b, identity.reference_b});
  identity.chain_a = a.last_chain;
  identity.chain_b = b.last_chain;
  return identity;
}

Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b,
                       const TracedRun& records_a, const TracedRun& records_b) {
  Identity identity = find_identity(a, b);
  if (identity.first_field == kSomeValue) {
    const auto row = [&](const TracedRun& run) {
      const auto step = identity.first_different;
      return store::read_steps(run.records, run.run_id, step, step)[step];
    };
    identity.first_field = store::first_value_that_differs(row(records_a), row(records_b));
  }
  if (const auto steps = parting_steps(identity)) {
    identity.operation = find_operation(*steps, records_a, records_b);
  } else if (identity.same_steps_and_states()) {
    // An output that differs may leave no mark in any loss.
    auto found = find_operation({1, identity.equal_through, 1}, records_a, records_b);
    if (!found.operation.empty()) identity.operation = std::move(found);
  }
  return identity;
}

std::string contradiction_of(const Identity& identity) {
  // Weights may differ where no loss shows it; then their hashes part for good.
  if (identity.rejoined == 0 || identity.parted_state) return "";
  if (!identity.reference_a.is_portable() || !identity.reference_b.is_portable()) return "";
  const std::string again = identity.rejoined == identity.first_different
                                ? "state after it"
                                : "bits at step " + std::to_string(identity.rejoined);
  return "step " + std::to_string(identity.first_different) + " differs in " +
         identity.first_field + ", though both sides have the same hash chain there and the same " +
         again + ": one of the records was altered, or a machine erred in that value";
}

std::optional<PartingSteps> parting_steps(const Identity& identity) {
  const std::int64_t step = identity.first_different;
  const auto& state = identity.parted_state;
  const std::int64_t after_equal = identity.equal_state ? identity.equal_state->step + 1 : 1;
  if (state && (step == 0 || state->step < step)) {
    if (state->step == 0) return std::nullopt;
    return PartingSteps{after_equal, state->step, after_equal};
  }
  if (step == 0 || identity.first_field == "batch_hash") return std::nullopt;
  // Another loss may come from weights that the update before it left.
  const bool before = identity.first_field == "ce_loss" && step > 1;
  const std::int64_t last_equal = std::min(after_equal, step);
  return PartingSteps{std::max(before ? step - 1 : step, last_equal), step, last_equal};
}

TracedOperation find_operation(const PartingSteps& steps, const TracedRun& a, const TracedRun& b) {
  TracedOperation found;
  found.parted = steps.parted;
  std::int64_t agreed = steps.after_equal - 1;
  for (const std::int64_t step : steps_to_compare(steps, a, b)) {
    const auto trace_a = store::read_trace(a.records, a.run_id, step);
    const auto trace_b = store::read_trace(b.records, b.run_id, step);
    if (format_of(trace_a) != format_of(trace_b)) continue;
    found.traced = step;
    const auto difference = first_difference(trace_a, trace_b);
    if (difference) {
      found.operation = difference->operation;
      found.reason = difference->reason;
      break;
    }
    agreed = std::max(agreed, step);
  }
  const bool in_time = !found.operation.empty() && *found.traced <= steps.parted;
  if (!in_time && agreed < steps.parted) found.to_run = audit_command(agreed + 1, steps.parted);
  return found;
}

}  // namespace olmo::report
