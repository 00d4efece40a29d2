#include "train/shared_order.h"

#include "core/process/terminal.h"
#include "dist/together.h"

namespace olmo::train {

void share_order(data::BatchSource& batches, dist::Communicator& ranks, bool first_of_node,
                 std::int64_t step) {
  const auto number = static_cast<std::uint64_t>(step);
  if (!batches.needs_order_file(number)) return;
  dist::decide(ranks, [&] {
    const auto why = batches.make_order_file(number);
    if (why) log_line("note: the order of the data was written: " + *why);
  });
  dist::together(ranks, [&] {
    if (first_of_node && !batches.finds_order_file(number)) batches.make_order_file(number);
  });
  batches.order_file_is_shared(number);
}

}  // namespace olmo::train
