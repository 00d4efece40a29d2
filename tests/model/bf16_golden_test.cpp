// Networks in amp_bf16 against references: small models of ai2-olmo itself, and the large
// references of OLMO_GOLDEN_DIR, whose products are the same chains as here.
//
// The small models have tokens on which the order of a sum decides no rounding, so that all that is
// bf16 has to be equal: a rounding that is left out, or is one too many, shows.
#include <cmath>
#include <cstdlib>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "model/olmo.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::Json;
using olmo::MixedPrecision;
using olmo::NamedTensors;
using olmo::Policy;
using olmo::model::next_token_labels;
using olmo::model::Olmo;
using olmo::test::GoldenTensors;
using olmo::test::read_golden_tensors;

namespace {

namespace fs = std::filesystem;

Policy policy_of(MixedPrecision mixed) {
  Policy policy = olmo::resolve_policy("portable", "auto", 0);
  policy.mixed_precision = mixed;
  return policy;
}

/// How far a tensor is from a reference.
struct Distance {
  double rms_rel = 0;  ///< of the difference, over that of the reference
  double equal = 1;    ///< share of elements that are equal in bf16
};

Distance distance(const at::Tensor& found, const at::Tensor& expected) {
  const auto a = found.to(at::kDouble).reshape({-1}), b = expected.to(at::kDouble).reshape({-1});
  REQUIRE(a.numel() == b.numel());
  const double size = b.square().sum().item<double>();
  const double error = (a - b).square().sum().item<double>();
  const auto same = a.to(at::kBFloat16).eq(b.to(at::kBFloat16)).to(at::kDouble);
  return {error == 0 ? 0 : std::sqrt(error / size), same.mean().item<double>()};
}

/// The largest of several.
void include(Distance& worst, const Distance& other) {
  worst.rms_rel = std::max(worst.rms_rel, other.rms_rel);
  worst.equal = std::min(worst.equal, other.equal);
}

const at::Tensor* find(const GoldenTensors& golden, const std::string& name) {
  for (const auto& entry : golden.tensors)
    if (entry.name == name) return &entry.tensor;
  return nullptr;
}

constexpr const char* kSmall[] = {"tied_mixed",
                                  "tied_autocast",
                                  "affine_mixed",
                                  "affine_autocast",
                                  "olmo2_mixed",
                                  "olmo2_autocast",
                                  "low_precision_autocast",
                                  "low_precision_after_autocast",
                                  "plain_rms_autocast",
                                  "gelu_mixed",
                                  "gelu_autocast",
                                  "relu_mixed",
                                  "relu_autocast"};

/// A small model of ai2-olmo, in the definition that the file names (make_model_bf16.py).
struct SmallGolden {
  std::string name;
  GoldenTensors found, source;

  explicit SmallGolden(const std::string& which)
      : name(which),
        found(read_golden_tensors(file("bf16_" + which))),
        source(read_golden_tensors(file(found.metadata.at("source")))) {}

  [[nodiscard]] Olmo model() const {
    const bool mixed = found.metadata.at("variant") == "mixed";
    Olmo made(olmo::test::model_config_from(Json::parse(found.metadata.at("config"))),
              policy_of(mixed ? MixedPrecision::kMixed : MixedPrecision::kAutocast));
    made.load_weights(weights_of(made));
    return made;
  }
  [[nodiscard]] olmo::model::TokenBatch batch() const {
    return {found.at("ids"), found.at("labels")};
  }
  /// Equal but for the rounding of fp32: bf16 would be 3e-3 off.
  void check(const std::string& what, const Distance& distance) const {
    INFO(name << ": " << what << " rms " << distance.rms_rel << ", equal " << distance.equal);
    CHECK(distance.rms_rel <= 1e-6);
    CHECK(distance.equal == 1);
  }

