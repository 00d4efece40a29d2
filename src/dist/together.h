// Errors of single ranks, made the errors of all.
#pragma once

#include <exception>
#include <functional>

#include "dist/communicator.h"

namespace olmo::dist {

/// `mine`: what failed on this rank, or null. Returns if nothing failed anywhere; otherwise throws
/// on every rank the same AgreedError: that of the lowest rank that failed, which the message
/// names, unless all have failed. A world of one rank throws its own error as it is. Every rank
/// calls it.
void throw_if_any(Communicator& ranks, const std::exception_ptr& mine);

/// Does `work`, which is this rank's alone, and throws on every rank if it threw on any. A rank on
/// which the transport itself failed has no part in this: let such an error pass.
template <class Work>
void together(Communicator& ranks, const Work& work) {
  std::exception_ptr mine;
  try {
    work();
  } catch (...) {  // carried to all ranks
    mine = std::current_exception();
  }
  throw_if_any(ranks, mine);
}

/// Does `work` on rank 0, which decides for all; if it throws, all ranks throw the same
/// AgreedError, which names no rank. A world of one rank throws its own error as it is.
void decide(Communicator& ranks, const std::function<void()>& work);

}  // namespace olmo::dist
