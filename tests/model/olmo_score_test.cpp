#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "model/olmo.h"
#include "support/catch.h"
#include "support/golden_tensors.h"
#include "support/model_config_json.h"
#include "support/random_forest.h"

using olmo::Error;
using olmo::Isa;
using olmo::NamedTensors;
using olmo::Policy;
using olmo::TokenForest;
using olmo::TokenScore;
using olmo::TokenTarget;
using olmo::model::ModelConfig;
using olmo::model::Olmo;

namespace {

const Policy kPolicy = olmo::resolve_policy("portable", "auto", 0);

std::vector<ModelConfig> configs() {
  auto plain = olmo::test::tiny_config();
  auto clipped = plain;
  clipped.clip_qkv = 0.5;
  clipped.weight_tying = false;
  clipped.scale_logits = true;
  clipped.layer_norm_with_affine = true;
  clipped.bias_for_layer_norm = true;
  clipped.activation_type = "gelu";
  clipped.n_kv_heads = 1;
  auto olmo2 = olmo::test::tiny_olmo2();
  olmo2.n_layers = 3;
  return {plain, clipped, olmo2, olmo::test::tiny_olmo3()};
}

Olmo model_of(const ModelConfig& config, const Policy& policy = kPolicy) {
  Olmo model(config, policy);
  model.init_weights(5);
  return model;
}

/// About every fifth row has one to three labels.
TokenForest random_forest(std::size_t segments, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  TokenForest forest;
  forest.segments = olmo::test::random_segments(segments, random);
  for (std::int64_t row = 0; row < olmo::test::rows_of(forest.segments); ++row) {
    forest.ids.push_back(below(60));
    if (below(5) != 0) continue;
    for (auto labels = 1 + below(3); labels-- > 0;) forest.targets.push_back({row, below(64)});
  }
  return forest;
}

/// The ids of the path that ends at `row`.
at::Tensor path_of(const TokenForest& forest, std::int64_t row) {
  std::size_t segment = 0;
  while (row >= forest.segments[segment].begin + forest.segments[segment].length) ++segment;
  std::vector<std::int64_t> ids;
  for (const auto each :
       olmo::test::path_rows(forest.segments, static_cast<std::int64_t>(segment))) {
    ids.push_back(forest.ids[static_cast<std::size_t>(each)]);
  }
  const auto& s = forest.segments[segment];
  ids.resize(static_cast<std::size_t>(s.position + row - s.begin + 1));
  return at::tensor(ids, at::kLong).view({1, -1});
}

/// What forward says of one target's path alone.
TokenScore alone(Olmo& model, const TokenForest& forest, const TokenTarget& target) {
  const at::Tensor ids = path_of(forest, target.row);
  const auto last = ids.numel() - 1;
  at::Tensor labels = at::full_like(ids, olmo::model::kIgnoredLabel);
  labels[0][last] = target.label;
  const at::Tensor ce = at::empty({last + 1}), argmax = at::empty({last + 1}, at::kLong);
  model.forward({ids, labels}, {}, {.ce_M = ce, .lse_M = {}, .argmax_M = argmax});
  return {.log_prob = -ce[last].item<float>(),
          .logit = model.logits(ids)[0][last][target.label].item<float>(),
          .is_likeliest = argmax[last].item<std::int64_t>() == target.label};
}

std::vector<TokenScore> score(Olmo& model, const TokenForest& forest) {
  std::vector<TokenScore> scores(forest.targets.size());
  model.score(forest, scores);
  return scores;
}

std::vector<TokenScore> score_alone(Olmo& model, const TokenForest& forest) {
  std::vector<TokenScore> scores;
  for (const auto& target : forest.targets) scores.push_back(alone(model, forest, target));
  return scores;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same(const std::vector<TokenScore>& a, const std::vector<TokenScore>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TokenScore& x, const TokenScore& y) {
                      return same_bits(x.log_prob, y.log_prob) && same_bits(x.logit, y.logit) &&
                             x.is_likeliest == y.is_likeliest;
                    });
}

NamedTensors to_bf16(const NamedTensors& weights) {
  NamedTensors rounded;
  for (const auto& [name, tensor] : weights) rounded.push_back({name, tensor.to(at::kBFloat16)});
  return rounded;
}

}  // namespace

