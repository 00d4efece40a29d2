#include "report/record/altered_steps.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/text.h"
#include "report/cost/efficiency.h"
#include "store/runs/run_line.h"

namespace olmo::report {
namespace {

/// Another program's rounding is no alteration, and what is below it trains nothing else.
constexpr double kRounding = 1e-9;
/// The peak of several ranks rises by less without being recorded.
constexpr double kPeakRounding = 1e-2;

bool same(double a, double b, double rounding = kRounding) {
  return std::isnan(a) ? std::isnan(b) : std::abs(a - b) <= rounding * std::abs(b);
}

std::string shown(double value) { return std::isnan(value) ? "NULL" : Json(value).dump(); }

class Steps {
 public:
  Steps(const store::RecordedRun& run, const config::RunColumns& columns)
      : run_(run),
        columns_(columns),
        config_(columns.config),
        start_(store::start_of(run.attempts)),
        is_branch_(start_ != 0 || store::is_branch(run)),
        begin_(store::data_begin_of(run.attempts).value_or(config::batch_config(config_).begin)),
        batches_(batches_of_files()),
        batches_per_epoch_(is_known(batches_) ? signed_of(batches_->from(0))
                                              : batches_of_length()) {
    for (const store::Stretch& stretch : store::stretches_of(run.attempts))
      if (stretch.first <= stretch.last) stretches_.push_back(of_one_token(stretch));
  }

  /// What is wrong with the place in the data where an attempt began; empty: nothing.
  [[nodiscard]] std::string problem_of_start(const store::AttemptRecord& attempt) const {
    if (!attempt.start_epoch || !attempt.start_instance || !is_known(batches_)) return "";
    const auto step = static_cast<std::uint64_t>(attempt.start_step);
    if (attempt.start_step < 0 || step < begin_.step) return "";
    const DataPosition expected = position_after_step(begin_, *batches_, step);
    if (*attempt.start_epoch == signed_of(expected.epoch) &&
        *attempt.start_instance == signed_of(expected.instance))
      return "";
    return "attempt " + std::to_string(attempt.attempt) + ": it began with instance " +
           std::to_string(*attempt.start_instance) + " of epoch " +
           std::to_string(*attempt.start_epoch) + ", and after its start step " +
           std::to_string(attempt.start_step) + " its config and token files give instance " +
           std::to_string(expected.instance) + " of epoch " + std::to_string(expected.epoch) +
           ": one of them was altered";
  }

  /// What is wrong with the step at this place; empty: nothing.
  std::string problem(std::size_t i) const {
    for (const auto part :
         {&Steps::problem_of_tokens, &Steps::problem_of_epoch, &Steps::problem_of_schedule,
          &Steps::problem_of_clipping, &Steps::problem_of_labels, &Steps::problem_of_speed,
          &Steps::problem_of_mfu})
      if (auto wrong = (this->*part)(i); !wrong.empty()) return wrong;
    return "";
  }

 private:
  /// The steps first, … of an attempt.
  struct MfuOfStretch {
    std::int64_t first = 0;
    Quantity of_one_token;  ///< a token per second; nothing: its peak is not known
  };

  [[nodiscard]] MfuOfStretch of_one_token(const store::Stretch& stretch) const {
    const auto attempt =
        std::ranges::find(run_.attempts, stretch.attempt, &store::AttemptRecord::attempt);
    return {stretch.first, mfu_of_one_token(run_, *attempt)};
  }

  static std::int64_t signed_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }

  /// Some epoch of them holds one.
  static bool is_known(const std::optional<DataBatches>& batches) {
    return batches && batches->from(0) > 0;
  }

  /// By the sizes of the token files.
  [[nodiscard]] std::optional<DataBatches> batches_of_files() const {
    std::vector<std::int64_t> bytes;
    for (const auto& input : run_.inputs)
      if (input.kind == "tokens") bytes.push_back(input.bytes);
    const auto instances = config::instances_of(config_, bytes);
    if (!instances) return std::nullopt;
    return DataBatches{static_cast<std::uint64_t>(*instances),
                       static_cast<std::uint64_t>(config_.global_train_batch_size)};
  }

