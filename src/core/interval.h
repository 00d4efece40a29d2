#pragma once

namespace olmo {

/// A confidence interval, both ends included.
struct Interval {
  double low = 0;
  double high = 0;

  [[nodiscard]] bool inside(double margin) const { return -margin < low && high < margin; }
};

}  // namespace olmo
