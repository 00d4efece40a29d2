#pragma once

#include "core/error.h"

namespace olmo::config {

/// What `read` returns of a file that this module's readers take for a config that a user has
/// written: its faults are those of an input.
template <class Read>
auto as_input(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    throw Error(ErrorKind::kInput, error.what());
  }
}

}  // namespace olmo::config
