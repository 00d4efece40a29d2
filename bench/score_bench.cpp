// olmo_score_bench [THREADS [ROUNDS]]
//
// Olmo::score at size S (width 512, 8 blocks, vocabulary 50304) over forests shaped like evaluation
// tasks, against the rate of its widest matrix product in the same rounds. A forest's operations
// are the products that its scores need: all but the keys and values of the last block, and the
// head, for the target rows alone. Rounds are interleaved, figures are medians.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <ATen/ATen.h>

#include "core/compute/libtorch.h"
#include "model/olmo.h"
#include "ops/linear.h"

namespace {

using namespace olmo;
using Clock = std::chrono::steady_clock;

model::ModelConfig size_s() {
  model::ModelConfig config;
  config.d_model = 512;
  config.n_heads = 8;
  config.n_layers = 8;
  config.mlp_ratio = 8;
  config.layer_norm_with_affine = false;
  return config;
}

/// Lengths from `least` to `most`.
struct Range {
  std::int64_t least, most;
};

/// Contexts and how many continuations follow each; every token of a continuation is a target.
struct TaskShape {
  const char* name;
  std::int64_t rows;
  Range context, children, child;
};

constexpr TaskShape kShapes[] = {
    {"multiple choice", 4096, {30, 150}, {2, 4}, {5, 30}},
    {"multiple choice", 512, {30, 150}, {2, 4}, {5, 30}},
    {"multiple choice", 128, {30, 150}, {2, 4}, {5, 30}},
    {"passages", 4096, {100, 300}, {2, 2}, {1, 3}},
    {"long header", 4096, {700, 700}, {300, 300}, {2, 20}},
    {"whole sequences", 4096, {1, 1}, {1, 1}, {511, 511}},
};

TokenForest make_forest(const TaskShape& shape) {
  std::mt19937 random(1);
  const auto draw = [&](const Range& range) {
    return range.least +
           static_cast<std::int64_t>(random() % 65536) % (range.most - range.least + 1);
  };
  TokenForest forest;
  const auto append = [&](std::int64_t parent, std::int64_t position, std::int64_t length) {
    forest.segments.push_back(
        {parent, static_cast<std::int64_t>(forest.ids.size()), length, position});
    for (std::int64_t i = 0; i < length; ++i)
      forest.ids.push_back(static_cast<std::int64_t>(random() % 50000));
  };
  while (static_cast<std::int64_t>(forest.ids.size()) < shape.rows) {
    const auto parent = static_cast<std::int64_t>(forest.segments.size());
    append(-1, 0, draw(shape.context));
    const TokenSegment context = forest.segments.back();
    const auto children = draw(shape.children);
    std::vector<TokenTarget> inner;
    for (std::int64_t c = 0; c < children; ++c) {
      append(parent, context.length, draw(shape.child));
      const TokenSegment& child = forest.segments.back();
      const auto label = [&](std::int64_t row) {
        return forest.ids[static_cast<std::size_t>(row)];
      };
      forest.targets.push_back({context.begin + context.length - 1, label(child.begin)});
      for (auto row = child.begin; row + 1 < child.begin + child.length; ++row)
        inner.push_back({row, label(row + 1)});
      if (static_cast<std::int64_t>(forest.ids.size()) >= shape.rows) break;
    }
    forest.targets.insert(forest.targets.end(), inner.begin(), inner.end());
  }
  return forest;
}

double operations(const model::ModelConfig& c, const TokenForest& forest) {
  const auto d = static_cast<double>(c.d_model), f = static_cast<double>(c.fused_mlp_size());
  const auto rows = static_cast<double>(forest.ids.size());
  double targets = 0, seen = 0;
  for (std::size_t i = 0; i < forest.targets.size(); ++i)
    targets += i == 0 || forest.targets[i].row != forest.targets[i - 1].row ? 1 : 0;
  for (const auto& s : forest.segments) {
    for (std::int64_t i = 0; i < s.length; ++i) seen += static_cast<double>(s.position + i + 1);
  }
  const double kv = 2 * d * d, q_and_out = 2 * d * d, mlp = d * f + d * f / 2;
  const auto layers = static_cast<double>(c.n_layers);
  const double blocks = rows * layers * kv + (rows * (layers - 1) + targets) * (q_and_out + mlp);
  const double head = targets * d * static_cast<double>(c.embedding_rows());
  return 2 * (blocks + head + 2 * seen * d * layers);
}

double seconds(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const auto policy = resolve_policy("portable", "auto", argc > 1 ? std::atoi(argv[1]) : 0);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  apply_policy(policy);
  const auto config = size_s();
  model::Olmo model(config, policy);
  model.init_weights(1);
  std::vector<TokenForest> forests;
  for (const auto& shape : kShapes) forests.push_back(make_forest(shape));

  const at::Tensor x = at::randn({2048, 512}), w = at::randn({4096, 512});
  at::Tensor y = at::empty({2048, 4096});
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  std::vector<double> product;
  std::vector<std::vector<double>> times(forests.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < forests.size(); ++i) {
      product.push_back(seconds([&] { ops::linear(context, x, w, y); }));
      std::vector<TokenScore> scores(forests[i].targets.size());
      times[i].push_back(seconds([&] { model.score(forests[i], scores); }));
    }
  }
  const double peak = 2.0 * 2048 * 4096 * 512 / median(product);
  std::printf("%d threads, product 2048x4096x512: %.0f GFLOP/s\n", policy.threads, peak / 1e9);
  for (std::size_t i = 0; i < forests.size(); ++i) {
    const double time = median(times[i]), rate = operations(config, forests[i]) / time;
    std::printf("%-16s %5zu rows %5zu targets %8.0f rows/s %5.0f GFLOP/s %.2f of the product\n",
                kShapes[i].name, forests[i].ids.size(), forests[i].targets.size(),
                static_cast<double>(forests[i].ids.size()) / time, rate / 1e9, rate / peak);
  }
  return 0;
}
