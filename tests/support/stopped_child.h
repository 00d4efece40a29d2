#pragma once

#include "support/child.h"

namespace olmo::test {

/// A program that a test stops where it happens to be.
class StoppedChild : public Child {
 public:
  using Child::Child;

  /// Returns when it stands still.
  void stop() {
    signal(SIGSTOP);
    wait_for_stop();
  }
};

}  // namespace olmo::test
