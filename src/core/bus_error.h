// SIGBUS, the signal that a process gets when it reads a part of a mapped file that is no longer
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/files.h"

namespace olmo {

/// After this call, reading a part of a mapped file that is no longer there (the file was cut while
/// it was in use, or its disk fails) ends the process with one sentence and exit code 3 instead of
/// a signal. Every MappedFile calls this.
void install_bus_error_handler();

/// Reads `file` at `offset`, which lies within it, and throws Error(kInput) naming file and place
/// where the handler would end the process. A training uses it, because it has weights to save
/// before it ends.
void copy_mapped(const MappedFile& file, std::uint64_t offset, std::span<std::byte> into);

}  // namespace olmo
