#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace olmo::data {

/// The tokenizer.json that `tokenizer.identifier` means: the file of that path, else among those
/// that `data fetch` has unpacked the one of that file name, or of that hub name
/// (`allenai/gpt-neox-olmo-dolma-v1_5` is allenai_gpt-neox-olmo-dolma-v1_5.json); nothing if there
/// is none here.
std::optional<std::filesystem::path> find_tokenizer(const std::string& identifier);

}  // namespace olmo::data