  /// By the last step of a training that no `stop_at` ends, of this attempt or a later one.
  [[nodiscard]] std::optional<std::int64_t> batches_of_length() const {
    const std::int64_t epochs = config_.max_duration.value;
    if (config_.stop_at || run_.attempts.size() != 1 || epochs < 1) return std::nullopt;
    if (run_.max_steps % epochs != 0) return std::nullopt;
    return run_.max_steps / epochs;
  }

  [[nodiscard]] std::string problem_of_epoch(std::size_t i) const {
    if (run_.steps.epoch.empty() || !batches_) return "";
    if (!is_known(batches_))
      return "its token files hold no batch by their sizes: the column bytes of inputs was altered";
    const auto step = static_cast<std::uint64_t>(run_.steps.step[i]);
    if (step <= begin_.step) return "";  // an older run, which counted a checkpoint's steps anew
    const std::int64_t recorded = run_.steps.epoch[i];
    const std::int64_t expected = signed_of(position_of_step(begin_, *batches_, step).epoch);
    if (recorded == expected) return "";
    return at(i) + "its epoch is " + std::to_string(recorded) +
           ", and its config and token files give " + std::to_string(expected) +
           ": one of them was altered";
  }

  [[nodiscard]] std::string problem_of_schedule(std::size_t i) const {
    const store::StepColumns& steps = run_.steps;
    const config::CountedStep now{steps.step[i], steps.tokens[i]};
    if (const auto lr = learning_rate_of(config_, now, batches_per_epoch_, signed_of(begin_.step)))
      if (auto wrong = unlike("lr", i, steps.lr, *lr); !wrong.empty()) return wrong;
    if (i > 0 || !is_branch_) {  // the checkpoint of another run brings its own limit
      const auto limit = max_grad_norm_of(config_, now);
      if (auto wrong =
              unlike("max_grad_norm", i, steps.max_grad_norm, limit.value_or(std::nan("")));
          !wrong.empty())
        return wrong;
    }
    return "";
  }

  [[nodiscard]] std::string problem_of_tokens(std::size_t i) const {
    const auto &step = run_.steps.step, &tokens = run_.steps.tokens;
    if (i == 0 && start_ != 0) return "";  // what came before is another run's
    const std::int64_t steps = i == 0 ? step[0] : step[i] - step[i - 1];
    const std::int64_t seen = i == 0 ? tokens[0] : tokens[i] - tokens[i - 1];
    if (steps < 1 || seen == steps * columns_.tokens_per_step) return "";
    return at(i) + "its tokens are " + std::to_string(seen) +
           " more than before, and its config gives " + counted(steps, "step") + " " +
           std::to_string(steps * columns_.tokens_per_step) + ": the column tokens was altered";
  }

  [[nodiscard]] std::string problem_of_clipping(std::size_t i) const {
    const store::StepColumns& steps = run_.steps;
    if (steps.max_grad_norm.empty()) return "";
    const double recorded = steps.max_grad_norm[i];
    const auto limit = std::isnan(recorded) ? std::nullopt : std::optional(recorded);
    const auto rate = clipping_rate_of(config_, limit, steps.grad_norm[i]);
    return rate ? unlike("clipping_rate", i, steps.clipping_rate, *rate) : "";
  }

