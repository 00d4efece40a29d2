#include "models/olmo_optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/text/safe_text.h"
#include "model/hf_names.h"
#include "model/parameters.h"
#include "store/foreign/olmo_shards.h"
#include "store/foreign/param_groups.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/torch_file.h"

namespace olmo::models {
namespace {

namespace fs = std::filesystem;

/// Most updates whose number fp32, in which torch keeps it, tells from the next.
constexpr double kMostUpdates = 1 << 24;

using Path = std::vector<std::string>;  // of the dicts' keys on the way to a tensor
using Names = std::map<std::string, std::string>;

constexpr char kGroups[] = "param_groups";

/// A tensor's place in the nested dicts that OLMo saved: behind a key of OLMo's safetensors, or
/// `state/NAME/PART`.
Path path_of(const std::string& name, bool is_key) {
  if (is_key) return store::decode_olmo_path(name);
  Path path;
  std::istringstream names(name);
  for (std::string part; std::getline(names, part, '/');) path.push_back(part);
  return path;
}

/// The tensors whose rows are a parameter's.
using Parts = std::vector<model::HfMapping::Part>;

/// The state of each parameter.
class States {
 public:
  States(store::StoredTensors stored, std::string where, const Names& names, bool has_keys)
      : stored_(std::move(stored)), where_(std::move(where)) {
    std::vector<std::string> parameters, parts;
    std::vector<const store::StoredTensor*> tensors;
    for (const auto& tensor : stored_.tensors()) {
      const auto path = path_of(tensor.name, has_keys);
      if (path.size() != 3 || path[0] != "state") continue;
      const auto named = names.find(path[1]);
      parameters.push_back(named == names.end() ? path[1] : named->second);
      parts.push_back(path[2]);
      tensors.push_back(&tensor);
    }
    parameters = model::plain_names(std::move(parameters));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = model::hf_name_of_olmo_core(parameters[i]);
      is_of_olmo_core_ = is_of_olmo_core_ || name != parameters[i];
      tensors_[{parts[i], name}] = tensors[i];
    }
  }

  /// OLMo-core has queries, keys and values, and the halves of SwiGLU, in tensors of their own.
  [[nodiscard]] std::vector<model::HfMapping> name_map(const model::ModelConfig& config) const {
    return is_of_olmo_core_ ? model::hf_name_map(config) : model::own_name_map(config);
  }

  /// It has one moment of each parameter, and does not count.
  [[nodiscard]] bool is_of_lionw() const {
    return !is_empty() && std::ranges::all_of(tensors_, [](const auto& tensor) {
      const std::string& part = tensor.first.first;
      return part != "exp_avg_sq" && part != "step";
    });
  }

  [[nodiscard]] bool is_empty() const { return tensors_.empty(); }
  [[nodiscard]] bool has(const std::string& part, const std::string& name) const {
    return tensors_.contains({part, name});
  }

  /// In fp32.
  [[nodiscard]] at::Tensor take(const std::string& part, const std::string& name,
                                const std::vector<std::int64_t>& shape) const {
    const auto found = tensors_.find({part, name});
    if (found == tensors_.end())
      fail(part, name,
           "is missing: expected the state of " + std::string(is_of_lionw() ? "LionW" : "AdamW") +
               ", by the parameters' names or with the `param_groups` that name them");
    at::Tensor tensor = store::read_tensor(*found->second);
    if (tensor.scalar_type() != at::kFloat) fail(part, name, "is not F32");
    if (tensor.sizes() != at::IntArrayRef(shape))
      fail(part, name, "has another shape than the config asks for");
    return tensor;
  }

  /// Of a whole parameter, whose rows lie in `parts`, one behind the other.
  [[nodiscard]] at::Tensor take_rows(const std::string& part, const Parts& parts,
                                     std::vector<std::int64_t> shape) const {
    if (parts.size() == 1) return take(part, parts.front().name, shape);
    at::Tensor whole = new_tensor(shape, at::kFloat);
    std::int64_t begin = 0;
    for (const auto& [name, count] : parts) {
      shape.front() = count;
      whole.narrow(0, begin, count).copy_(take(part, name, shape));
      begin += count;
    }
    return whole;
  }

