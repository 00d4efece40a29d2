#include "dist/exchange.h"

#include <algorithm>

namespace olmo::dist {

std::vector<std::string> all_gather_text(Communicator& ranks, const std::string& mine) {
  const auto sizes = all_gather_value(ranks, static_cast<std::int64_t>(mine.size()));
  // Padded to the longest: texts are short, and equal sizes need no offsets.
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(std::ranges::max(sizes)));
  const auto all = all_gather_values(ranks, std::span<const char>(padded));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    texts.emplace_back(all.data() + i * padded.size(), static_cast<std::size_t>(sizes[i]));
  return texts;
}

std::string broadcast_text(Communicator& ranks, const std::string& text, int root) {
  const at::Tensor size = new_tensor({1}, at::kLong);
  mutable_host_span<std::int64_t>(size).front() = static_cast<std::int64_t>(text.size());
  ranks.broadcast(size, root).wait();
  const at::Tensor bytes = new_tensor({host_value<std::int64_t>(size)}, at::kByte);
  const auto span = mutable_host_bytes(bytes);
  if (ranks.rank() == root) std::ranges::copy(std::as_bytes(std::span(text)), span.begin());
  ranks.broadcast(bytes, root).wait();
  return {reinterpret_cast<const char*>(span.data()), span.size()};
}

}  // namespace olmo::dist
