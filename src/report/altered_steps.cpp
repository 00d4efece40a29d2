#include "report/altered_steps.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/text.h"

namespace olmo::report {
namespace {

/// Another program's rounding is no alteration, and what is below it trains nothing else.
constexpr double kRounding = 1e-9;

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::abs(a - b) <= kRounding * std::abs(b);
}

std::string shown(double value) { return std::isnan(value) ? "NULL" : Json(value).dump(); }

class Steps {
 public:
  Steps(const store::RecordedRun& run, const config::RunColumns& columns)
      : run_(run),
        columns_(columns),
        config_(columns.config),
        start_(store::start_of(run.attempts)),
        is_branch_(start_ != 0 ||
                   (!run.attempts.empty() && !run.attempts.front().resumed_from.empty())),
        batches_per_epoch_(batches_per_epoch()) {}

  /// What is wrong with the step at this place; empty: nothing.
  std::string problem(std::size_t i) const {
    if (auto wrong = problem_of_tokens(i); !wrong.empty()) return wrong;
    const store::StepColumns& steps = run_.steps;
    const config::CountedStep at{steps.step[i], steps.tokens[i]};
    if (const auto lr = learning_rate_of(config_, at, batches_per_epoch_))
      if (auto wrong = unlike("lr", i, steps.lr, *lr); !wrong.empty()) return wrong;
    if (i > 0 || !is_branch_) {  // the checkpoint of another run brings its own limit
      const auto limit = max_grad_norm_of(config_, at);
      if (auto wrong =
              unlike("max_grad_norm", i, steps.max_grad_norm, limit.value_or(std::nan("")));
          !wrong.empty())
        return wrong;
    }
    return problem_of_clipping(i);
  }

 private:
  /// By the last step of a training that no `stop_at` ends, of this attempt or a later one.
  [[nodiscard]] std::optional<std::int64_t> batches_per_epoch() const {
    const std::int64_t epochs = config_.max_duration.value;
    if (config_.stop_at || run_.attempts.size() != 1 || epochs < 1) return std::nullopt;
    if (run_.max_steps % epochs != 0) return std::nullopt;
    return run_.max_steps / epochs;
  }

  [[nodiscard]] std::string problem_of_tokens(std::size_t i) const {
    const auto &step = run_.steps.step, &tokens = run_.steps.tokens;
    if (i == 0 && start_ != 0) return "";  // what came before is another run's
    const std::int64_t steps = i == 0 ? step[0] : step[i] - step[i - 1];
    const std::int64_t seen = i == 0 ? tokens[0] : tokens[i] - tokens[i - 1];
    if (steps < 1 || seen == steps * columns_.tokens_per_step) return "";
    return "step " + std::to_string(step[i]) + ": its tokens are " + std::to_string(seen) +
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

  [[nodiscard]] std::string unlike(const char* column, std::size_t i,
                                   const std::vector<double>& recorded, double expected) const {
    if (recorded.empty() || same(recorded[i], expected)) return "";
    return "step " + std::to_string(run_.steps.step[i]) + ": its " + column + " is " +
           shown(recorded[i]) + ", and its config gives " + shown(expected) + ": the column " +
           column + " was altered";
  }

  const store::RecordedRun& run_;
  const config::RunColumns& columns_;
  const config::TrainConfig& config_;
  std::int64_t start_;
  bool is_branch_;
  std::optional<std::int64_t> batches_per_epoch_;
};

}  // namespace

std::optional<std::string> altered_step(const store::RecordedRun& run,
                                        const config::RunColumns& config) {
  const Steps steps(run, config);
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    if (auto problem = steps.problem(i); !problem.empty()) return problem;
  return std::nullopt;
}

}  // namespace olmo::report