  [[nodiscard]] std::int64_t take_step(const std::string& name) const {
    const double value = host_value<float>(take("step", name, {}));
    if (!(value >= 0 && value <= kMostUpdates) || std::floor(value) != value)
      fail("step", name, "is no number of updates up to 16777216");
    return static_cast<std::int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& part, const std::string& name,
                         const std::string& what) const {
    throw Error(ErrorKind::kInput, where_ + ": `" + part + "` of " + safe_line(name) + " " + what);
  }

 private:
  store::StoredTensors stored_;
  std::string where_;
  std::map<std::pair<std::string, std::string>, const store::StoredTensor*> tensors_;
  bool is_of_olmo_core_ = false;
};

store::StoredTensors stored_in(store::TensorFile file) {
  const std::string where = file.map().path().string();
  std::vector<store::TensorFile> files;
  files.push_back(std::move(file));
  return {std::move(files), where};
}

States open_torch(const fs::path& path) {
  store::TorchFile file(path);
  const auto* groups = file.root().find(kGroups);
  const Names names = groups == nullptr ? Names() : store::names_of_numbers(*groups);
  return {stored_in(std::move(file)), path.string(), names, /*has_keys=*/false};
}

States open_safetensors(const fs::path& path) {
  store::SafetensorsFile file(path);
  Names names;
  for (const auto& entry : file.entries()) {
    if (store::decode_olmo_path(entry.name) != Path{kGroups}) continue;
    const auto bytes = file.bytes(entry);
    std::string pickle(bytes.size(), '\0');
    copy_mapped(file.map(), entry.offset, std::as_writable_bytes(std::span(pickle)));
    names = store::names_of_numbers(store::Pickle(std::move(pickle), path.string()).root());
  }
  return {stored_in(std::move(file)), path.string(), names, /*has_keys=*/true};
}

void require_step(const States& states, const Parts& parts, std::int64_t expected) {
  for (const auto& [name, rows] : parts)
    if (const std::int64_t step = states.take_step(name); step != expected)
      states.fail("step", name,
                  "is " + std::to_string(step) + ", and of the first parameter " +
                      std::to_string(expected));
}

/// Nothing: the folder holds no state of an optimizer.
std::optional<States> open_states(const fs::path& folder) {
  const fs::path safetensors = folder / "optim.safetensors", pickle = folder / "optim.pt";
  if (is_there(safetensors)) return open_safetensors(safetensors);
  if (is_there(pickle)) return open_torch(pickle);
  const auto format = store::shard_format_of(folder);
  if (!format) return std::nullopt;
  States states(store::open_optimizer_shards(folder, *format), folder.string(), {},
                /*has_keys=*/false);
  if (states.is_empty()) return std::nullopt;
  return states;
}

}  // namespace

bool holds_olmo_optimizer(const fs::path& folder) { return open_states(folder).has_value(); }

std::optional<OlmoOptimizer> read_olmo_optimizer(const fs::path& folder,
                                                 const model::ModelConfig& config) {
  const auto states = open_states(folder);
  if (!states) return std::nullopt;
  const auto specs = model::parameter_specs(config);
  const auto map = states->name_map(config);
  OlmoOptimizer state;
  state.name = states->is_of_lionw() ? "lionw" : "adamw";
  std::vector<std::string> moments = {"exp_avg"};
  if (state.name == "adamw") {
    moments.emplace_back("exp_avg_sq");
    state.step = states->take_step(map.front().parts.front().name);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& spec = specs[i];
    if (state.step) require_step(*states, map[i].parts, *state.step);
    for (const std::string& part : moments)
      state.tensors.push_back(
          {part + "/" + spec.name, states->take_rows(part, map[i].parts, spec.shape)});
    const std::string average = "grad_norm_exp_avg";  // under max_grad_norm_ratio
    if (states->has(average, spec.name))
      state.tensors.push_back({average + "/" + spec.name, states->take(average, spec.name, {})});
  }
  if (state.step) state.set_step(*state.step);
  return state;
}

void OlmoOptimizer::set_step(std::int64_t updates) {
  step = updates;
  const std::string moment = "exp_avg/";
  NamedTensors counted;
  for (auto& named : tensors) {
    if (named.name.starts_with(moment)) {
      const at::Tensor count = new_tensor({}, at::kLong);
      mutable_host_span<std::int64_t>(count).front() = updates;
      counted.push_back({"step/" + named.name.substr(moment.size()), count});
    }
    counted.push_back(std::move(named));
  }
  tensors = std::move(counted);
}

}  // namespace olmo::models
