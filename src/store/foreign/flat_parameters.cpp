#include "store/foreign/flat_parameters.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "store/foreign/param_groups.h"
#include "store/foreign/torch_file.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

std::string without_wrappers(std::string name) {
  constexpr std::string_view kWrapper = "_fsdp_wrapped_module.";
  for (auto at = name.find(kWrapper); at != std::string::npos; at = name.find(kWrapper))
    name.erase(at, kWrapper.size());
  return name;
}

/// Values of a parameter: where they begin in it and in the flat parameter, and how many they are.
struct Piece {
  std::size_t parameter = 0;  ///< its index among those of the flat parameter
  std::int64_t begin = 0, begin_in_flat = 0, values = 0;
};

/// Cuts flat parameters into the parameters that they hold.
class FlatFile : public TorchFile {
 public:
  FlatFile(const fs::path& path, FlatValues values) : TorchFile(path) {
    const PickleValue& modules = member(root(), "modules");
    std::vector<TensorEntry> pieces;
    for (std::size_t i = 0; i < modules.items.size(); ++i) {
      const std::string prefix =
          without_wrappers(std::string(member(*modules.items[i], "name").text) + ".");
      const PickleValue& handles = member(*modules.items[i], "handles");
      for (std::size_t j = 0; j < handles.items.size(); ++j) {
        const std::string flat =
            "modules/" + std::to_string(i) + "/handles/" + std::to_string(j) + "/" + kData;
        if (values == FlatValues::kChecked) check(entry(flat));
        cut(*handles.items[j], entry(flat), prefix == "." ? "" : prefix, pieces);
      }
    }
    set_entries(std::move(pieces));
  }

 private:
  static constexpr char kData[] = "flat_param.data";

  [[noreturn]] void damaged(const std::string& what) const {
    throw_damaged(map().path().string(), what);
  }

  [[nodiscard]] const PickleValue& member(const PickleValue& dict, std::string_view key) const {
    if (const PickleValue* value = dict.find(key)) return *value;
    throw Error(ErrorKind::kInput, map().path().string() + ": holds no `" + std::string(key) +
                                       "`, as OLMo writes FSDP's flat parameters");
  }

  /// Its pieces have no checksum of their own.
  void check(const TensorEntry& flat) const {
    TensorCheck check(*this, flat);
    check.update(bytes(flat));
    check.finish();
  }

  void cut(const PickleValue& handle, const TensorEntry& flat, const std::string& prefix,
           std::vector<TensorEntry>& pieces) const {
    const auto& names = member(handle, "flat_param._fqns").items;
    const auto& shapes = member(handle, "flat_param._shapes").items;
    const auto width = find_tensor_dtype(flat.dtype)->bytes;
    const auto values = static_cast<std::int64_t>(flat.values());
    for (const Piece& piece : pieces_of(handle)) {
      if (piece.parameter >= names.size() || piece.parameter >= shapes.size())
        damaged("has a piece of no parameter");
      const std::string name = prefix + std::string(names[piece.parameter]->text);
      const auto shape = shapes[piece.parameter]->whole_numbers();
      if (!shape || piece.begin < 0 || piece.begin_in_flat < 0 || piece.values < 0 ||
          piece.begin_in_flat > values || piece.values > values - piece.begin_in_flat)
        damaged("a piece of " + name + " is outside of its flat parameter");
      pieces.push_back(
          {.name = name,
           .dtype = flat.dtype,
           .shape = {piece.values},
           .offset = flat.offset + static_cast<std::size_t>(piece.begin_in_flat) * width,
           .bytes = static_cast<std::size_t>(piece.values) * width,
           .crc32 = {},
           .shard_of = ShardPlace{*shape, piece.begin}});
    }
  }

