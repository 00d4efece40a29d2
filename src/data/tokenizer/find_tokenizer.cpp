#include "data/tokenizer/find_tokenizer.h"

#include <algorithm>

#include "data/public/fetch.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

constexpr char kTokenizerFolder[] = "tokenizers";

}  // namespace

std::optional<fs::path> find_tokenizer(const std::string& identifier) {
  std::error_code ignored;
  if (fs::is_regular_file(identifier, ignored)) return identifier;
  const fs::path folder = evaluation_data_folder(default_data_folder()) / kTokenizerFolder;
  std::string hub_name = identifier;
  std::replace(hub_name.begin(), hub_name.end(), '/', '_');
  for (std::string name : {fs::path(identifier).filename().string(), hub_name}) {
    if (!name.ends_with(".json")) name += ".json";
    if (fs::is_regular_file(folder / name, ignored)) return folder / name;
  }
  return std::nullopt;
}

}  // namespace olmo::data
