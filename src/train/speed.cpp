#include "train/speed.h"

#include <algorithm>

#include "core/clock.h"
#include "core/compute/gpu.h"
#include "core/compute/machine.h"
#include "core/compute/named_tensors.h"
#include "core/compute/tensor.h"
#include "core/text/text.h"
#include "model/memory.h"
#include "model/model_config.h"
#include "model/olmo.h"
#include "model/recomputation.h"
#include "ops/context.h"
#include "ops/fma_peak.h"
#include "ops/linear.h"
#include "ops/optimizer_update.h"
#include "optim/optimizer.h"

namespace olmo::train {
namespace {

constexpr double kMeasureSeconds = 0.008;
constexpr int kLeastMeasurements = 3, kMostMeasurements = 25;
/// A rise by less is noise, for which no recorded row is changed.
constexpr double kRise = 1.01;
/// Between measurements while training; the time doubles with each that found nothing more.
constexpr std::chrono::duration<double> kFirstPause{1}, kLongestPause{60};

/// Portable products use the policy's instruction set, a library the widest.
Policy with_isa_of_products(Policy policy) {
  if (policy.numerics == Numerics::kFast) policy.isa = best_isa();
  return policy;
}

std::string measured_on(const Policy& policy) {
  return "measured: fused multiply-adds, " + to_string(policy.isa) + ", " +
         std::to_string(policy.threads) + (policy.threads == 1 ? " thread" : " threads");
}

constexpr double kSeconds = 0.7;                        ///< of one measurement
constexpr std::int64_t kBytes = std::int64_t{1} << 30;  ///< that it may take

/// A micro-batch of the config, or something like it that is smaller.
struct Sample {
  model::ModelConfig model;
  std::int64_t batch = 1;

