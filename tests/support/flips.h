#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace olmo::test {

/// Damaged copies of a file, the same ones in every run.
class Flips {
 public:
  explicit Flips(std::string whole) : whole_(std::move(whole)), end_(whole_.size()) {}
  /// Damaged are the bytes [begin, end) alone; those that it lacks are left out.
  Flips(std::string whole, std::size_t begin, std::size_t end) : Flips(std::move(whole)) {
    begin_ = begin;
    if (end < end_) end_ = end;
  }

  /// The file with a bit turned in each of one to `most` places.
  std::string next(std::uint32_t most = 1) {
    std::string bytes = whole_;
    for (std::uint32_t flips = 1 + draw() % most; flips > 0; --flips) {
      char& byte = bytes[begin_ + draw() % (end_ - begin_)];
      byte = static_cast<char>(byte ^ (1 << draw() % 8));
    }
    return bytes;
  }

 private:
  std::uint32_t draw() { return (state_ = state_ * 1664525U + 1013904223U) >> 8U; }

  std::string whole_;
  std::size_t begin_ = 0, end_;
  std::uint32_t state_ = 1;
};

}  // namespace olmo::test
