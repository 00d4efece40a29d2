// The order of the data on many ranks: made once, read by all.
#pragma once

#include <cstdint>

#include "data/batch.h"
#include "dist/communicator.h"

namespace olmo::train {

/// Sees to it that every rank finds the order of the step's epoch (data/order.h), if it is one that
/// lies in a file: rank 0 makes the file, and then the first rank of each node that does not see
/// it, in the same place on its own disk. Every rank calls it before the first step and before each
/// later one, after BatchSource::keep_orders_in; where there is nothing to do, it costs nothing and
/// sends nothing. Where a file cannot be made, all ranks throw the same AgreedError.
void share_order(data::BatchSource& batches, dist::Communicator& ranks, bool first_of_node,
                 std::int64_t step);

}  // namespace olmo::train