  [[nodiscard]] double flops() const {
    const auto token = model::flops_per_token(model, model.max_sequence_length);
    return static_cast<double>(token.model_forward + token.model_backward) *
           static_cast<double>(batch * model.max_sequence_length);
  }
  [[nodiscard]] double parameters() const {
    return static_cast<double>(model::count_parameters(model).total);
  }
  /// Weights, gradients, two moments, and what a pass takes.
  [[nodiscard]] std::int64_t bytes(const Policy& policy) const {
    const model::PassShape shape{.batch = batch, .length = model.max_sequence_length};
    return 4 * std::int64_t{sizeof(float)} * model::count_parameters(model).total +
           model::plan_buffers(model, shape, policy).total();
  }
};

Sample whole_micro_batch(const config::TrainConfig& config) {
  return {config.model, config.micro_batch()};
}

double recomputed_flops(const Sample& whole, const config::TrainConfig& config) {
  const auto length = whole.model.max_sequence_length;
  return static_cast<double>(whole.batch * length) *
         static_cast<double>(model::recomputed_flops_per_token(
             whole.model, config.activation_checkpointing, length));
}

void set_vocabulary(model::ModelConfig& model, std::int64_t size) {
  model.vocab_size = size;
  model.embedding_size = std::nullopt;
  model.eos_token_id = 0;
  model.pad_token_id = 0;
}

/// Half as many heads of the same size; false if they are few or cannot be halved.
bool halve_width(model::ModelConfig& model) {
  constexpr std::int64_t kNarrow = 1024;
  if (model.d_model <= kNarrow || model.n_heads % 2 != 0 || model.kv_heads() % 2 != 0) return false;
  if (model.mlp_hidden_size.value_or(0) % 4 != 0) return false;
  model.d_model /= 2;
  model.n_heads /= 2;
  if (model.n_kv_heads) *model.n_kv_heads /= 2;
  if (model.mlp_hidden_size) *model.mlp_hidden_size /= 2;
  return true;
}

/// Halves what costs least accuracy first; false if there is nothing left to halve.
bool shrink(Sample& sample) {
  auto& model = sample.model;
  constexpr std::int64_t kShort = 256, kShortest = 32, kSmallVocabulary = 4096;
  if (sample.batch > 1) {
    sample.batch /= 2;
  } else if (model.max_sequence_length > kShort) {
    model.max_sequence_length /= 2;
  } else if (model.n_layers > 1) {
    model.n_layers /= 2;
  } else if (model.vocab_size > kSmallVocabulary) {
    set_vocabulary(model, std::max(model.vocab_size / 2, kSmallVocabulary));
  } else if (!halve_width(model)) {
    if (model.max_sequence_length <= kShortest) return false;
    model.max_sequence_length /= 2;
  }
  return true;
}

struct Times {
  double micro_batch = 0;
  double update = 0;
};

/// Of at least two rounds, as the first takes fresh memory.
template <class Work>
double shortest(int rounds, const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0, spent = 0;
  for (int round = 0; round < rounds && (round < 2 || spent < kSeconds / 2); ++round) {
    const auto start = Clock::now();
    work();
    const double seconds = seconds_since(start);
    best = round == 0 ? seconds : std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

Times measure(const Sample& sample, const config::TrainConfig& config, const Policy& policy) {
  model::Olmo model(sample.model, policy);
  // As a training draws them: with equal weights, activations vanish into subnormals, and a
  // processor takes up to four times as long for those.
  model.init_weights(config.seed);
  const auto gradients = model.make_gradients();
  const auto length = sample.model.max_sequence_length;
  const auto ids = new_tensor({sample.batch, length}, at::kLong);
  std::int64_t next = 0;
  for (auto& id : mutable_host_span<std::int64_t>(ids)) id = 37 * next++ % sample.model.vocab_size;
  const model::TokenBatch batch{ids, model::next_token_labels(ids)};
  const model::LossWeights weights{1.0F / static_cast<float>(ids.numel()),
                                   static_cast<float>(config.z_multiplier())};
  optim::Optimizer optimizer(config.optimizer, {config.max_grad_norm, config.max_grad_norm_ratio},
                             model.parameters(), gradients);
  Times times;
  times.micro_batch = shortest(4, [&] {
    model.forward_backward(batch, weights, gradients, /*accumulate=*/false);
    if (policy.gpu != nullptr) policy.gpu->wait();
  });
  times.update = shortest(3, [&] {
    optimizer.step(policy, optimizer.plan_clip(policy, 1), 1e-6,
                   {config.max_grad_norm, config.max_grad_norm_ratio});
    model.weights_changed();
    ops::norm(policy, model.parameters());
  });
  return times;
}

std::string of(std::int64_t part, std::int64_t whole, const char* what) {
  return part == whole ? std::string()
                       : std::to_string(part) + " of " + std::to_string(whole) + " " + what;
}

/// "1 of 16 layers, 256 of 2048 tokens".
std::string described(const Sample& sample, const Sample& whole) {
  std::string text;
  for (const auto& part :
       {of(sample.batch, whole.batch, "sequences"),
        of(sample.model.max_sequence_length, whole.model.max_sequence_length, "tokens"),
        of(sample.model.n_layers, whole.model.n_layers, "layers"),
        of(sample.model.d_model, whole.model.d_model, "channels"),
        of(sample.model.vocab_size, whole.model.vocab_size, "words")}) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

}  // namespace

PeakFlops::PeakFlops(const Policy& policy, int ranks)
    : policy_(with_isa_of_products(policy)), pause_(kFirstPause) {
  if (policy.device != Device::kCpu) {
    source_ = "unknown: a GPU's peak is not measured; name a cluster file in the report";
    return;
  }
  if (policy.has_bf16_products()) {
    source_ =
        "unknown: the processor's instructions for bf16 are faster than multiply-adds, and "
        "their peak is not measured; name a cluster file in the report";
    return;
  }
  if (const int threads = policy.threads * ranks; ranks > 1 && threads > processors_online()) {
    source_ = "unknown: the ranks of this machine have " + counted(threads, "thread") + " for " +
              counted(processors_online(), "processor");
    return;
  }
  for (int done = 0, since_rise = 0; done < kMostMeasurements; ++done) {
    since_rise = measure() ? 0 : since_rise + 1;
    if (since_rise >= kLeastMeasurements) break;
  }
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
}

std::string PeakFlops::source_on(int ranks) const {
  if (ranks == 1 || !value_) return source_;
  return source_ + ", on each of " + std::to_string(ranks) + " ranks";
}

bool PeakFlops::measure() {
  const double measured = ops::measure_fma_peak(policy_, kMeasureSeconds);
  if (value_ && measured < *value_ * kRise) return false;
  value_ = measured;
  source_ = measured_on(policy_);
  return true;
}

bool PeakFlops::update(double rate) {
  if (!value_ || (rate <= *value_ && Clock::now() < next_)) return false;
  bool rose = measure();
  if (rate > *value_) {  // the machine can do what a step did, whatever was measured
    value_ = rate;
    source_ =
        "measured: the fastest step; other programs left too little of the processor to "
        "measure its multiply-adds";
    rose = true;
  }
  pause_ = rose ? kFirstPause : std::min(2 * pause_, kLongestPause);
  next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause_);
  return rose;
}

std::string mfu_line(std::optional<double> flops, const std::string& source) {
  return "MFU: " + (flops ? formatted("of %.4g GFLOP/s, ", *flops / 1e9) : "") + source;
}

double measure_product_flops(const Policy& policy) {
  constexpr std::int64_t kRows = 256, kInner = 512, kColumns = 512;
  constexpr double kEnough = 0.2;  // seconds
  const at::Tensor x = new_tensor({kRows, kInner}, at::kFloat).fill_(1);
  const at::Tensor w = new_tensor({kColumns, kInner}, at::kFloat).fill_(1);
  at::Tensor y = new_tensor({kRows, kColumns}, at::kFloat);
  ops::Workspace workspace(policy.threads);
  const ops::Context context(policy, workspace);
  double best = 0;
  for (double spent = 0; spent < kEnough;) {
    const auto start = std::chrono::steady_clock::now();
    ops::linear(context, x, w, y);
    const double seconds = seconds_since(start);
    spent += seconds;
    best = std::max(best, 2.0 * kRows * kInner * kColumns / seconds);
  }
  return best;
}

StepTime estimate_step_time(const config::TrainConfig& config, const Policy& policy) {
  const Sample whole = whole_micro_batch(config);
  Sample smallest = whole;
  while (smallest.bytes(policy) > kBytes / 16 || smallest.flops() > 2e8) {
    if (!shrink(smallest)) break;
  }
  Sample sample = smallest;
  Times times = measure(sample, config, policy);
  // Small products are slow ones: what is reckoned from them grows with what they show.
  for (int round = 0; round < 3 && times.micro_batch < kSeconds / 2; ++round) {
    const double rate = sample.flops() / times.micro_batch;
    Sample larger = whole;
    while (larger.bytes(policy) > kBytes || larger.flops() > rate * kSeconds) {
      if (!shrink(larger)) break;
    }
    if (larger.flops() <= sample.flops()) break;
    sample = larger;
    times = measure(sample, config, policy);
  }
  const double micro_batches = static_cast<double>(config.global_train_batch_size) /
                               static_cast<double>(config.micro_batch());
  StepTime time;
  // What is computed again was not measured: a part of the blocks would not show it.
  const double flops = whole.flops() + recomputed_flops(whole, config);
  time.seconds = micro_batches * times.micro_batch * flops / sample.flops() +
                 times.update * whole.parameters() / sample.parameters();
  const std::string part = described(sample, whole);
  time.how = part.empty()
                 ? "measured: a micro-batch forward and backward, and the optimizer's update"
                 : "reckoned by FLOPs from a part of a micro-batch that was measured: " + part;
  return time;
}

}  // namespace olmo::train
