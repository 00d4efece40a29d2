// What changes whenever a database does, from its files' status alone.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

namespace olmo::serve {

struct Stamp {
  std::array<std::int64_t, 8> parts{};
  double written = 0;  ///< when something was last written, seconds since 1970; 0: not there

  friend bool operator==(const Stamp& a, const Stamp& b) { return a.parts == b.parts; }
};

/// Of a database and its write-ahead log. An empty log comes and goes with its readers, and counts
/// as none.
Stamp stamp_of(const std::filesystem::path& database);

}  // namespace olmo::serve
