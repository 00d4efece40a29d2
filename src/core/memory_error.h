#pragma once

#include <string>

#include "core/error.h"

namespace olmo {

/// Memory that was asked for is not there. Who knows what the work is says what would need less.
class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(ErrorKind::kFailure, message) {}
};

}  // namespace olmo
