// Where a training stands in its data. OLMo's order of an epoch is cut into batches from where the
// training began, so that batches of another size go on where those before them ended.
#pragma once

#include <cstdint>

namespace olmo {

/// After so many finished steps a training goes on with instance number `instance` of the order of
/// `epoch`.
struct DataPosition {
  std::uint64_t step = 0, epoch = 0, instance = 0;

  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Batches of a training: `batch_size` instances each, of `instances` in an epoch.
struct DataBatches {
  std::uint64_t instances = 0, batch_size = 0;

  /// Whole ones in the order of an epoch, from an instance on; the remainder is not seen.
  [[nodiscard]] std::uint64_t from(std::uint64_t instance) const;
  /// Epochs that so many steps take, the last of which they may not finish.
  [[nodiscard]] std::uint64_t epochs_of(std::uint64_t steps) const;
};

/// Where step number `step` begins, which is after `begin.step`, in a training that began at
/// `begin`. An epoch holds at least one batch.
DataPosition position_of_step(const DataPosition& begin, const DataBatches& batches,
                              std::uint64_t step);
/// The last step of the epochs before number `epochs`; `begin.step` where the training begins after
/// them.
std::uint64_t last_step_of_epochs(const DataPosition& begin, const DataBatches& batches,
                                  std::uint64_t epochs);
/// Where the training stands after it: in the same epoch, be it at its end, as OLMo counts. After
/// `begin.step`: where it began.
DataPosition position_after_step(const DataPosition& begin, const DataBatches& batches,
                                 std::uint64_t step);

}  // namespace olmo
