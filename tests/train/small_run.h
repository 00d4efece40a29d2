// Data of the small trainings that the tests of this room make.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "support/temporary_directory.h"

namespace olmo::train {

/// 200 instances of 8 tokens below 128, the same each time; the file lies in `folder`.
inline std::filesystem::path write_tokens(const test::TemporaryDirectory& folder) {
  const auto path = folder / "tokens.npy";
  std::mt19937 random(7);
  std::vector<std::uint16_t> ids(8 * 200);
  for (auto& id : ids) id = static_cast<std::uint16_t>(random() % 128);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  return path;
}

}  // namespace olmo::train
