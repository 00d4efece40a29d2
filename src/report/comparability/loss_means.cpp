#include "report/comparability/loss_means.h"

#include <nlohmann/json.hpp>

#include "core/text/text.h"
#include "report/comparability/settings.h"

namespace olmo::report {
namespace {

/// T of an instance; nothing: it is not known, or some of its labels are masked.
std::optional<std::int64_t> labelled_length(const store::RecordedRun& run) {
  const Settings settings = settings_of(run);
  const auto masks = settings.find("data.label_mask_paths");
  if (masks != settings.end() && masks->second != "[]") return std::nullopt;
  const auto length = count_of(settings, "model.max_sequence_length");
  return length.value_or(0) > 1 ? length : std::nullopt;
}

void multiply(std::vector<double>& values, double factor) {
  for (double& value : values) value *= factor;
}

std::string told_means(const store::RecordedRun& tokens, const store::RecordedRun& labels) {
  const std::string means = "The losses of " + labels.label + " are means over labels, those of " +
                            tokens.label + " over all tokens, as OLMo's are from version 0.4 on";
  const auto length = labelled_length(tokens);
  if (!length)
    return means +
           ": of equal trainings the former are higher by one part in the labels of an instance. "
           "Its length is not known (--config of `runs import`), or labels are masked, so that "
           "they are compared as they are.";
  const std::string whole = std::to_string(*length), labelled = std::to_string(*length - 1);
  return means + ": here losses and gradient norms of " + tokens.label + " are times " + whole +
         "/" + labelled +
         ", as means over labels. Its `max_grad_norm` and `optimizer.eps` act on gradients without "
         "that factor: they do what those of " +
         labels.label + " do if they are " + labelled + "/" + whole + " of them.";
}

}  // namespace

std::optional<LossMean> loss_mean_of(const store::RecordedRun& run) {
  if (!run.imported) return LossMean::kTokens;
  const auto environment = store::environment_of(run);
  const auto found = environment.find(kLossMean);
  if (found == environment.end() || !found->is_string()) return std::nullopt;
  return parse_loss_mean(found->get<std::string>());
}

bool one_mean_is_unknown(const store::RecordedRun& a, const store::RecordedRun& b) {
  return loss_mean_of(a).has_value() != loss_mean_of(b).has_value();
}

bool take_over_labels(store::RecordedRun& run) {
  const auto mean = loss_mean_of(run);
  if (mean != LossMean::kTokens) return mean == LossMean::kLabels;
  const auto length = labelled_length(run);
  if (!length) return false;
  store::StepColumns& steps = run.steps;
  steps.loss_factor = static_cast<double>(*length) / static_cast<double>(*length - 1);
  if (steps.written_loss.empty()) steps.written_loss = steps.loss;
  for (auto* column : {&steps.loss, &steps.grad_norm}) multiply(*column, steps.loss_factor);
  return true;
}

const std::vector<double>& as_written(const store::StepColumns& steps) {
  return steps.written_loss.empty() ? steps.loss : steps.written_loss;
}

AlignedLosses align_losses(store::RecordedRun& a, store::RecordedRun& b) {
  const auto in_a = loss_mean_of(a), in_b = loss_mean_of(b);
  if (in_a == in_b) return {};
  if (!in_a || !in_b) {
    const store::RecordedRun &unknown = in_a ? b : a, &known = in_a ? a : b;
    return {.caveat = "The log of " + unknown.label +
                      " does not tell whether its losses are means over labels or over all "
                      "tokens, those of " +
                      known.label + " are over " + to_string(*(in_a ? in_a : in_b)) +
                      ". Of equal trainings those over labels are higher by one part in the "
                      "labels of an instance. `runs import --loss-mean` states it."};
  }
  store::RecordedRun& tokens = *in_a == LossMean::kTokens ? a : b;
  const store::RecordedRun& labels = &tokens == &a ? b : a;
  AlignedLosses found{.caveat = told_means(tokens, labels)};
  found.over_labels = take_over_labels(tokens);
  return found;
}

}  // namespace olmo::report
