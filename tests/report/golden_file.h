#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/files/json.h"

namespace olmo::report {

/// A file that tests/goldens/make_statistics.py made.
inline Json golden_file(const std::string& name) {
  return read_json_file(std::filesystem::path(OLMO_TEST_DATA) / "report" / name);
}

inline std::vector<double> numbers(const Json& json) { return json.get<std::vector<double>>(); }

}  // namespace olmo::report
