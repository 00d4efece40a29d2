// Small host values between ranks: what every rank has to know of every other.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/compute/named_tensors.h"
#include "dist/communicator.h"

namespace olmo::dist {

/// The `mine` of every rank, by rank; all are of one size.
template <class T>
std::vector<T> all_gather_values(Communicator& ranks, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = static_cast<std::int64_t>(mine.size_bytes());
  const at::Tensor from = new_tensor({bytes}, at::kByte);
  const at::Tensor to = new_tensor({bytes * ranks.size()}, at::kByte);
  std::ranges::copy(std::as_bytes(mine), mutable_host_bytes(from).begin());
  ranks.all_gather(from, to).wait();
  std::vector<T> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  std::ranges::copy(host_bytes(to), std::as_writable_bytes(std::span(all)).begin());
  return all;
}

/// The value of every rank, by rank.
template <class T>
std::vector<T> all_gather_value(Communicator& ranks, const T& mine) {
  return all_gather_values(ranks, std::span<const T>(&mine, 1));
}

/// The text of every rank, by rank; lengths may differ.
std::vector<std::string> all_gather_text(Communicator& ranks, const std::string& mine);

/// The text of rank `root`, on every rank.
std::string broadcast_text(Communicator& ranks, const std::string& text, int root);

/// The value of rank `root`, on every rank.
template <class T>
T broadcast_value(Communicator& ranks, T value, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  const at::Tensor bytes = new_tensor({static_cast<std::int64_t>(sizeof(T))}, at::kByte);
  std::ranges::copy(std::as_bytes(std::span(&value, 1)), mutable_host_bytes(bytes).begin());
  ranks.broadcast(bytes, root).wait();
  std::ranges::copy(host_bytes(bytes), std::as_writable_bytes(std::span(&value, 1)).begin());
  return value;
}

}  // namespace olmo::dist
