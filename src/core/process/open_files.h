// How many files, connections among them, this process may have open.
#pragma once

#include <cstdint>
#include <string>

namespace olmo {

/// Sees to it that this process can open `more` files beside those that it has open: raises its
/// soft limit, which many systems set to 1024, as far as is needed. Throws Error(kFailure) if the
/// hard limit is lower: `what`, as in "the connections of 2000 ranks", needs them.
void make_room_for_files(std::int64_t more, const std::string& what);

}  // namespace olmo