  /// What the filter masks has no label, and every other token but an instance's first is one.
  [[nodiscard]] std::string problem_of_labels(std::size_t i) const {
    const store::StepColumns& steps = run_.steps;
    if (steps.loss_per_label.empty() || steps.masked_instances.empty()) return "";
    const std::int64_t masked = steps.masked_instances[i];
    const std::int64_t maskable =
        config_.data.instance_filter ? config_.global_train_batch_size : 0;
    if (masked < 0 || masked > maskable)
      return at(i) + "its masked_instances are " + std::to_string(masked) +
             ", and its config lets at most " + std::to_string(maskable) +
             " be masked: the column masked_instances was altered";
    const auto most = static_cast<double>((config_.global_train_batch_size - masked) *
                                          (config_.model.max_sequence_length - 1));
    const double sum = steps.loss[i] * static_cast<double>(columns_.tokens_per_step);
    const double recorded = steps.loss_per_label[i];
    // Label masks leave some whole number of them; a batch without any has no loss.
    double labels = most;
    if (!config_.data.label_mask_paths.empty() && recorded > 0)
      labels = std::min(most, std::round(sum / recorded));
    const double expected = sum == 0 ? 0 : sum / labels;
    return unlike("ce_loss_per_label", i, steps.loss_per_label, expected,
                  "its ce_loss and masked_instances give");
  }

  [[nodiscard]] std::string problem_of_speed(std::size_t i) const {
    const store::StepColumns& steps = run_.steps;
    if (steps.seconds.empty()) return "";
    const double seconds = steps.seconds[i];
    if (!(seconds > 0) || !std::isfinite(seconds))
      return at(i) + "its seconds are " + shown(seconds) +
             ", and every step takes some: the column seconds was altered";
    return unlike("tokens_per_second", i, steps.tokens_per_second,
                  static_cast<double>(columns_.tokens_per_step) / seconds, "its seconds give");
  }

  [[nodiscard]] std::string problem_of_mfu(std::size_t i) const {
    const store::StepColumns& steps = run_.steps;
    if (steps.mfu.empty() || std::isnan(steps.mfu[i])) return "";
    auto stretch = std::ranges::upper_bound(stretches_, steps.step[i], {}, &MfuOfStretch::first);
    if (stretch == stretches_.begin()) return "";
    if (!(--stretch)->of_one_token && run_.ranks.empty()) return "";  // nor its devices: an old one
    if (!stretch->of_one_token)
      return at(i) + "its mfu is " + shown(steps.mfu[i]) +
             ", and its attempt tells no peak that it could be a share of: one of them was altered";
    const double expected = *stretch->of_one_token * steps.tokens_per_second[i];
    if (same(steps.mfu[i], expected, kPeakRounding)) return "";
    return altered(i, "mfu", steps.mfu[i], expected,
                   "its tokens_per_second and the peak of its attempt give");
  }

  [[nodiscard]] std::string at(std::size_t i) const {
    return "step " + std::to_string(run_.steps.step[i]) + ": ";
  }

  /// `source`: what decides the column.
  [[nodiscard]] std::string unlike(const char* column, std::size_t i,
                                   const std::vector<double>& recorded, double expected,
                                   const char* source = "its config gives") const {
    if (recorded.empty() || same(recorded[i], expected)) return "";
    return altered(i, column, recorded[i], expected, source);
  }

  [[nodiscard]] std::string altered(std::size_t i, const char* column, double recorded,
                                    double expected, const char* source) const {
    return at(i) + "its " + column + " is " + shown(recorded) + ", and " + source + " " +
           shown(expected) + ": one of them was altered";
  }

  const store::RecordedRun& run_;
  const config::RunColumns& columns_;
  const config::TrainConfig& config_;
  std::int64_t start_;
  bool is_branch_;
  DataPosition begin_;
  std::optional<DataBatches> batches_;
  std::optional<std::int64_t> batches_per_epoch_;  ///< of a length in epochs, at least
  std::vector<MfuOfStretch> stretches_;            ///< by their first steps
};

}  // namespace

std::optional<std::string> altered_step(const store::RecordedRun& run,
                                        const config::RunColumns& config) {
  const Steps steps(run, config);
  for (const store::AttemptRecord& attempt : run.attempts)
    if (auto problem = steps.problem_of_start(attempt); !problem.empty()) return problem;
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    if (auto problem = steps.problem(i); !problem.empty()) return problem;
  return std::nullopt;
}

}  // namespace olmo::report
