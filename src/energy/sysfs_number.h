#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace olmo::energy {

/// The first line of a small file; nothing if it cannot be read, `problem` says why.
std::optional<std::string> read_line(const std::filesystem::path& path, std::string* problem);

/// The whole number, at least 0, that a file begins with ("1234" or "1234 J"); nothing if there is
/// none, `problem` says why.
std::optional<double> read_number(const std::filesystem::path& path, std::string* problem);

}  // namespace olmo::energy
