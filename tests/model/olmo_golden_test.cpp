#include <cstdlib>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "model/olmo.h"
#include "models/read_weights.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"

using olmo::Json;
using olmo::NamedTensors;
using olmo::model::LossWeights;
using olmo::model::Olmo;
using olmo::model::TokenBatch;
using olmo::test::GoldenTensors;
using olmo::test::max_abs_difference;

namespace {

const olmo::Policy kPolicy = olmo::resolve_policy("portable", "auto", 0);

GoldenTensors small_golden(const std::string& name) {
  return olmo::test::read_golden_tensors(std::filesystem::path(OLMO_TEST_DATA) / "model" /
                                         (name + ".safetensors"));
}

constexpr const char* kSmallModels[] = {"tied", "untied_clip", "olmo2", "gelu", "relu"};

Olmo small_model(const GoldenTensors& golden) {
  const auto config = olmo::test::model_config_from(Json::parse(golden.metadata.at("config")));
  Olmo model(config, kPolicy);
  model.load_weights(golden.with_prefix("weight."));
  return model;
}

TokenBatch batch_of(const GoldenTensors& golden) { return {golden.at("ids"), golden.at("labels")}; }

}  // namespace

TEST_CASE("small reference models: logits", "[model]") {
  for (const char* name : kSmallModels) {
    INFO(name);
    const auto golden = small_golden(name);
    Olmo model = small_model(golden);
    CHECK(max_abs_difference(model.logits(golden.at("ids")), golden.at("logits")) < 5e-6);
  }
}

TEST_CASE("small reference models: cross-entropy and logsumexp of every token, and their sums",
          "[model]") {
  for (const char* name : kSmallModels) {
    INFO(name);
    const auto golden = small_golden(name);
    Olmo model = small_model(golden);
    const auto batch = batch_of(golden);
    const at::Tensor ce = at::full_like(golden.at("ce"), -1.0), lse = at::full_like(ce, -1.0);
    const auto sums =
        model.forward(batch, {}, {.ce_M = ce.view({-1}), .lse_M = lse.view({-1}), .argmax_M = {}});
    const at::Tensor labelled = batch.labels_BL.ne(olmo::model::kIgnoredLabel);
    CHECK(max_abs_difference(ce, golden.at("ce")) < 5e-6);
    CHECK(max_abs_difference(lse * labelled, golden.at("lse")) < 5e-6);
    CHECK(sums.labels == labelled.sum().item<std::int64_t>());
    CHECK(sums.ce_sum ==
          Approx(golden.at("ce").to(at::kDouble).sum().item<double>()).epsilon(1e-6));
    CHECK(sums.z_sum ==
          Approx(golden.at("lse").to(at::kDouble).square().sum().item<double>()).epsilon(1e-6));
  }
}

TEST_CASE("small reference models: every gradient, with z-loss", "[model]") {
  for (const char* name : kSmallModels) {
    const auto golden = small_golden(name);
    Olmo model = small_model(golden);
    const auto batch = batch_of(golden);
    const NamedTensors gradients = model.make_gradients();
    const LossWeights weights{1.0F / static_cast<float>(batch.ids_BL.numel()),
                              std::stof(golden.metadata.at("z_multiplier"))};
    model.forward_backward(batch, weights, gradients, false);
    for (const auto& [parameter, gradient] : gradients) {
      INFO(name << " " << parameter);
      const at::Tensor& expected = golden.at("grad." + parameter);
      CHECK(max_abs_difference(gradient, expected) <
            2e-6 * std::max(1.0, expected.abs().max().item<double>()));
    }
  }
}

TEST_CASE("small reference models: parameters are listed in the order of OLMo's state_dict",
          "[model]") {
  for (const char* name : kSmallModels) {
    const auto golden = small_golden(name);
    const Olmo model = small_model(golden);
    std::vector<std::string> names;
    for (const auto& entry : model.parameters()) names.push_back(entry.name);
    CHECK(names == Json::parse(golden.metadata.at("order")).get<std::vector<std::string>>());
  }
}

