#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/hash.h"

namespace olmo::data {

/// Unpacks the entries of a wheel (a zip file) whose new name is not empty into `folder`. `rename`
/// maps an entry's name to its path below `folder`, or to nothing to leave it out. Checksums of the
/// zip are checked. Returns the number of files. Throws Error(kInput) naming the wheel and the
/// entry for damage, for names that lead out of `folder`, and for entries that are larger than 1
/// GiB.
std::uint64_t unpack_wheel(const std::filesystem::path& wheel, const std::filesystem::path& folder,
                           const std::function<std::string(std::string_view)>& rename);

}  // namespace olmo::data