 private:
  /// The source may have norms with weights where this model's have none.
  [[nodiscard]] olmo::NamedTensors weights_of(const Olmo& model) const {
    olmo::NamedTensors weights;
    for (const auto& parameter : model.parameters())
      weights.push_back({parameter.name, source.at("weight." + parameter.name)});
    return weights;
  }
  static fs::path file(const std::string& stem) {
    return fs::path(OLMO_TEST_DATA) / "model" / (stem + ".safetensors");
  }
};

struct LargeGolden {
  fs::path folder;
  std::string variant;
  Json figures;
  GoldenTensors weights, inputs, forward;
  olmo::model::ModelConfig config;

  [[nodiscard]] std::string name() const { return folder.filename().string() + ", " + variant; }
  [[nodiscard]] Olmo model() const {
    Olmo made(config,
              policy_of(variant == "mixed" ? MixedPrecision::kMixed : MixedPrecision::kAutocast));
    made.load_weights(weights.tensors);
    return made;
  }
  [[nodiscard]] at::Tensor ids() const { return inputs.at("input_ids").contiguous(); }
  /// Beside the reference's distance to itself, with the same roundings and other orders of sums.
  void check(const std::string& what, const std::string& limit, const Distance& found) const {
    const Json& same = figures.at("tolerance_same").at(limit);
    const auto rms = same.at("rms_rel").get<double>();
    const auto equal = same.at("equal_at_least").get<double>();
    WARN(name() << ": " << what << " rms " << found.rms_rel << " of " << rms << ", equal "
                << found.equal << " of at least " << equal);
    CHECK(found.rms_rel <= rms);
    CHECK(found.equal >= equal);
  }
};

std::vector<LargeGolden> large_goldens() {
  const char* root = std::getenv("OLMO_GOLDEN_DIR");
  if (root == nullptr) return {};
  std::vector<LargeGolden> goldens;
  for (const std::string name : {"tied_noclip", "untied_clip8", "vocab50304_tied"}) {
    const auto plain = fs::path(root) / "model" / name,
               folder = fs::path(root) / "bf16/model" / name;
    const Json meta = olmo::read_json_file(folder / "meta.json");
    for (const std::string variant : {"mixed", "autocast"}) {
      goldens.push_back(
          {folder, variant, meta.at(variant),
           read_golden_tensors(plain / "weights.olmo.safetensors"),
           read_golden_tensors(plain / "forward.safetensors"),
           read_golden_tensors(folder / (variant + ".forward.safetensors")),
           olmo::test::model_config_from(olmo::read_json_file(plain / "meta.json").at("config"))});
    }
  }
  return goldens;
}

void check_gradients(const LargeGolden& golden, const std::string& prefix, const std::string& limit,
                     float z_multiplier) {
  const auto expected =
      read_golden_tensors(golden.folder / (golden.variant + ".grads.safetensors"));
  Olmo model = golden.model();
  const at::Tensor ids = golden.ids();
  const NamedTensors gradients = model.make_gradients();
  model.forward_backward({ids, next_token_labels(ids)},
                         {1.0F / static_cast<float>(ids.numel()), z_multiplier}, gradients, false);
  Distance worst;
  std::int64_t compared = 0;
  for (const auto& [name, gradient] : gradients) {
    const at::Tensor* whole = find(expected, prefix + name);
    const at::Tensor* rows = find(expected, prefix + name + "@rows");
    if (whole != nullptr) include(worst, distance(gradient, *whole));
    if (rows != nullptr)
      include(worst, distance(gradient.index_select(0, expected.at("rows")), *rows));
    compared += whole != nullptr || rows != nullptr ? 1 : 0;
  }
  if (compared == 0) return;  // gradients with the z-loss are those of `mixed` alone
  CHECK(compared == std::ssize(gradients));
  golden.check(prefix, limit, worst);
}

}  // namespace

