#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"

namespace olmo::optim {
namespace {

const std::vector<std::string> kTrainedNames = {
    "transformer.wte.weight", "transformer.blocks.0.att_proj.weight",
    "transformer.blocks.0.ff_out.weight", "transformer.blocks.0.attn_norm.weight"};

/// The file of make_optim.py: OLMo's own optimizers over a few steps.
struct Golden {
  store::SafetensorsFile file{OLMO_TEST_DATA "/optim/optimizers.safetensors"};
  Json description = Json::parse(file.metadata().at("description"));

  [[nodiscard]] NamedTensors tensors(const std::string& prefix) const {
    NamedTensors all;
    for (const std::string& name : kTrainedNames)
      all.push_back({name, file.tensor(prefix + "/" + name)});
    return all;
  }
};

OptimizerConfig optimizer_from(const Json& json) {
  OptimizerConfig config;
  config.name = json.at("name").get<std::string>();
  config.learning_rate = json.at("learning_rate").get<double>();
  config.weight_decay = json.at("weight_decay").get<double>();
  config.betas = json.at("betas").get<std::array<double, 2>>();
  config.eps = json.at("eps").get<double>();
  config.selective_updates = json.at("selective_updates").get<bool>();
  return config;
}

std::optional<double> number_or_nothing(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

ClipLimits limits_from(const Json& json, const std::string& prefix) {
  return {.max_grad_norm = number_or_nothing(json.at(prefix + "max_grad_norm")),
          .max_grad_norm_ratio = number_or_nothing(json.at(prefix + "max_grad_norm_ratio"))};
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void copy_into(const NamedTensors& from, const NamedTensors& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i].tensor.copy_(from[i].tensor);
}

// Replays one case step by step and compares what every step reports.
struct Replay {
  Golden golden;
  Json settings;
  NamedTensors parameters = golden.tensors("init");
  NamedTensors gradients = golden.tensors("grad/1");
  Optimizer optimizer;
  Policy policy;

  explicit Replay(const std::string& label)
      : settings(golden.description.at("cases").at(label)),
        optimizer(optimizer_from(settings), limits_from(settings, ""), parameters, gradients) {}

  void step(std::int64_t step) {
    const Json& expected = settings.at("steps")[static_cast<std::size_t>(step - 1)];
    copy_into(golden.tensors("grad/" + std::to_string(step)), gradients);
    const ClipPlan plan = optimizer.plan_clip(policy, step);
    CHECK(plan.norms.total == Approx(expected.at("total_grad_norm").get<double>()).epsilon(1e-6));
    CHECK(plan.clipping_rate() == expected.at("clipping_rate").get<double>());
    for (std::size_t i = 0; i < kTrainedNames.size(); ++i) {
      CHECK(plan.norms.each[i] ==
            Approx(expected.at("grad_norms").at(kTrainedNames[i]).get<double>()).epsilon(1e-6));
      if (plan.grad_norm_averages.empty()) continue;
      CHECK(plan.grad_norm_averages[i] ==
            Approx(expected.at("grad_norm_exp_avg").at(kTrainedNames[i]).get<double>())
                .epsilon(1e-6));
    }
    optimizer.step(policy, plan, expected.at("lr").get<double>(), limits_from(expected, "next_"));
  }
};

// One or two ulps of parameters of size 1; OLMo rounds some steps apart that we fuse.
constexpr double kParameterTolerance = 5e-7;
constexpr double kMomentTolerance = 1e-8;

// A small optimizer whose gradients are a function of the step, for runs against themselves.
struct SmallRun {
  NamedTensors parameters;
  NamedTensors gradients;
  Optimizer optimizer;

  static NamedTensors filled(double value) {
    NamedTensors tensors;
    for (const std::string& name : kTrainedNames) {
      const double first = value + static_cast<double>(name.size());
      tensors.push_back({name, at::linspace(-first, first, 333, at::dtype(at::kFloat))});
    }
    return tensors;
  }
  explicit SmallRun(const OptimizerConfig& config)
      : parameters(filled(0.5)),
        gradients(filled(0.0)),
        optimizer(config, {.max_grad_norm = 1.0, .max_grad_norm_ratio = 0.9}, parameters,
                  gradients) {}

  void steps(std::int64_t from, std::int64_t to) {
    for (std::int64_t step = from; step <= to; ++step) {
      for (NamedTensor& gradient : gradients) {
        gradient.tensor.copy_(at::sin(at::arange(333, at::kFloat) * static_cast<double>(step)));
      }
      const ClipPlan plan = optimizer.plan_clip(Policy{}, step);
      optimizer.step(
          Policy{}, plan, 1e-2 / static_cast<double>(step),
          {.max_grad_norm = {}, .max_grad_norm_ratio = 0.9 + 0.1 * static_cast<double>(step)});
    }
  }
};

OptimizerConfig named(const std::string& name) {
  OptimizerConfig config;
  config.name = name;
  return config;
}

OptimState copy_of(const OptimState& state) {
  OptimState copy{.tensors = {}, .limits = state.limits};
  for (const auto& [name, tensor] : state.tensors) copy.tensors.push_back({name, tensor.clone()});
  return copy;
}

}  // namespace

TEST_CASE("AdamW and LionW follow OLMo's own optimizers over clipped steps", "[optim]") {
  // LionW moves by a sign, which may turn where the average of gradients is near 0; here none does.
  const std::string label =
      GENERATE("adamw", "adamw_selective", "adamw_ratio", "lionw", "lionw_selective");
  INFO(label);
  Replay replay(label);
  for (std::int64_t step = 1; step <= 6; ++step) {
    INFO("step " << step);
    replay.step(step);
    if (step > 1) continue;
    for (const NamedTensor& parameter : replay.parameters) {
      const auto expected =
          replay.golden.file.tensor(label + "/param_after_first/" + parameter.name);
      CHECK(largest_difference(parameter.tensor, expected) <= kParameterTolerance);
    }
  }
  for (const NamedTensor& parameter : replay.parameters) {
    const auto expected = replay.golden.file.tensor(label + "/param/" + parameter.name);
    CHECK(largest_difference(parameter.tensor, expected) <= kParameterTolerance);
  }
  for (const auto& [name, tensor] : replay.optimizer.state().tensors) {
    const std::string reference = label + "/" + name;
    const auto& listed = replay.golden.file.entries();
    if (std::ranges::find(listed, reference, &store::TensorEntry::name) == listed.end()) continue;
    CHECK(largest_difference(tensor, replay.golden.file.tensor(reference)) <= kMomentTolerance);
  }
}

TEST_CASE("a step clips with the limits that the step before set", "[optim]") {
  SmallRun run(named("adamw"));
  CHECK(run.optimizer.limits().max_grad_norm_ratio == 0.9);
  run.steps(1, 1);
  const ClipPlan plan = run.optimizer.plan_clip(Policy{}, 2);
  CHECK(plan.limits.max_grad_norm_ratio == 1.0);
  CHECK_FALSE(plan.limits.max_grad_norm.has_value());
}

TEST_CASE("planning a step changes nothing", "[optim]") {
  SmallRun run(named("adamw"));
  run.steps(1, 2);
  const OptimState before = copy_of(run.optimizer.state());
  const at::Tensor gradient = run.gradients[0].tensor.clone();
  static_cast<void>(run.optimizer.plan_clip(Policy{}, 3));
  const OptimState after = run.optimizer.state();
  CHECK(at::equal(gradient, run.gradients[0].tensor));
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    CHECK(at::equal(before.tensors[i].tensor, after.tensors[i].tensor));
  }
}

TEST_CASE("a run resumed from its state equals the uninterrupted one bit for bit", "[optim]") {
  const std::string name = GENERATE("adamw", "lionw");
  const std::int64_t stop = GENERATE(1, 2, 5);  // before and after the averages are tracked
  SmallRun straight(named(name));
  straight.steps(1, 7);
  SmallRun first(named(name));
  first.steps(1, stop);
  const OptimState saved = copy_of(first.optimizer.state());
  SmallRun resumed(named(name));
  copy_into(first.parameters, resumed.parameters);
  resumed.optimizer.load_state(saved);
  resumed.steps(stop + 1, 7);
  for (std::size_t i = 0; i < kTrainedNames.size(); ++i) {
    CHECK(at::equal(straight.parameters[i].tensor, resumed.parameters[i].tensor));
  }
  const OptimState a = straight.optimizer.state();
  const OptimState b = resumed.optimizer.state();
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    CHECK(a.tensors[i].name == b.tensors[i].name);
    CHECK(at::equal(a.tensors[i].tensor, b.tensors[i].tensor));
  }
  CHECK(a.limits == b.limits);
}

