// Small host values between ranks: what every rank has to know of every other.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/named_tensors.h"
#include "dist/communicator.h"

namespace olmo::dist {

/// The `mine` of every rank, by rank; all are of one size.
template <class T>
std::vector<T> all_gather_values(Communicator& ranks, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = static_cast<std::int64_t>(mine.size_bytes());
  const at::Tensor from = new_tensor({bytes}, at::kByte);
  const at::Tensor to = new_tensor({bytes * ranks.size()}, at::kByte);
  std::memcpy(mutable_host_bytes(from).data(), mine.data(), mine.size_bytes());
  ranks.all_gather(from, to).wait();
  std::vector<T> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  std::memcpy(all.data(), host_bytes(to).data(), host_bytes(to).size());
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

/// The values of rank `root`, on every rank.
template <class T>
std::vector<T> broadcast_values(Communicator& ranks, const std::vector<T>& values, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  const std::string text =
      broadcast_text(ranks, std::string(bytes, values.size() * sizeof(T)), root);
  std::vector<T> all(text.size() / sizeof(T));
  std::memcpy(all.data(), text.data(), text.size());
  return all;
}

}  // namespace olmo::dist
