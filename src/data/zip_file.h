#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace olmo::data {

/// Whether a name that an archive or a manifest gives a file (`../x`, `/x`) lies outside of its
/// folder.
bool leads_out(const std::filesystem::path& name);

/// Unpacks the entries of a zip file (as wheels of PyPI are, and what torch.save makes) whose new
/// name is not empty into `folder`. `rename` maps an entry's name to its path below `folder`, or to
/// nothing to leave it out. Checksums of the zip are checked. Returns the number of files. Throws
/// Error(kInput) naming the file and the entry for damage, for names that lead out of `folder`, and
/// for entries that are larger than 1 GiB.
std::uint64_t unpack_zip(const std::filesystem::path& file, const std::filesystem::path& folder,
                         const std::function<std::string(std::string_view)>& rename);

}  // namespace olmo::data
