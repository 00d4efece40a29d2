// How fast each thread has lately been.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace olmo::ops {

/// How fast each of the threads that share products has lately been, beside their mean. Cores are
/// unlike: fast and slow ones lie in one processor, a hypervisor gives the other half of a core
/// away, another program takes turns. With equal shares, all wait for the slowest. Shares change no
/// bit of a product (linear.cpp).
class ThreadSpeeds {
 public:
  /// No thread counts as slower or faster than this, however long it was held up.
  static constexpr double kSlowest = 0.5, kFastest = 2;

  /// Of threads that are taken to be alike.
  explicit ThreadSpeeds(int threads) : speeds_(static_cast<std::size_t>(threads), 1.0) {}

  [[nodiscard]] double operator[](std::int64_t thread) const {
    return speeds_[static_cast<std::size_t>(thread)];
  }

  /// What a thread did of a shared operation (in any unit), and how long it took.
  struct Share {
    double work = 0, seconds = 0;
    [[nodiscard]] bool counts() const { return work > 0 && seconds > 0; }
    [[nodiscard]] double rate() const { return work / seconds; }
  };
  /// After an operation that threads 0, 1, … shared. Threads without work say nothing.
  void learn(std::span<const Share> shares);

 private:
  std::vector<double> speeds_;
};

/// Where part `index` of `extent`, cut into `weights.size()` parts, begins: the parts before it
/// have so much of the extent as their weights have of all. `extent` for the index after the last.
std::int64_t begin_of_part(std::int64_t extent, std::span<const double> weights,
                           std::int64_t index);

}  // namespace olmo::ops
