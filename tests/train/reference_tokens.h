#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace olmo::train {

/// The tokens of OLMo's own trainings: token_ids() of tests/goldens/make_trajectory.py.
inline void write_reference_tokens(const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  for (std::uint64_t i = 0; i < 32 * 52; ++i) {
    const auto id =
        static_cast<std::uint16_t>((i * i * 2654435761U % (std::uint64_t{1} << 32) >> 16) % 126);
    file.write(reinterpret_cast<const char*>(&id), sizeof id);
  }
}

}  // namespace olmo::train
