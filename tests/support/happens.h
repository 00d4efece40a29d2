#pragma once

#include <chrono>
#include <thread>

namespace olmo::test {

/// Whether `happened` comes true. Asks again and again, for as long as a very busy machine may
/// need; a test that waits without a limit hangs where it should fail.
template <class Happened>
bool happens(const Happened& happened) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (std::chrono::steady_clock::now() < end) {
    if (happened()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace olmo::test
