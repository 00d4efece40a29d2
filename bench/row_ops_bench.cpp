// Speed of the row operations next to LibTorch's, and of the whole head next to its three bare
// matrix products.
//   olmo_row_ops_bench --benchmark_filter=head --benchmark_repetitions=3
// OLMO_BENCH_ISA picks another instruction set than the widest. One thread; rates are per second of
// CPU time, bytes count each tensor once for each time the operation must read or write it.
#include <cstdlib>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include "core/compute/libtorch.h"
#include "core/compute/tensor.h"
#include "ops/context.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/optimizer_update.h"
#include "ops/rope.h"
#include "ops/swiglu.h"

namespace {

using benchmark::State;
using namespace olmo;

Policy bench_policy() {
  const char* isa = std::getenv("OLMO_BENCH_ISA");
  auto policy = resolve_policy("portable", isa == nullptr ? "auto" : isa, 1);
  apply_policy(policy);
  return policy;
}

/// `tensors` passes over `elements` floats per iteration.
void report_bytes(State& state, std::int64_t elements, double tensors) {
  state.counters["bytes"] = benchmark::Counter(
      4.0 * tensors * static_cast<double>(elements) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

struct Size {
  const char* name;
  std::int64_t d_model, mlp, n_heads, length, tokens;
};
constexpr Size kSizes[] = {{"T", 128, 512, 4, 256, 2048},
                           {"S", 512, 2048, 8, 512, 2048},
                           {"M", 768, 3072, 12, 1024, 2048}};
constexpr std::int64_t kVocabulary = 50304;

ops::HeadInput head_input(const Size& size, at::ScalarType type = at::kFloat) {
  return {at::randn({size.tokens, size.d_model}).to(type),
          (at::randn({kVocabulary, size.d_model}) * 0.02).to(type),
          at::randint(0, 50280, {size.tokens}, at::kLong)};
}

void report_flops(State& state, const Size& size) {
  state.counters["FLOPS"] =
      benchmark::Counter(6.0 * static_cast<double>(size.tokens * kVocabulary * size.d_model) *
                             static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void run_head(State& state, const Size& size, std::int64_t chunk, at::ScalarType type) {
  const auto policy = bench_policy();
  const auto input = head_input(size, type);
  ops::HeadWorkspace workspace;
  workspace.chunk = chunk;
  const ops::HeadGradients gradients{.grad_scale = 1.0F / 2048,
                                     .z_multiplier = 1e-4F,
                                     .dh_MD = at::zeros_like(input.h_MD),
                                     .dw_VD = at::zeros(input.w_VD.sizes())};
  ops::Workspace scratch(policy.threads);
  const ops::Context context(policy, scratch);
  ops::head_loss_backward(context, workspace, input, gradients);
  for ([[maybe_unused]] auto _ : state)
    ops::head_loss_backward(context, workspace, input, gradients);
  report_flops(state, size);
}

/// The head's products alone, over the same chunks and buffers.
void run_products(State& state, const Size& size, std::int64_t chunk) {
  const auto policy = bench_policy();
  const auto input = head_input(size);
  at::Tensor logits = at::zeros({chunk, kVocabulary}), dh = at::zeros_like(input.h_MD),
             dw = at::zeros_like(input.w_VD);
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  for ([[maybe_unused]] auto _ : state) {
    for (std::int64_t first = 0; first < size.tokens; first += chunk) {
      const auto count = std::min(chunk, size.tokens - first);
      const at::Tensor h = input.h_MD.narrow(0, first, count);
      at::Tensor part = logits.narrow(0, 0, count), dh_part = dh.narrow(0, first, count);
      ops::linear(context, h, input.w_VD, part);
      ops::linear_backward_input(context, part, input.w_VD, dh_part);
      ops::linear_backward_weight(context, part, h, dw, true);
    }
  }
  report_flops(state, size);
}

void run_norm(State& state, const Size& size, bool backward, bool ours) {
  const auto policy = bench_policy();
  const auto x = at::randn({size.tokens, size.d_model}), dy = at::randn_like(x);
  auto y = at::zeros_like(x), stats = at::zeros({size.tokens, 2}), dx = at::zeros_like(x);
  ops::layer_norm(policy, x, {}, 1e-5F, y, stats);
  const at::Tensor mean = stats.select(1, 0).contiguous().view({size.tokens, 1});
  const at::Tensor rstd = stats.select(1, 1).contiguous().view({size.tokens, 1});
  for ([[maybe_unused]] auto _ : state) {
    if (ours && !backward) ops::layer_norm(policy, x, {}, 1e-5F, y, stats);
    if (ours && backward) {
      ops::layer_norm_backward(policy, {.dy_MD = dy,
                                        .x_MD = x,
                                        .stats = stats,
                                        .weight_D = {},
                                        .dx_MD = dx,
                                        .dweight_D = {},
                                        .dbias_D = {}});
    }
    if (!ours && !backward)
      benchmark::DoNotOptimize(at::native_layer_norm(x, {size.d_model}, {}, {}, 1e-5));
    if (!ours && backward) {
      benchmark::DoNotOptimize(at::native_layer_norm_backward(dy, x, {size.d_model}, mean, rstd, {},
                                                              {}, {true, false, false}));
    }
  }
  report_bytes(state, x.numel(), backward ? 3 : 2);
}

void run_swiglu(State& state, const Size& size, bool backward, bool ours) {
  const auto policy = bench_policy();
  const auto u = at::randn({size.tokens, 2 * size.mlp}), dy = at::randn({size.tokens, size.mlp});
  auto y = at::zeros_like(dy), du = at::zeros_like(u);
  const auto up = u.narrow(1, 0, size.mlp), gate = u.narrow(1, size.mlp, size.mlp);
  for ([[maybe_unused]] auto _ : state) {
    if (ours && !backward) ops::swiglu(policy, u, y);
    if (ours && backward) ops::swiglu_backward(policy, dy, u, du, y);
    if (!ours && !backward) at::mul_out(y, at::silu(gate), up);
    if (!ours && backward) {  // what autograd runs for silu(gate) * up
      benchmark::DoNotOptimize(at::mul(dy, at::silu(gate)));
      benchmark::DoNotOptimize(at::silu_backward(at::mul(dy, up), gate));
    }
  }
  report_bytes(state, dy.numel(), backward ? (ours ? 6 : 5) : 3);
}

void run_rope(State& state, const Size& size) {
  const auto policy = bench_policy();
  const auto head_dim = size.d_model / size.n_heads;
  const auto table = ops::make_rope_table(10000.0, head_dim, size.length);
  const ops::AttentionShape shape{.batch = size.tokens / size.length,
                                  .length = size.length,
                                  .n_heads = size.n_heads,
                                  .n_kv_heads = size.n_heads,
                                  .head_dim = head_dim};
  const auto qkv = at::randn({size.tokens, 3 * size.d_model});
  for ([[maybe_unused]] auto _ : state) ops::rope(policy, table, shape, qkv);
  report_bytes(state, size.tokens * 2 * size.d_model, 2);
}

void run_simple(State& state, const Size& size, const std::string& op, bool ours) {
  const auto policy = bench_policy();
  const auto x = at::randn({size.tokens, size.d_model}), y = at::randn_like(x);
  auto out = at::zeros_like(x), mask = at::zeros(x.sizes(), at::kByte);
  const auto ids = at::randint(0, 50280, {size.tokens}, at::kLong);
  auto table = at::zeros({kVocabulary, size.d_model});
  for ([[maybe_unused]] auto _ : state) {
    if (op == "add") ours ? ops::add(policy, x, y, out) : static_cast<void>(at::add_out(out, x, y));
    if (op == "clamp")
      ours ? ops::clamp(policy, x, 1e9F, mask)
           : static_cast<void>(at::clamp_out(out, x, -1e9, 1e9));
    if (op == "embedding")
      ours ? ops::embedding(policy, ids, table, out)
           : static_cast<void>(at::index_select_out(out, table, 0, ids));
    if (op == "embedding_backward")
      ours ? ops::embedding_backward(policy, ids, x, table)
           : static_cast<void>(table.index_add_(0, ids, x));
    if (op == "norm") {
      if (ours)
        benchmark::DoNotOptimize(ops::sum_of_squares(policy, table));
      else
        benchmark::DoNotOptimize(at::linalg_vector_norm(table, 2));
    }
  }
  if (op == "norm") return report_bytes(state, table.numel(), 1);
  report_bytes(state, x.numel(), op == "add" || op == "embedding_backward" ? 3 : 2);
}

void add_benchmark(const std::string& name, const std::function<void(State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
}

void add_all() {
  for (const auto& size : kSizes) {
    const std::string prefix = std::string(size.name) + "/";
    for (const std::int64_t chunk : {128, 256, 512, 1024}) {
      add_benchmark(prefix + "head/" + std::to_string(chunk),
                    [=](State& s) { run_head(s, size, chunk, at::kFloat); });
      add_benchmark(prefix + "head_bf16/" + std::to_string(chunk),
                    [=](State& s) { run_head(s, size, chunk, at::kBFloat16); });
      add_benchmark(prefix + "head_products/" + std::to_string(chunk),
                    [=](State& s) { run_products(s, size, chunk); });
    }
    for (const bool ours : {true, false}) {
      const std::string who = ours ? "/ours" : "/libtorch";
      for (const bool backward : {false, true}) {
        const std::string pass = backward ? "_backward" : "";
        add_benchmark(prefix + "layer_norm" + pass + who,
                      [=](State& s) { run_norm(s, size, backward, ours); });
        add_benchmark(prefix + "swiglu" + pass + who,
                      [=](State& s) { run_swiglu(s, size, backward, ours); });
      }
      for (const char* op : {"add", "clamp", "embedding", "embedding_backward", "norm"}) {
        add_benchmark(prefix + op + who, [=](State& s) { run_simple(s, size, op, ours); });
      }
    }
    add_benchmark(prefix + "rope/ours", [=](State& s) { run_rope(s, size); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const c10::NoGradGuard no_grad;
  add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
