#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "data/text_reader.h"

namespace olmo::test {

/// The lines of a file, plain or compressed.
inline std::vector<Json> lines_of(const std::filesystem::path& path) {
  std::vector<Json> lines;
  data::LineReader reader(path);
  for (data::Line line; reader.next(line);) lines.push_back(Json::parse(line.bytes));
  return lines;
}

}  // namespace olmo::test
