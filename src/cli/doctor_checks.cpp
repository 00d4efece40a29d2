#include <chrono>
#include <fstream>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <unistd.h>

#include "cli/doctor_parts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/host_tensor.h"
#include "core/tensor.h"
#include "model/olmo.h"
#include "ops/optimizer_update.h"
#include "ops/reduce.h"
#include "train/peak_flops.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct NamedDigest {
  std::string name;
  std::string sha256;
};

std::string digest_of(const at::Tensor& tensor) { return sha256(host_bytes(tensor)).hex(); }

template <class T>
std::string digest_of(std::initializer_list<T> numbers) {
  return sha256(std::as_bytes(std::span(numbers))).hex();
}

model::ModelConfig small_config() {
  model::ModelConfig config;
  config.d_model = 48;
  config.n_heads = 3;
  config.n_layers = 2;
  config.mlp_ratio = 8;
  config.max_sequence_length = 24;
  config.vocab_size = 90;
  config.embedding_size = 96;
  config.eos_token_id = 89;
  config.pad_token_id = 1;
  return config;
}

/// One training step from the token ids to the updated weights: what each part of it gave.
std::vector<NamedDigest> step_digests(const Policy& policy) {
  apply_policy(policy);
  std::vector<NamedDigest> found;
  model::Olmo model(small_config(), policy);
  model.init_weights(6198);
  const auto ids = at::arange(48, at::kLong).mul(37).remainder(89).reshape({2, 24});
  const model::TokenBatch batch{ids, model::next_token_labels(ids)};
  model.forward(batch, [&](std::string_view point, const at::Tensor& x) {
    found.push_back({"forward " + std::string(point), digest_of(x)});
  });
  const auto gradients = model.make_gradients();
  const auto sums = model.forward_backward(batch, {1.0F / 46, 1e-4F}, gradients, false);
  found.push_back({"loss", digest_of({sums.ce_sum, sums.z_sum})});
  for (const auto& [name, gradient] : gradients)
    found.push_back({"gradient of " + name, digest_of(gradient)});
  found.push_back({"gradient norm", digest_of({ops::norm(policy, gradients)})});
  const ops::AdamWStep step{1.0F, 0.999F, 0.1F, 0.95F, 0.05F, 4.5F, 1e-8F, 1e-3F};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& [name, weight] = model.parameters()[i];
    auto average = weight.new_zeros(weight.sizes()), square = average.clone();
    ops::adamw_update(policy, step, gradients[i].tensor, weight, average, square);
    found.push_back({"update of " + name, digest_of(weight)});
  }
  return found;
}

/// Calls work() until `seconds` have passed; the most that one call reached per second.
template <typename Work>
double best_rate(double seconds, const Work& work) {
  double best = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const auto start = Clock::now();
    const double done = work();
    best = std::max(best, done / std::chrono::duration<double>(Clock::now() - start).count());
  } while (Clock::now() < end);
  return best;
}

/// Bytes per second of copying, counting what is read and what is written.
double memory_rate() {
  constexpr std::int64_t kFloats = 16 << 20;  // twice 64 MB
  const at::Tensor from = new_tensor({kFloats}, at::kFloat).fill_(1);
  const at::Tensor to = from.new_zeros({kFloats});
  const auto target = mutable_host_span<float>(to);
  const auto source = host_span<float>(from);
  return best_rate(0.3, [&] {
    at::parallel_for(0, kFloats, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target.data() + begin, source.data() + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
    });
    return 2.0 * kFloats * sizeof(float);
  });
}

/// Bytes per second of writing 32 MB to the current folder, until they are on the disk.
OrderedJson disk_rate() {
  const std::string bytes(32 << 20, 'x');
  const fs::path file = ".olmo-harness-doctor-" + std::to_string(::getpid());
  try {
    const auto start = Clock::now();
    write_file_atomically(file, bytes);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    fs::remove(file);
    return static_cast<double>(bytes.size()) / seconds.count() / 1e6;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

OrderedJson self_check() {
  OrderedJson ways = OrderedJson::array();
  std::vector<NamedDigest> first;
  std::vector<bool> same;
  for (const Isa isa : machine_isas()) {
    for (const int threads : {1, 3}) {
      const auto found = step_digests(resolve_policy("portable", to_string(isa), threads));
      ways.push_back(to_string(isa) + " on " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads"));
      if (first.empty()) first = found, same.assign(found.size(), true);
      for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i].sha256 != first[i].sha256) same[i] = false;
    }
  }
  OrderedJson operations = OrderedJson::array();
  for (std::size_t i = 0; i < first.size(); ++i) {
    operations.push_back(
        {{"name", first[i].name}, {"same", bool{same[i]}}, {"sha256", first[i].sha256}});
  }
  const bool all = std::find(same.begin(), same.end(), false) == same.end();
  return {{"same", all}, {"ways", ways}, {"operations", operations}};
}

OrderedJson measured_limits(const Policy& policy) {
  apply_policy(policy);
  train::PeakFlops peak(policy);
  const double product = train::measure_product_flops(policy);
  peak.update(product);  // what a product reached is no more than the peak
  return {{"fma_gflops", *peak.value() / 1e9},
          {"product_gflops", product / 1e9},
          {"memory_gb_per_s", memory_rate() / 1e9},
          {"disk_mb_per_s", disk_rate()}};
}

}  // namespace olmo::cli
