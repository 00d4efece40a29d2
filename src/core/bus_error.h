// What becomes of SIGBUS: a part of a mapped file that can no longer be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/files.h"

namespace olmo {

/// From here on, touching a part of a mapped file that can no longer be read (the file was cut
/// while it was in use, or its disk fails) ends the process with one sentence and exit code 3.
/// Every MappedFile calls this.
void install_bus_error_handler();

/// As a read of `file` at `offset`, which lies within it: throws Error(kInput) naming file and
/// place where the handler would end the process. For what is read while there is something to
/// lose.
void copy_mapped(const MappedFile& file, std::uint64_t offset, std::span<std::byte> into);

}  // namespace olmo
