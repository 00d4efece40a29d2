#include "data/public/tokenizers.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/text/text.h"
#include "data/public/fetch.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

struct KnownTokenizer {
  const char* name;
  const char* file;  ///< in the wheel, without `.json`
};

// OLMo 1's: the first made the data of its official trainings.
constexpr std::array<KnownTokenizer, 2> kTokenizers = {
    {{"dolma-v1_5", "allenai_gpt-neox-olmo-dolma-v1_5"},
     {"gpt-neox-20b", "allenai_eleuther-ai-gpt-neox-20b-pii-special"}}};

/// The names of files, without `.json`, that an identifier may mean.
std::vector<std::string> file_names(const std::string& identifier) {
  std::string hub_name = identifier;
  std::replace(hub_name.begin(), hub_name.end(), '/', '_');
  std::vector<std::string> names = {fs::path(identifier).filename().string(), hub_name};
  for (auto& name : names)
    if (name.ends_with(".json")) name.erase(name.size() - 5);
  for (const auto& [name, file] : kTokenizers)
    if (identifier == name) names.emplace_back(file);
  return names;
}

}  // namespace

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> names;
  for (const auto& known : kTokenizers) names.emplace_back(known.name);
  return names;
}

std::optional<fs::path> find_tokenizer(const std::string& identifier) {
  std::error_code ignored;
  if (fs::is_regular_file(identifier, ignored)) return identifier;
  const fs::path folder = evaluation_data_folder(default_data_folder()) / "tokenizers";
  for (const auto& name : file_names(identifier)) {
    const fs::path file = folder / (name + ".json");
    if (fs::is_regular_file(file, ignored)) return file;
  }
  return std::nullopt;
}

bool can_be_fetched(const std::string& identifier) {
  const auto names = file_names(identifier);
  return std::ranges::any_of(kTokenizers, [&](const KnownTokenizer& known) {
    return std::ranges::find(names, known.file) != names.end();
  });
}

std::string missing_tokenizer_hint(const std::string& identifier) {
  if (can_be_fetched(identifier)) return "`olmo-harness data fetch` brings it";
  return "expected a tokenizer.json, or one that `olmo-harness data fetch` brings: " +
         joined(tokenizer_names(), " or ");
}

fs::path require_tokenizer(const std::string& where, const std::string& identifier) {
  if (auto found = find_tokenizer(identifier)) return *std::move(found);
  if (is_there(identifier)) check_regular_file(identifier);  // a folder, or a pipe
  throw Error(ErrorKind::kUsage, where + " " + identifier + ": not on this machine; " +
                                     missing_tokenizer_hint(identifier));
}

}  // namespace olmo::data