TEST_CASE("small models in bf16: the residual stream, logits and losses are OLMo's", "[model]") {
  for (const char* name : kSmall) {
    const SmallGolden golden(name);
    Olmo model = golden.model();
    const auto batch = golden.batch();
    Distance stream;
    const at::Tensor logits =
        model.logits(batch.ids_BL, [&](std::string_view point, const at::Tensor& x) {
          if (point == "block_0") stream = distance(x, golden.found.at("hidden"));
        });
    golden.check("hidden", stream);
    golden.check("logits", distance(logits, golden.found.at("logits")));
    const at::Tensor ce = at::empty({batch.ids_BL.numel()}), lse = at::empty_like(ce);
    model.forward(batch, {}, {.ce_M = ce, .lse_M = lse, .argmax_M = {}});
    golden.check("ce", distance(ce, golden.found.at("ce")));
    const at::Tensor labelled = batch.labels_BL.view({-1}).ne(olmo::model::kIgnoredLabel);
    golden.check("lse", distance(lse * labelled, golden.found.at("lse")));
  }
}

TEST_CASE("small models in bf16: gradients are OLMo's, with z-loss", "[model]") {
  for (const char* name : kSmall) {
    const SmallGolden golden(name);
    Olmo model = golden.model();
    const auto batch = golden.batch();
    const NamedTensors gradients = model.make_gradients();
    model.forward_backward(batch,
                           {1.0F / static_cast<float>(batch.ids_BL.numel()),
                            std::stof(golden.found.metadata.at("z_multiplier"))},
                           gradients, false);
    Distance worst;
    std::int64_t compared = 0;
    for (const auto& [parameter, gradient] : gradients) {
      const at::Tensor* expected = find(golden.found, "grad." + parameter);
      if (expected == nullptr) continue;
      const auto found = distance(gradient, *expected);
      UNSCOPED_INFO(parameter << " rms " << found.rms_rel << ", equal " << found.equal);
      include(worst, found);
      ++compared;
    }
    CHECK(compared >= 5);
    golden.check("grad", worst);
  }
}

TEST_CASE("large references in bf16: hidden states, logits and losses", "[.golden]") {
  for (const auto& golden : large_goldens()) {
    Olmo model = golden.model();
    const at::Tensor ids = golden.ids();
    const std::int64_t batch = ids.size(0), length = ids.size(1);
    Distance first_block, hidden, ln_f;
    const auto observe = [&](std::string_view point, const at::Tensor& x) {
      const auto found = distance(x, golden.forward.at("hidden." + std::string(point)));
      include(point == "ln_f" ? ln_f : hidden, found);
      if (point == "block_0") first_block = found;
    };
    const at::Tensor logits = model.logits(ids, observe);
    const at::Tensor* whole = find(golden.forward, "logits");
    golden.check("block_0", "block_0", first_block);
    golden.check("hidden", "hidden", hidden);
    golden.check("ln_f", "ln_f", ln_f);
    golden.check("logits", "logits",
                 whole != nullptr
                     ? distance(logits, *whole)
                     : distance(logits.index_select(2, golden.inputs.at("logit_columns")),
                                golden.forward.at("logits_at_columns")));
    const at::Tensor ce = at::empty({batch, length}), lse = at::empty({batch, length});
    const auto sums =
        model.forward({ids, next_token_labels(ids)}, {},
                      {.ce_M = ce.view({-1}), .lse_M = lse.view({-1}), .argmax_M = {}});
    golden.check("ce_per_token", "ce_per_token",
                 distance(ce.narrow(1, 0, length - 1), golden.forward.at("ce_per_token")));
    golden.check(
        "z_per_token", "z_per_token",
        distance(1e-4 * lse.narrow(1, 0, length - 1).square(), golden.forward.at("z_per_token")));
    const double loss = golden.figures.at("train_ce = ce_sum/(B*T)");
    const double limit = golden.figures.at("tolerance_same").at("train_ce").at("max_abs");
    const double error = std::abs(sums.ce_sum / static_cast<double>(ids.numel()) - loss);
    WARN(golden.name() << ": train ce " << error << " of " << limit);
    CHECK(error <= limit);
  }
}

TEST_CASE("large references in bf16: every gradient", "[.golden]") {
  for (const auto& golden : large_goldens()) {
    check_gradients(golden, "grad.", "grads", 0.0F);
    check_gradients(golden, "grad_z.", "grads_z", 1e-4F);
  }
}
