// The tokenizers that `data fetch` brings, by the names that people and configs give them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace olmo::data {

/// "dolma-v1_5" and the others, for lists and messages.
std::vector<std::string> tokenizer_names();

/// The tokenizer.json that a command or `tokenizer.identifier` of a config means: the file of that
/// path, else among those that `data fetch` has unpacked the one of that name ("dolma-v1_5"), of
/// that file name, or of that hub name (`allenai/gpt-neox-olmo-dolma-v1_5` is
/// allenai_gpt-neox-olmo-dolma-v1_5.json); nothing if there is none here.
std::optional<std::filesystem::path> find_tokenizer(const std::string& identifier);

/// Whether `olmo-harness data fetch` brings what the identifier means.
bool can_be_fetched(const std::string& identifier);

/// What to do about an identifier that find_tokenizer() does not find: "`olmo-harness data fetch`
/// brings it", if it means a tokenizer that can be fetched; else the names that there are.
std::string missing_tokenizer_hint(const std::string& identifier);

/// Throws Error(kUsage) "WHERE IDENTIFIER: …" with the hint, if it is not found.
std::filesystem::path require_tokenizer(const std::string& where, const std::string& identifier);

}  // namespace olmo::data