TEST_CASE("a forest's scores are those of each path alone, bit for bit, however it is run",
          "[model]") {
  unsigned seed = 0;
  for (const auto& config : configs()) {
    Olmo reference = model_of(config);
    for (const std::size_t segments : {1U, 4U, 17U}) {
      const auto forest = random_forest(segments, ++seed);
      const auto expected = score_alone(reference, forest);
      for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
        if (isa > olmo::best_isa()) continue;
        for (const int threads : {1, 2, 3}) {
          INFO(olmo::to_string(isa) << ", " << threads << " threads, " << segments << " segments");
          Policy policy = kPolicy;
          policy.isa = isa;
          policy.threads = threads;
          policy.operations_a_thread = 1;  // so that all threads have a share
          olmo::apply_policy(policy);
          Olmo model = model_of(config, policy);
          CHECK(same(score(model, forest), expected));
        }
      }
      olmo::apply_policy(kPolicy);
    }
  }
}

TEST_CASE("a score does not depend on how paths are shared or ordered", "[model]") {
  Olmo model = model_of(configs().back());
  // The paths abc, abd and e: as a tree, and each by itself in another order.
  const std::vector<std::int64_t> a(40, 3), b(30, 4), c(5, 5), d(20, 6), e(70, 7);
  const auto append = [](TokenForest& forest, std::int64_t parent, std::int64_t position,
                         const std::vector<std::vector<std::int64_t>>& parts) {
    const auto begin = static_cast<std::int64_t>(forest.ids.size());
    for (const auto& part : parts) forest.ids.insert(forest.ids.end(), part.begin(), part.end());
    const auto end = static_cast<std::int64_t>(forest.ids.size());
    forest.segments.push_back({parent, begin, end - begin, position});
    forest.targets.push_back({end - 1, 11});
  };
  TokenForest tree, apart;
  append(tree, -1, 0, {a});
  append(tree, 0, 40, {b});
  append(tree, 1, 70, {c});
  append(tree, -1, 0, {e});
  append(tree, 1, 70, {d});
  for (const auto& parts : std::vector<std::vector<std::vector<std::int64_t>>>{
           {a, b, d}, {e}, {a, b, c}, {a, b}, {a}}) {
    append(apart, -1, 0, parts);
  }
  auto scores = score(model, apart);
  std::reverse(scores.begin(), scores.end());
  CHECK(same(score(model, tree), scores));
}

TEST_CASE("scoring repeats itself, whatever ran between", "[model]") {
  Olmo model = model_of(configs().front());
  const auto forest = random_forest(6, 40);
  const auto first = score(model, forest);
  (void)score(model, random_forest(12, 41));
  const at::Tensor ids = at::arange(30, at::kLong).view({2, 15});
  const NamedTensors gradients = model.make_gradients();
  model.forward_backward({ids, olmo::model::next_token_labels(ids)}, {}, gradients, false);
  (void)score(model, random_forest(1, 42));
  CHECK(same(score(model, forest), first));
}

TEST_CASE("numerics fast scores the same to rounding", "[model]") {
  for (const auto& config : configs()) {
    Olmo portable = model_of(config);
    const auto forest = random_forest(9, 50);
    const auto expected = score(portable, forest);
    Policy policy = kPolicy;
    policy.numerics = olmo::Numerics::kFast;
    Olmo fast = model_of(config, policy);
    const auto scores = score(fast, forest);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      CHECK(std::abs(scores[i].log_prob - expected[i].log_prob) < 1e-4F);
      CHECK(std::abs(scores[i].logit - expected[i].logit) < 1e-4F);
    }
  }
}

TEST_CASE("numbers that are not finite show in the scores of their paths alone", "[model]") {
  auto config = configs()[1];  // untied: the head stays finite
  Olmo model = model_of(config);
  TokenForest forest{.ids = {1, 2, 3, 4, 5, 6},
                     .segments = {{-1, 0, 2, 0}, {0, 2, 2, 2}, {0, 4, 2, 2}},
                     .targets = {{1, 7}, {3, 7}, {3, 8}, {5, 7}}};
  const auto before = score(model, forest);
  model.parameters().front().tensor[3].fill_(NAN);  // the token of row 2
  const auto scores = score(model, forest);
  CHECK(same({scores[0], scores[3]}, {before[0], before[3]}));
  for (const std::size_t i : {1U, 2U}) {
    CHECK(std::isnan(scores[i].log_prob));
    CHECK(!scores[i].is_likeliest);
  }
}

