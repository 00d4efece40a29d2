#pragma once

#include <omp.h>
#include <unistd.h>

namespace olmo::test {

/// fork() for a child that goes on with the tests' own code. A signal ends it after ten minutes, so
/// that a child that waits for something that never comes (a lock that another thread held at the
/// fork, a pipe) does not hold up the test that waits for it. OpenMP's threads stay with the
/// parent: the child has one, else it would wait for those that an earlier test started.
inline pid_t fork_briefly() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(600);
  omp_set_num_threads(1);
  return child;
}

}  // namespace olmo::test
