#pragma once

#include <cstdlib>
#include <string>

namespace olmo {

/// Its value; empty where it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// As the system has it: null where it is not set.
inline const char* environment_entry(const char* name) { return std::getenv(name); }

}  // namespace olmo
