#include "train/speed.h"

#include <algorithm>

#include "core/compute/libtorch.h"
#include "core/compute/machine.h"
#include "support/catch.h"

namespace olmo::train {
namespace {

Policy one_thread() { return resolve_policy("portable", "auto", 1); }

bool begins_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

}  // namespace

TEST_CASE("two measurements of one machine's peak agree", "[train]") {
  const PeakFlops first(one_thread()), second(one_thread());
  INFO(*first.value() << " and " << *second.value());
  const auto [low, high] = std::minmax({*first.value(), *second.value()});
  CHECK(high < 1.5 * low);
  CHECK(begins_with(first.source(), "measured: fused multiply-adds, "));
}

TEST_CASE("a step that is faster than the peak raises it, so that no share is above 1", "[train]") {
  PeakFlops peak(one_thread());
  CHECK_FALSE(peak.update(*peak.value() / 2));  // and the next measurement is not due
  CHECK(peak.update(1e18));
  CHECK(*peak.value() == 1e18);
  CHECK(begins_with(peak.source(), "measured: the fastest step"));
}

TEST_CASE("the terminal is told the peak that MFU is a share of, or why there is none", "[train]") {
  CHECK(mfu_line(2.064e11, "measured") == "MFU: of 206.4 GFLOP/s, measured");
  CHECK(mfu_line(std::nullopt, "unknown on another rank") == "MFU: unknown on another rank");
}

TEST_CASE("the peak of a GPU is unknown without a cluster file", "[train]") {
  Policy policy = one_thread();
  policy.device = Device::kCuda;
  PeakFlops peak(policy);
  CHECK_FALSE(peak.value());
  CHECK(begins_with(peak.source(), "unknown: "));
  CHECK_FALSE(peak.update(1e18));
}

TEST_CASE("the peak of instructions for bf16 is unknown", "[train]") {
  Policy policy = one_thread();
  policy.multiplies_bf16 = true;
  CHECK(PeakFlops(policy).value());  // fp32 does not use them
  policy.mixed_precision = MixedPrecision::kMixed;
  CHECK_FALSE(PeakFlops(policy).value());
  CHECK(begins_with(PeakFlops(policy).source(), "unknown: "));
}

TEST_CASE("the peak of ranks that share processors is unknown", "[train]") {
  const PeakFlops peak(one_thread(), processors_online() + 1);
  CHECK_FALSE(peak.value());
  CHECK(begins_with(peak.source(), "unknown: the ranks of this machine have "));
}

TEST_CASE("a library's products are held against the widest instruction set", "[train]") {
  const PeakFlops peak(resolve_policy("fast", "plain", 1));
  CHECK(peak.source() == "measured: fused multiply-adds, " + to_string(best_isa()) + ", 1 thread");
}

}  // namespace olmo::train
