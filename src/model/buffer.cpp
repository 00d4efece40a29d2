#include "model/buffer.h"

#include <c10/util/accumulate.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/host_tensor.h"

namespace olmo::model {
namespace {

void advise_huge_pages(std::span<std::byte> memory) {
  constexpr std::size_t kWorthwhile = std::size_t{4} << 20;
  if (memory.size() < kWorthwhile) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()) / page * page;
  // Advice only: a kernel without huge pages refuses, and nothing is lost.
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

at::Tensor empty_tensor(at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor tensor = new_tensor(shape, dtype);
  advise_huge_pages(mutable_host_bytes(tensor));
  return tensor;
}

at::Tensor Buffer::shaped(std::initializer_list<std::int64_t> shape) {
  const std::vector<std::int64_t> sizes(shape);
  if (view_.defined() && view_.sizes() == at::IntArrayRef(sizes)) return view_;
  const std::int64_t count = c10::multiply_integers(sizes);
  if (!memory_.defined() || memory_.numel() < count) {
    memory_.reset();  // before the new memory is taken: both together may not fit
    view_.reset();
    memory_ = empty_tensor({count}, dtype_);
  }
  view_ = memory_.narrow(0, 0, count).view(sizes);
  return view_;
}

}  // namespace olmo::model
