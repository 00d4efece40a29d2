#include "models/olmo_optimizer.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text/safe_text.h"
#include "model/hf_names.h"
#include "model/parameters.h"
#include "store/checkpoint/safetensors.h"

namespace olmo::models {
namespace {

namespace fs = std::filesystem;

/// Most updates whose number fp32, in which torch keeps it, tells from the next.
constexpr double kMostUpdates = 1 << 24;

class StateFile {
 public:
  explicit StateFile(const fs::path& path) : file_(path), where_(path.string()) {
    for (const auto& entry : file_.entries()) {
      const auto names = store::decode_olmo_path(entry.name);
      if (names.size() != 3 || names[0] != "state") continue;
      keys_[{names[2], model::strip_wrapper_prefixes(names[1])}] = entry.name;
    }
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
           "is missing: expected the state of AdamW by the parameters' names, as OLMo saves it "
           "under FSDP");
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
  store::SafetensorsFile file_;
  std::string where_;
  std::map<std::pair<std::string, std::string>, std::string> keys_;
};

}  // namespace

std::optional<OlmoOptimizer> read_olmo_optimizer(const fs::path& folder,
                                                 const model::ModelConfig& config) {
  const fs::path path = folder / kOlmoOptimizer;
  if (!fs::exists(path)) return std::nullopt;
  const StateFile file(path);
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