TEST_CASE("the state holds OLMo's fields under their names", "[optim]") {
  SmallRun run(named("adamw"));
  run.steps(1, 2);
  std::set<std::string> keys;
  for (const auto& [name, tensor] : run.optimizer.state().tensors)
    keys.insert(name.substr(0, name.find('/')));
  CHECK(keys == std::set<std::string>{"exp_avg", "exp_avg_sq", "step", "grad_norm_exp_avg"});
  CHECK(run.optimizer.state().tensors.back().tensor.dim() == 0);
}

TEST_CASE("a state that does not fit is refused by the tensor's name", "[optim]") {
  using Catch::Matchers::Contains;
  SmallRun run(named("adamw"));
  run.steps(1, 1);
  const OptimState good = copy_of(run.optimizer.state());
  OptimState bad = good;
  bad.tensors.erase(bad.tensors.begin());
  CHECK_THROWS_WITH(run.optimizer.load_state(bad),
                    Contains("exp_avg/transformer.wte.weight is missing"));
  bad = good;
  bad.tensors.push_back({"exp_avg/transformer.wpe.weight", at::zeros({1})});
  CHECK_THROWS_WITH(run.optimizer.load_state(bad), Contains("transformer.wpe.weight"));
  bad = good;
  bad.tensors.push_back(bad.tensors.front());
  CHECK_THROWS_WITH(run.optimizer.load_state(bad), Contains("twice"));
  bad = good;
  bad.tensors[0].tensor = at::zeros({332});
  CHECK_THROWS_WITH(run.optimizer.load_state(bad),
                    Contains("expected Float (333), got Float (332)"));
  bad.tensors[0].tensor = at::zeros({333}, at::kDouble);
  CHECK_THROWS_AS(run.optimizer.load_state(bad), Error);
  SmallRun lion(named("lionw"));
  CHECK_THROWS_WITH(lion.optimizer.load_state(good), Contains("exp_avg_sq"));
}

TEST_CASE("the total norm does not depend on the order of the list", "[optim]") {
  NamedTensors tensors;
  for (const char* name : {"b", "a", "d", "c", "e"}) {
    tensors.push_back({name, at::linspace(0.1, 1.0 + static_cast<double>(name[0]), 1000)});
  }
  NamedTensors reversed(tensors.rbegin(), tensors.rend());
  const Policy policy;
  const GradNorms forward = grad_norms(policy, tensors);
  const GradNorms backward = grad_norms(policy, reversed);
  CHECK(forward.total == backward.total);
  CHECK(forward.each[0] == backward.each[4]);
  CHECK(forward.each[0] == Approx(tensors[0].tensor.norm().item<float>()));
}

}  // namespace olmo::optim
