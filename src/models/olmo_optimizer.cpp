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
#include "store/foreign/pickle.h"
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

/// Names of parameters by the numbers that they have in the optimizer's state under DDP.
Names names_of_numbers(const store::PickleValue& param_groups) {
  Names names;
  for (const auto* group : param_groups.items) {
    const auto *numbers = group->find("params"), *texts = group->find("param_names");
    if (numbers == nullptr || texts == nullptr) continue;
    for (std::size_t i = 0; i < std::min(numbers->items.size(), texts->items.size()); ++i) {
      const auto& number = *numbers->items[i];
      if (number.kind == store::PickleValue::Kind::kInteger)
        names[std::to_string(number.integer)] = texts->items[i]->text;
    }
  }
  return names;
}

/// A tensor's place in the nested dicts that OLMo saved.
Path path_of(const std::string& entry, bool is_torch_file) {
  if (!is_torch_file) return store::decode_olmo_path(entry);
  Path path;
  std::istringstream names(entry);
  for (std::string name; std::getline(names, name, '/');) path.push_back(name);
  return path;
}

class StateFile {
 public:
  StateFile(store::TensorFile file, const Names& names, bool is_torch_file)
      : file_(std::move(file)), where_(file_.map().path().string()) {
    std::vector<std::string> parameters, parts, entries;
    for (const auto& entry : file_.entries()) {
      const auto path = path_of(entry.name, is_torch_file);
      if (path.size() != 3 || path[0] != "state") continue;
      const auto named = names.find(path[1]);
      parameters.push_back(named == names.end() ? path[1] : named->second);
      parts.push_back(path[2]);
      entries.push_back(entry.name);
    }
    parameters = model::plain_names(std::move(parameters));
    for (std::size_t i = 0; i < entries.size(); ++i) keys_[{parts[i], parameters[i]}] = entries[i];
  }

  [[nodiscard]] bool has(const std::string& part, const std::string& name) const {
    return keys_.contains({part, name});
  }

  /// In fp32.
  [[nodiscard]] at::Tensor take(const std::string& part, const model::ParameterSpec& spec,
                                const std::vector<std::int64_t>& shape) const {
    const auto found = keys_.find({part, spec.name});
    if (found == keys_.end())
      fail(part, spec.name,
           "is missing: expected the state of AdamW, by the parameters' names or with the "
           "`param_groups` that name them");
    at::Tensor tensor = file_.tensor(found->second);
    if (tensor.scalar_type() != at::kFloat) fail(part, spec.name, "is not F32");
    if (tensor.sizes() != at::IntArrayRef(shape))
      fail(part, spec.name, "has another shape than the config asks for");
    return tensor;
  }

  [[nodiscard]] std::int64_t take_step(const model::ParameterSpec& spec) const {
    const double value = host_value<float>(take("step", spec, {}));
    if (!(value >= 0 && value <= kMostUpdates) || std::floor(value) != value)
      fail("step", spec.name, "is no number of updates up to 16777216");
    return static_cast<std::int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& part, const std::string& name,
                         const std::string& what) const {
    throw Error(ErrorKind::kInput, where_ + ": `" + part + "` of " + safe_line(name) + " " + what);
  }

 private:
  store::TensorFile file_;
  std::string where_;
  std::map<std::pair<std::string, std::string>, std::string> keys_;
};

StateFile open_torch(const fs::path& path) {
  store::TorchFile file(path);
  const auto* groups = file.root().find(kGroups);
  return {std::move(file), groups == nullptr ? Names() : names_of_numbers(*groups), true};
}

StateFile open_safetensors(const fs::path& path) {
  store::SafetensorsFile file(path);
  Names names;
  for (const auto& entry : file.entries()) {
    if (store::decode_olmo_path(entry.name) != Path{kGroups}) continue;
    const auto bytes = file.bytes(entry);
    std::string pickle(bytes.size(), '\0');
    copy_mapped(file.map(), entry.offset, std::as_writable_bytes(std::span(pickle)));
    names = names_of_numbers(store::Pickle(std::move(pickle), path.string()).root());
  }
  return {std::move(file), names, false};
}

}  // namespace

std::optional<OlmoOptimizer> read_olmo_optimizer(const fs::path& folder,
                                                 const model::ModelConfig& config) {
  const fs::path safetensors = folder / "optim.safetensors", pickle = folder / "optim.pt";
  const bool is_safetensors = is_there(safetensors);
  if (!is_safetensors && !is_there(pickle)) return std::nullopt;
  const StateFile file = is_safetensors ? open_safetensors(safetensors) : open_torch(pickle);
  OlmoOptimizer state;
  const auto specs = model::parameter_specs(config);
  for (const auto& spec : specs) {
    const std::int64_t step = file.take_step(spec);
    if (&spec == &specs.front()) state.step = step;
    if (step != state.step)
      file.fail("step", spec.name,
                "is " + std::to_string(step) + ", and of the first parameter " +
                    std::to_string(state.step));
    at::Tensor updates = new_tensor({}, at::kLong);
    mutable_host_span<std::int64_t>(updates).front() = step;
    state.tensors.push_back({"step/" + spec.name, updates});
    for (const std::string part : {"exp_avg", "exp_avg_sq"})
      state.tensors.push_back({part + "/" + spec.name, file.take(part, spec, spec.shape)});
    const std::string average = "grad_norm_exp_avg";  // under max_grad_norm_ratio
    if (file.has(average, spec.name))
      state.tensors.push_back({average + "/" + spec.name, file.take(average, spec, {})});
  }
  return state;
}

}  // namespace olmo::models
