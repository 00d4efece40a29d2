#pragma once

#include <algorithm>
#include <string>

#include "core/error.h"

namespace olmo {

/// Memory that was asked for is not there. Who knows what the work is says what would need less.
class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(ErrorKind::kFailure, message) {}
};

/// What LibTorch says of memory that is missing, in one line without its full stop: what was asked
/// for, and what else lies there. Its advice on settings of its allocator is left out: who catches
/// a MemoryError has better.
inline std::string memory_problem(const std::string& of_torch) {
  std::string problem =
      of_torch.substr(0, std::min(of_torch.find('\n'), of_torch.find(" If reserved")));
  if (problem.ends_with('.')) problem.pop_back();
  return problem;
}

}  // namespace olmo
