#include "train/divergence.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/compute/tensor.h"
#include "core/error.h"
#include "core/text/text.h"
#include "dist/agreement.h"
#include "dist/exchange.h"

namespace olmo::train {
namespace {

[[noreturn]] void diverge(std::int64_t step, const std::string& what,
                          const std::string& consequence) {
  throw dist::AgreedError(ErrorKind::kDiverged,
                          "step " + std::to_string(step) + ": " + what + "; " + consequence);
}

/// The exponent of NaNs and infinities is all ones.
bool finite(float value) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  return (std::bit_cast<std::uint32_t>(value) & kExponent) != kExponent;
}

/// At the memory's speed: no branch, a line of the cache at a time, which the compiler makes
/// vectors of, and lines fetched ahead, since the processor's own prefetching ends with each page.
bool finite(std::span<const float> values) {
  constexpr std::size_t kLine = 16, kAhead = 512;
  std::array<std::uint32_t, kLine> bad{};
  std::size_t at = 0;
  for (; at + kLine <= values.size(); at += kLine) {
    const float* line = values.data() + at;
    __builtin_prefetch(line + kAhead);
    for (std::size_t i = 0; i < kLine; ++i) bad[i] |= finite(line[i]) ? 0U : 1U;
  }
  for (; at < values.size(); ++at) bad[0] |= finite(values[at]) ? 0U : 1U;
  return std::ranges::all_of(bad, [](std::uint32_t each) { return each == 0; });
}

bool finite(const Policy& policy, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat) return true;
  const at::Tensor on_host = to_host(policy, tensor);
  const auto values = host_span<float>(on_host);
  std::atomic<bool> all{true};
  parallel_for(0, tensor.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    if (!finite(
            values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))))
      all = false;
  });
  return all;
}

/// The name of the first tensor that is not finite of what all ranks own, who have the same names
/// in the same order; nothing if all are.
std::optional<std::string> first_on_all(const Stepper& stepper, const NamedTensors& owned) {
  const auto mine = find_not_finite(stepper.policy(), owned);
  const auto first = std::ranges::min(dist::all_gather_value(stepper.ranks(), mine));
  return first < std::ssize(owned) ? std::optional(owned[static_cast<std::size_t>(first)].name)
                                   : std::nullopt;
}

}  // namespace

void diverge_before_update(const StepGradients& gradients, dist::Communicator& ranks,
                           Recorder& recorder) {
  const data::Batch& batch = gradients.batch;
  const std::string what = std::isfinite(gradients.losses.loss) ? "gradient norm" : "loss";
  std::string instances;  // of this rank, then of all
  for (const auto index : batch.indices)
    instances += (instances.empty() ? "" : ",") + std::to_string(index);
  auto of_ranks = dist::all_gather_text(ranks, instances);
  std::erase(of_ranks, "");  // a rank may have none
  instances = joined(of_ranks, ",");
  const auto step = static_cast<std::int64_t>(batch.step);
  recorder.event(step, "error",
                 what + " is not finite; batch " + batch.digest.hex() + ", instances " + instances);
  if (instances.size() > 120) instances = instances.substr(0, 120) + "…";
  diverge(step,
          "the " + what + " is not finite for batch " + batch.digest.hex().substr(0, 16) +
              " (instances " + instances + ")",
          "no weight was changed by it, " + recorder.last_checkpoint() +
              ", and `data inspect` shows the batch's text");
}

void diverge_after_update(const store::StepRecord& row, const Stepper& stepper,
                          Recorder& recorder) {
  const auto tensor = first_on_all(stepper, stepper.parameters());
  const std::string what =
      (tensor ? *tensor + " is not finite" : std::string("the norm of the weights overflows")) +
      " after the update with learning rate " + Json(row.lr).dump() + " and gradient norm " +
      Json(row.grad_norm).dump();
  recorder.event(row.step, "error", what + "; batch " + row.batch_hash);
  diverge(row.step, what, recorder.last_checkpoint() + "; a smaller learning rate may help");
}

void require_finite_state(const Stepper& stepper, Recorder& recorder) {
  const auto step = stepper.state().step;
  auto tensor = first_on_all(stepper, stepper.parameters());
  // Before the first step the moments are zero.
  if (!tensor && step > 0) tensor = first_on_all(stepper, stepper.optim_state().tensors);
  if (!tensor) return;
  recorder.event(step, "error", *tensor + " is not finite");
  diverge(step, *tensor + " is not finite",
          "no checkpoint is made of it, " + recorder.last_checkpoint());
}

std::int64_t find_not_finite(const Policy& policy, const NamedTensors& tensors) {
  const auto bad = [&](const NamedTensor& each) { return !finite(policy, each.tensor); };
  return std::ranges::find_if(tensors, bad) - tensors.begin();
}

}  // namespace olmo::train