// The large references: OLMO_GOLDEN_DIR names a directory with
// model/<name>/{meta.json,weights.olmo.safetensors,…}.
namespace {

struct LargeGolden {
  std::filesystem::path directory;
  Json meta;
  GoldenTensors weights, forward;
  double logits_tolerance, gradient_tolerance;
};

std::vector<LargeGolden> large_goldens() {
  const char* root = std::getenv("OLMO_GOLDEN_DIR");
  if (root == nullptr) return {};
  std::vector<LargeGolden> goldens;
  for (const std::string name : {"tied_noclip", "untied_clip8", "vocab50304_tied"}) {
    const auto directory = std::filesystem::path(root) / "model" / name;
    const bool clip = name == "untied_clip8";
    goldens.push_back({directory, olmo::read_json_file(directory / "meta.json"),
                       olmo::test::read_golden_tensors(directory / "weights.olmo.safetensors"),
                       olmo::test::read_golden_tensors(directory / "forward.safetensors"),
                       clip ? 5e-4 : 2e-5, clip ? 2e-4 : 2e-6});
  }
  return goldens;
}

Olmo large_model(const LargeGolden& golden) {
  Olmo model(olmo::test::model_config_from(golden.meta.at("config")), kPolicy);
  model.load_weights(golden.weights.tensors);
  return model;
}

void check_gradients(const LargeGolden& golden, const char* file, float z_multiplier) {
  const auto expected = olmo::test::read_golden_tensors(golden.directory / file);
  Olmo model = large_model(golden);
  const at::Tensor ids = golden.forward.at("input_ids").contiguous();
  const NamedTensors gradients = model.make_gradients();
  model.forward_backward({ids, olmo::model::next_token_labels(ids)},
                         {1.0F / static_cast<float>(ids.numel()), z_multiplier}, gradients, false);
  double worst = 0.0;
  for (const auto& [name, gradient] : gradients) {
    const std::string rows = "grad." + name + "@rows";  // the large vocabulary is kept in part
    const auto part = std::find_if(expected.tensors.begin(), expected.tensors.end(),
                                   [&](const auto& entry) { return entry.name == rows; });
    const bool whole = part == expected.tensors.end();
    const at::Tensor given = whole ? gradient : gradient.index_select(0, expected.at("rows"));
    const at::Tensor& reference = whole ? expected.at("grad." + name) : part->tensor;
    INFO(golden.directory << " " << file << " " << name);
    const double difference = max_abs_difference(given, reference);
    worst = std::max(worst, difference);
    // The references' tolerance is absolute; here it is so for gradients below 1 only. In
    // untied_clip8 the embedding's reach 3.6 and miss 2e-4 (3.2e-4 seen): attention scores of
    // several hundred amplify every rounding of norms and products, and the same network in fp64
    // is 2.1e-4 from the reference, 2.1e-4 from us.
    CHECK(difference <
          golden.gradient_tolerance * std::max(1.0, reference.abs().max().item<double>()));
  }
  WARN(golden.directory.filename() << " " << file << ": largest gradient error " << worst);
}

}  // namespace

