#include "core/data_position.h"

#include <algorithm>

#include "core/error.h"

namespace olmo {

std::uint64_t DataBatches::from(std::uint64_t instance) const {
  return (instances - std::min(instance, instances)) / batch_size;
}

std::uint64_t DataBatches::epochs_of(std::uint64_t steps) const {
  return steps / from(0) + (steps % from(0) != 0 ? 1 : 0);
}

DataPosition position_of_step(const DataPosition& begin, const DataBatches& batches,
                              std::uint64_t step) {
  OLMO_CHECK(step > begin.step);
  const std::uint64_t before = step - 1, done = before - begin.step;
  const std::uint64_t rest = batches.from(begin.instance);
  if (done < rest) return {before, begin.epoch, begin.instance + done * batches.batch_size};
  const std::uint64_t more = done - rest, per_epoch = batches.from(0);
  return {before, begin.epoch + 1 + more / per_epoch, more % per_epoch * batches.batch_size};
}

std::uint64_t last_step_of_epochs(const DataPosition& begin, const DataBatches& batches,
                                  std::uint64_t epochs) {
  if (begin.epoch >= epochs) return begin.step;
  return begin.step + batches.from(begin.instance) + (epochs - begin.epoch - 1) * batches.from(0);
}

DataPosition position_after_step(const DataPosition& begin, const DataBatches& batches,
                                 std::uint64_t step) {
  if (step == begin.step) return begin;
  DataPosition position = position_of_step(begin, batches, step);
  position.step = step;
  position.instance += batches.batch_size;
  return position;
}

}  // namespace olmo
