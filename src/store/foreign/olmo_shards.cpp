#include "store/foreign/olmo_shards.h"

#include <string_view>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/foreign/dcp_files.h"
#include "store/foreign/find_weights.h"
#include "store/foreign/flat_parameters.h"
#include "store/foreign/olmo_core_files.h"
#include "store/foreign/torch_file.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<TensorFile>;

constexpr std::string_view kDcpModel = "model.", kDcpState = "optim.state.";

/// rank0.pt and those that follow it.
std::vector<fs::path> rank_files(const fs::path& folder) {
  std::vector<fs::path> files;
  while (is_there(rank_file(folder, files.size())))
    files.push_back(rank_file(folder, files.size()));
  return files;
}

Files open_torch_files(const fs::path& folder) {
  Files files;
  for (const fs::path& file : rank_files(folder)) files.push_back(TorchFile(file));
  return files;
}

Files open_flat_models(const fs::path& folder, FlatValues values) {
  Files files;
  for (const fs::path& file : rank_files(folder / kModelFolder))
    files.push_back(open_flat_parameters(file, values));
  return files;
}

Files open_flat_states(const fs::path& folder) {
  Files files;
  if (!is_there(folder / kOptimizerFolder)) return files;
  const Files models = open_flat_models(folder, FlatValues::kUnread);
  for (std::size_t rank = 0; rank < models.size(); ++rank)
    files.push_back(open_flat_state(rank_file(folder / kOptimizerFolder, rank), models[rank]));
  return files;
}

StoredTensors::NameOf without(std::string_view prefix) {
  return [prefix](const std::string& name) -> std::optional<std::string> {
    if (!name.starts_with(prefix)) return std::nullopt;
    return name.substr(prefix.size());
  };
}

/// `PREFIX NAME SEPARATOR PART`, as `state/NAME/PART`.
StoredTensors::NameOf state_between(std::string_view prefix, std::string_view separator) {
  return [prefix, separator](const std::string& name) -> std::optional<std::string> {
    const auto end = name.rfind(separator);
    if (!name.starts_with(prefix) || end == std::string::npos || end < prefix.size())
      return std::nullopt;
    return "state/" + name.substr(prefix.size(), end - prefix.size()) + "/" +
           name.substr(end + separator.size());
  };
}

}  // namespace

StoredTensors open_model_shards(const fs::path& folder, ShardFormat format) {
  const std::string where = folder.string();
  switch (format) {
    case ShardFormat::kTorchNew:
      return {open_dcp(folder / kBothFolder, kDcpModel), where, without(kDcpModel)};
    case ShardFormat::kTorchLegacy:
      return {open_torch_files(folder), where, without("model/")};
    case ShardFormat::kLocal:
      return {open_flat_models(folder, FlatValues::kChecked), where};
    case ShardFormat::kOlmoCore:
      return {open_olmo_core(folder / kModelFolder), where};
  }
  OLMO_CHECK(false);
}

StoredTensors open_optimizer_shards(const fs::path& folder, ShardFormat format) {
  const std::string where = folder.string();
  switch (format) {
    case ShardFormat::kTorchNew:
      return {open_dcp(folder / kBothFolder, kDcpState), where, state_between(kDcpState, ".")};
    case ShardFormat::kTorchLegacy:
      return {open_torch_files(folder), where, state_between("optim/state/", "/")};
    case ShardFormat::kLocal:
      return {open_flat_states(folder), where};
    case ShardFormat::kOlmoCore:
      if (!is_there(folder / kOptimizerFolder / kOlmoCoreMetadata)) return {{}, where};
      return {open_olmo_core(folder / kOptimizerFolder), where, state_between("state.", ".__")};
  }
  OLMO_CHECK(false);
}

}  // namespace olmo::store
