#include "report/identity.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "report/comparability.h"
#include "report/walk.h"

namespace olmo::report {
namespace {

constexpr char kSeal[] = "seal";

/// Sorts tensors as the network is passed through: embedding, blocks by number, final norm and
/// head; the weights before their moments.
auto place_of(const store::StateHash& row) {
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
  std::sort(different.begin(), different.end(),
            [](const auto* one, const auto* other) { return place_of(*one) < place_of(*other); });
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
  const bool same_experiment = a.experiment_digest == b.experiment_digest;
  for (const auto& [i, j] : common_steps(x, y)) {
    ++identity.common_steps;
    if (hashes && x.batch[i] == y.batch[j]) ++identity.equal_batches;
    if (identity.first_different != 0) continue;
    const char* field = hashes && x.batch[i] != y.batch[j] ? "batch_hash"
                        : x.loss[i] != y.loss[j]           ? "ce_loss"
                        : x.grad_norm[i] != y.grad_norm[j] ? "grad_norm"
                        // All that a chain holds besides, once it began alike.
                        : hashes && same_experiment && x.chain[i] != y.chain[j] ? "z_loss"
                                                                                : nullptr;
    if (field) {
      identity.first_different = x.step[i];
      identity.first_field = field;
    } else {
      identity.equal_steps = x.step[i];
    }
  }
}

}  // namespace

Identity find_identity(const store::RecordedRun& a, const store::RecordedRun& b) {
  Identity identity;
  identity.known = !a.steps.chain.empty() && !b.steps.chain.empty();
  if (!identity.known) return identity;
  identity.same_format = a.chain_format == b.chain_format;
  compare_chains(identity, a, b);
  compare_states(identity, a, b);
  identity.reference_a = reference_distance(a);
  identity.reference_b = reference_distance(b);
  identity.between = audited_distance({a, identity.reference_a}, {b, identity.reference_b});
  identity.chain_a = a.last_chain;
  identity.chain_b = b.last_chain;
  return identity;
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

}  // namespace olmo::report