TEST_CASE("a forest without targets, or without rows, asks for nothing", "[model]") {
  Olmo model = model_of(configs().front());
  CHECK_NOTHROW(model.score({}, {}));
  CHECK_NOTHROW(model.score({.ids = {1}, .segments = {{-1, 0, 1, 0}}, .targets = {}}, {}));
}

TEST_CASE("ids and labels outside of the embedding are input errors, impossible forests our own",
          "[model]") {
  Olmo model = model_of(configs().front());
  const TokenForest good{
      .ids = {1, 2, 3}, .segments = {{-1, 0, 3, 0}}, .targets = {{1, 4}, {2, 4}}};
  const auto kind_of = [&](const TokenForest& forest) {
    try {
      (void)score(model, forest);
    } catch (const Error& error) {
      return std::optional(error.kind());
    }
    return std::optional<olmo::ErrorKind>();
  };
  const auto with = [&](const std::function<void(TokenForest&)>& change) {
    TokenForest forest = good;
    change(forest);
    return kind_of(forest);
  };
  CHECK(!kind_of(good));
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{64}, INT64_MAX}) {
    CHECK(with([&](auto& f) { f.ids[1] = bad; }) == olmo::ErrorKind::kInput);
    CHECK(with([&](auto& f) { f.targets[1].label = bad; }) == olmo::ErrorKind::kInput);
  }
  using olmo::ErrorKind::kFailure;
  CHECK(with([](auto& f) { f.targets[1].row = 3; }) == kFailure);
  CHECK(with([](auto& f) { f.targets[1].row = 0; }) == kFailure);
  CHECK(with([](auto& f) { f.targets[0].row = -1; }) == kFailure);
  CHECK(with([](auto& f) { f.segments[0].length = 2; }) == kFailure);
  std::vector<TokenScore> too_few(1);
  CHECK_THROWS_AS(model.score(good, too_few), Error);
}

TEST_CASE("weights in bf16 give the bits of the same weights in fp32", "[model]") {
  for (const auto& config : configs()) {
    const auto rounded = to_bf16(model_of(config).parameters());
    Olmo widened(config, kPolicy);
    widened.load_weights(rounded);
    const auto forest = random_forest(5, 60);
    const auto expected = score(widened, forest);
    const at::Tensor ids = at::arange(40, at::kLong).view({2, 20});
    for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
      if (isa > olmo::best_isa()) continue;
      Policy policy = kPolicy;
      policy.isa = isa;
      Olmo model = Olmo::for_inference(config, policy, rounded);
      CHECK(same(score(model, forest), expected));
      CHECK(olmo::test::same_bits(model.logits(ids), widened.logits(ids)));
    }
  }
}

TEST_CASE("a model for inference holds the matrices that it was given, and changes none",
          "[model]") {
  const auto config = configs().back();
  auto weights = to_bf16(model_of(config).parameters());
  weights[0].tensor = weights[0].tensor.to(at::kFloat);
  weights.back().tensor = weights.back().tensor.to(at::kFloat);
  std::reverse(weights.begin(), weights.end());
  Olmo model = Olmo::for_inference(config, kPolicy, weights);
  std::size_t i = weights.size();
  for (const auto& [name, tensor] : model.parameters()) {
    INFO(name);
    const auto& given = weights[--i];
    CHECK(name == given.name);
    if (tensor.dim() == 2)
      CHECK(tensor.data_ptr() == given.tensor.data_ptr());
    else
      CHECK(tensor.scalar_type() == at::kFloat);
  }
  const NamedTensors gradients = model.make_gradients();
  const at::Tensor ids = at::arange(6, at::kLong).view({1, 6});
  CHECK_THROWS_AS(model.forward_backward({ids, ids}, {}, gradients, false), Error);
  CHECK_THROWS_AS(model.init_weights(1), Error);
  CHECK_THROWS_AS(model.load_weights(weights), Error);
  weights.pop_back();
  CHECK_THROWS_AS(Olmo::for_inference(config, kPolicy, weights), Error);
}
