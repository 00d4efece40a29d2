// Speed of the matrix products, in fp32 and bf16, and of attention next to LibTorch's in fp32 in
// the same run; the counter is FLOP/s.
//   olmo_ops_bench --benchmark_filter=S/qkv --benchmark_repetitions=9
//     --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
// bench/ops_table.py runs it and writes the table. OLMO_BENCH_ISA picks another instruction set
// than the widest (for LibTorch: MKL_ENABLE_INSTRUCTIONS).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "core/compute/libtorch.h"
#include "core/compute/tensor.h"
#include "ops/attention.h"
#include "ops/context.h"
#include "ops/fma_peak.h"
#include "ops/linear.h"

namespace {

using benchmark::State;
using namespace olmo;

Policy policy_for(const std::string& numerics, int threads) {
  const char* isa = std::getenv("OLMO_BENCH_ISA");
  auto policy = resolve_policy(numerics, isa == nullptr ? "auto" : isa, threads);
  apply_policy(policy);
  return policy;
}

void report(State& state, double operations) {
  state.counters["FLOPS"] = benchmark::Counter(operations * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
}

void run_peak(State& state, const Policy& policy) {
  apply_policy(policy);
  double best = 0;
  for ([[maybe_unused]] auto _ : state)
    best = std::max(best, ops::measure_fma_peak(policy, /*seconds=*/0.01));
  state.counters["FLOPS"] = benchmark::Counter(best);
}

struct LinearCase {
  const char* name;
  std::int64_t m, n, k;
};

// Sizes T (d_model 128), S (512) and M (768): 2048 tokens a step; the head in chunks of tokens.
constexpr LinearCase kLinear[] = {
    {"T/qkv", 2048, 384, 128},      {"T/att_out", 2048, 128, 128},  {"T/ff_proj", 2048, 1024, 128},
    {"T/ff_out", 2048, 128, 512},   {"T/head", 1024, 50304, 128},   {"S/qkv", 2048, 1536, 512},
    {"S/att_out", 2048, 512, 512},  {"S/ff_proj", 2048, 4096, 512}, {"S/ff_out", 2048, 512, 2048},
    {"S/head", 512, 50304, 512},    {"M/qkv", 2048, 2304, 768},     {"M/att_out", 2048, 768, 768},
    {"M/ff_proj", 2048, 6144, 768}, {"M/ff_out", 2048, 768, 3072},  {"M/head", 256, 50304, 768},
};

enum class Product { kForward, kInput, kWeight };

/// Inputs, y and dx of `type`; dw in fp32, rounded where they are bf16.
void run_linear(State& state, const LinearCase& c, Product product, const Policy& policy,
                at::ScalarType type) {
  apply_policy(policy);
  const auto x = at::randn({c.m, c.k}).to(type), w = at::randn({c.n, c.k}).to(type),
             dy = at::randn({c.m, c.n}).to(type);
  auto y = at::zeros({c.m, c.n}, type), dx = at::zeros({c.m, c.k}, type);
  auto dw = at::zeros({c.n, c.k});
  const auto rounding = type == at::kBFloat16 ? ops::Rounding::kBf16 : ops::Rounding::kNone;
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  for ([[maybe_unused]] auto _ : state) {
    if (product == Product::kForward) ops::linear(context, x, w, y);
    if (product == Product::kInput) ops::linear_backward_input(context, dy, w, dx);
    if (product == Product::kWeight)
      ops::linear_backward_weight(context, dy, x, dw, false, rounding);
  }
  report(state, 2.0 * static_cast<double>(c.m * c.n * c.k));
}

struct AttentionCase {
  const char* name;
  ops::AttentionShape shape;
};

const AttentionCase kAttention[] = {{"T/attention", {8, 256, 4, 4, 32}},
                                    {"S/attention", {4, 512, 8, 8, 64}},
                                    {"M/attention", {2, 1024, 12, 12, 64}}};

// Two products forward and five backward, half of each masked.
double attention_operations(const ops::AttentionShape& s) {
  return 7.0 * static_cast<double>(s.batch * s.n_heads * s.length * s.length * s.head_dim);
}

void run_attention(State& state, const ops::AttentionShape& s, const Policy& policy) {
  apply_policy(policy);
  const auto qkv = at::randn({s.batch * s.length, (s.n_heads + 2 * s.n_kv_heads) * s.head_dim});
  const auto dout = at::randn({s.batch * s.length, s.n_heads * s.head_dim});
  auto out = at::zeros_like(dout), dqkv = at::zeros_like(qkv),
       lse = at::zeros({s.batch, s.n_heads, s.length});
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  for ([[maybe_unused]] auto _ : state) {
    ops::attention(context, s, qkv, out, lse);
    ops::attention_backward(context, s, dout, qkv, out, lse, dqkv);
  }
  report(state, attention_operations(s));
}

void run_library_attention(State& state, const ops::AttentionShape& s, const Policy& policy) {
  apply_policy(policy);
  const auto make = [&] {
    return at::randn({s.batch, s.length, s.n_heads, s.head_dim})
        .transpose(1, 2)
        .set_requires_grad(true);
  };
  const auto q = make(), k = make(), v = make();
  const auto dout = at::randn({s.batch, s.length, s.n_heads, s.head_dim}).transpose(1, 2);
  for ([[maybe_unused]] auto _ : state) {
    const auto out = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    out.backward(dout);
    for (const auto& t : {q, k, v}) t.mutable_grad().reset();
  }
  report(state, attention_operations(s));
}

void add(const std::string& name, std::function<void(State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [body = std::move(body)](State& state) { body(state); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void add_all(int threads) {
  const auto portable = policy_for("portable", threads), fast = policy_for("fast", threads);
  const auto suffix = "/threads:" + std::to_string(threads);
  add("fma_peak" + suffix, [=](State& s) { run_peak(s, portable); });
  for (const auto& c : kLinear) {
    for (const auto& [label, product] :
         {std::pair{"forward", Product::kForward}, std::pair{"dx", Product::kInput},
          std::pair{"dw", Product::kWeight}}) {
      const auto name = std::string(c.name) + "/" + label;
      const auto which = product;
      add(name + "/ours" + suffix,
          [=](State& s) { run_linear(s, c, which, portable, at::kFloat); });
      add(name + "/ours_bf16" + suffix,
          [=](State& s) { run_linear(s, c, which, portable, at::kBFloat16); });
      add(name + "/torch" + suffix, [=](State& s) { run_linear(s, c, which, fast, at::kFloat); });
    }
  }
  for (const auto& c : kAttention) {
    add(std::string(c.name) + "/ours" + suffix,
        [=](State& s) { run_attention(s, c.shape, portable); });
    add(std::string(c.name) + "/torch" + suffix,
        [=](State& s) { run_library_attention(s, c.shape, fast); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const int threads : {1, 2}) add_all(threads);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
