#pragma once

#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace olmo {

using Json = nlohmann::json;

/// Parses a JSON file. Throws Error(kInput) "FILE:LINE: …" naming what is wrong. Comments are not
/// accepted here: only configs have them (config/file.h).
Json read_json_file(const std::filesystem::path& path);

}  // namespace olmo
