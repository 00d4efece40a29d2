// A child process that a test holds at chosen moments, so that what it does there does not depend
// on which of the two is faster.
#pragma once

#include "support/child.h"

namespace olmo::test {

/// A program that stops at each moment that `moment` names: part of a file's name or of a line on
/// stderr, or several with `|` between them (stop_at.cpp).
class StoppingChild : public Child {
 public:
  StoppingChild(std::vector<std::string> arguments, const std::filesystem::path& output,
                const std::string& moment)
      : Child(preloaded(std::move(arguments), moment), output) {}

  /// Waits for the next moment. False if the program has ended instead.
  bool stops() { return wait_for_stop(); }
  void go_on() const { signal(SIGCONT); }

  /// Goes through all moments until `due()` holds at one. False if the program has ended before.
  template <typename Due>
  bool stops_when(const Due& due) {
    while (stops()) {
      if (due()) return true;
      go_on();
    }
    return false;
  }

  /// Lets it run to its end.
  Ended wait() {
    go_on();
    while (stops()) go_on();
    return Child::wait();
  }

 private:
  static std::vector<std::string> preloaded(std::vector<std::string> arguments,
                                            const std::string& moment) {
    const auto library =
        std::filesystem::path(OLMO_BINARY).parent_path() / "tests" / "olmo_stop_at.so";
    arguments.insert(arguments.begin(), {"/usr/bin/env", "LD_PRELOAD=" + library.string(),
                                         "OLMO_TEST_STOP_AT=" + moment});
    return arguments;
  }
};

}  // namespace olmo::test