  [[nodiscard]] std::vector<Piece> pieces_of(const PickleValue& handle) const {
    if (handle.find("flat_param._shard_indices") != nullptr) return pieces_of_torch_2_0(handle);
    std::vector<Piece> pieces;
    const auto& infos = member(handle, "flat_param._shard_param_infos").items;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      // _ShardParamInfo(in_shard, offset_in_shard, numel_in_shard, intra_param_start_idx, …)
      if (infos[i]->kind != Kind::kCall || infos[i]->items[1]->items.size() != 5)
        damaged("does not say where a parameter lies");
      const auto& info = infos[i]->items[1]->items;
      if (info[1]->kind != Kind::kInteger) continue;  // none of it is here
      pieces.push_back({.parameter = i,
                        .begin = info[3]->integer,
                        .begin_in_flat = info[1]->integer,
                        .values = info[2]->integer});
    }
    return pieces;
  }

  /// Its first parameter, and of each from there the first and last value.
  [[nodiscard]] std::vector<Piece> pieces_of_torch_2_0(const PickleValue& handle) const {
    const auto indices = member(handle, "flat_param._shard_indices").whole_numbers();
    if (!indices || indices->size() != 2 || indices->front() < 0)
      damaged("does not say where a parameter lies");
    std::vector<Piece> pieces;
    auto parameter = static_cast<std::size_t>(indices->front());
    std::int64_t next = 0;
    for (const PickleValue* range : member(handle, "flat_param._shard_param_offsets").items) {
      const auto ends = range->whole_numbers();
      const bool is_range = ends && ends->size() == 2 && 0 <= ends->front() &&
                            ends->front() <= ends->back() && ends->back() < INT64_MAX / 2;
      if (!is_range || next > INT64_MAX / 2) damaged("does not say where a parameter lies");
      const std::int64_t values = ends->back() - ends->front() + 1;
      pieces.push_back({.parameter = parameter++,
                        .begin = ends->front(),
                        .begin_in_flat = next,
                        .values = values});
      next += values;
    }
    return pieces;
  }
};

/// The state of the optimizer, which goes by numbers.
class FlatStateFile : public TorchFile {
 public:
  FlatStateFile(const fs::path& path, const TensorFile& parameters) : TorchFile(path) {
    std::map<std::string, const TensorEntry*> pieces;
    for (const TensorEntry& piece : parameters.entries()) pieces[piece.name] = &piece;
    const PickleValue* groups = root().find("param_groups");
    const auto names =
        groups == nullptr ? std::map<std::string, std::string>() : names_of_numbers(*groups);
    std::vector<TensorEntry> state;
    for (TensorEntry entry : entries()) {
      const auto number_end = entry.name.find('/', kState.size());
      if (!entry.name.starts_with(kState) || number_end == std::string::npos) continue;
      const auto name = names.find(entry.name.substr(kState.size(), number_end - kState.size()));
      if (name == names.end()) continue;
      const std::string parameter = without_wrappers(name->second);
      entry.name = std::string(kState) + parameter + entry.name.substr(number_end);
      if (!entry.shape.empty()) entry.shard_of = place_of(entry, pieces[parameter]);
      state.push_back(std::move(entry));
    }
    set_entries(std::move(state));
  }

 private:
  static constexpr std::string_view kState = "state/";

  [[nodiscard]] ShardPlace place_of(const TensorEntry& entry, const TensorEntry* piece) const {
    // Where a rank has all of a parameter, its state may have the parameter's shape.
    if (piece != nullptr && piece->values() == entry.values()) return *piece->shard_of;
    throw_damaged(map().path().string() + ": " + entry.name,
                  "the rank's file of parameters does not have as many values of it");
  }
};

}  // namespace

TensorFile open_flat_parameters(const fs::path& model_file, FlatValues values) {
  return FlatFile(model_file, values);
}

TensorFile open_flat_state(const fs::path& optimizer_file, const TensorFile& parameters) {
  return FlatStateFile(optimizer_file, parameters);
}

}  // namespace olmo::store