TEST_CASE("large reference models: hidden states, logits and losses", "[.golden]") {
  for (const auto& golden : large_goldens()) {
    Olmo model = large_model(golden);
    const at::Tensor ids = golden.forward.at("input_ids").contiguous();
    const std::int64_t batch = ids.size(0), length = ids.size(1);
    double hidden_error = 0.0;
    const auto observe = [&](std::string_view point, const at::Tensor& x) {
      const at::Tensor& expected = golden.forward.at("hidden." + std::string(point));
      hidden_error = std::max(hidden_error, max_abs_difference(x.view(expected.sizes()), expected));
    };
    const at::Tensor logits = model.logits(ids, observe);
    const bool whole = golden.meta.at("name") != "vocab50304_tied";
    const at::Tensor columns =
        whole ? at::arange(logits.size(2)) : golden.forward.at("logit_columns");
    const double logits_error = max_abs_difference(
        logits.index_select(2, columns), golden.forward.at(whole ? "logits" : "logits_at_columns"));
    const at::Tensor ce = at::empty({batch, length}), lse = at::empty({batch, length});
    const auto sums =
        model.forward({ids, olmo::model::next_token_labels(ids)}, {},
                      {.ce_M = ce.view({-1}), .lse_M = lse.view({-1}), .argmax_M = {}});
    const double ce_error =
        max_abs_difference(ce.narrow(1, 0, length - 1), golden.forward.at("ce_per_token"));
    const double z_error = max_abs_difference(1e-4 * lse.narrow(1, 0, length - 1).square(),
                                              golden.forward.at("z_per_token"));
    const double loss = golden.meta.at("losses").at("train_ce = ce_sum/(B*T)");
    WARN(golden.directory.filename()
         << ": largest error of hidden states " << hidden_error << ", logits " << logits_error
         << ", ce " << ce_error << ", z " << z_error);
    CHECK(logits_error < golden.logits_tolerance);
    CHECK(hidden_error < golden.logits_tolerance);
    CHECK(ce_error < golden.logits_tolerance);
    CHECK(sums.ce_sum / static_cast<double>(ids.numel()) == Approx(loss).epsilon(1e-6));
  }
}

TEST_CASE("large reference models: every gradient", "[.golden]") {
  for (const auto& golden : large_goldens()) {
    check_gradients(golden, "grads.safetensors", 0.0F);
    check_gradients(golden, "grads_z.safetensors", 1e-4F);
  }
}

TEST_CASE("large reference models: Hugging Face's names lead to the same weights", "[.golden]") {
  for (const auto& golden : large_goldens()) {
    const auto file = golden.directory / "weights.hf.safetensors";
    if (!std::filesystem::exists(file)) continue;
    const auto config = olmo::test::model_config_from(golden.meta.at("config"));
    for (const auto& [name, tensor] : olmo::models::read_weights(file, config)) {
      INFO(name);
      CHECK(olmo::test::same_bits(tensor, golden.weights.at(name)));
    }
  }
}

TEST_CASE("rope tables are OLMo's", "[.golden]") {
  const char* root = std::getenv("OLMO_GOLDEN_DIR");
  if (root == nullptr) return;
  const Json golden =
      olmo::read_json_file(std::filesystem::path(root) / "model" / "rope_tables.json");
  for (const auto& entry : golden.at("rows")) {
    const auto half = entry.at("head_dim").get<std::int64_t>() / 2;
    const auto table = olmo::ops::make_rope_table(entry.at("theta").get<double>(), 2 * half,
                                                  entry.at("max_len").get<std::int64_t>());
    double worst = 0.0;
    std::int64_t differing = 0, total = 0;
    for (std::size_t row = 0; row < entry.at("positions").size(); ++row) {
      const auto position = entry.at("positions").at(row).get<std::int64_t>();
      for (std::int64_t i = 0; i < half; ++i) {
        const double sine = entry.at("sin").at(row).at(static_cast<std::size_t>(i)),
                     cosine = entry.at("cos").at(row).at(static_cast<std::size_t>(i));
        const double error = std::max(std::abs(table.sin[position][i].item<double>() - sine),
                                      std::abs(table.cos[position][i].item<double>() - cosine));
        worst = std::max(worst, error);
        differing += error > 0.0 ? 1 : 0;
        ++total;
      }
    }
    WARN("rope table of head_dim " << 2 * half << ", theta " << entry.at("theta")
                                   << ": largest error " << worst << ", " << differing << " of "
                                   << total << " entries differ");
    CHECK(worst < 1e-6);
  }
}
