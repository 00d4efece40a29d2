// A unit of its own, because the headers of randperm take a second and a half to compile.
#include "evaluation/shuffled_subset.h"

#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include "core/compute/named_tensors.h"

namespace olmo::evaluation {

std::set<std::int64_t> shuffled_subset(std::int64_t count, std::int64_t samples,
                                       std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::Tensor order = at::randperm(count, generator, at::kLong);
  const auto* begin = host_span<std::int64_t>(order).data();
  return {begin, begin + std::min(count, samples)};
}

}  // namespace olmo::evaluation
