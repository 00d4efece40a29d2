#include "report/training/reference_distance.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/text/text.h"
#include "report/comparability/comparability.h"

namespace olmo::report {
namespace {

/// The text at `key` of a JSON object; empty if there is none.
std::string word(const std::string& text, const char* key) {
  const Json json = recorded_json(text);
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string known_of(std::vector<std::string> words) {
  std::erase(words, "");
  return joined(words);
}

std::string numerics_of(const store::RecordedRun& run) {
  std::vector<std::string> found;
  for (const auto& attempt : run.attempts) {
    const std::string numerics = word(attempt.policy, "numerics");
    if (std::find(found.begin(), found.end(), numerics) == found.end()) found.push_back(numerics);
  }
  return known_of(found);
}

std::optional<double> finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

AuditedStretch stretch_of(const store::AuditRecord& audit, bool run_is_portable) {
  const bool exact = audit.verdict == "identical" &&
                     (run_is_portable || word(audit.policy, "numerics") == "portable");
  return {.first_step = audit.first_step,
          .last_step = audit.last_step,
          .machine = known_of({word(audit.environment, "host"), word(audit.environment, "cpu"),
                               word(audit.policy, "isa")}),
          .verdict = audit.verdict,
          .difference_step = audit.difference_step,
          .difference = audit.difference,
          .operation = audit.operation,
          .ce_loss = exact ? 0 : finite(audit.ce_loss_distance),
          .grad_norm = exact ? 0 : finite(audit.grad_norm_distance)};
}

void raise(std::optional<double>& largest, const std::optional<double>& value) {
  if (value) largest = std::max(largest.value_or(0), *value);
}

bool is_measured(const ReferenceDistance& reference, std::int64_t step) {
  return std::any_of(reference.audits.begin(), reference.audits.end(),
                     [&](const AuditedStretch& audit) {
                       return audit.ce_loss && audit.first_step <= step && step <= audit.last_step;
                     });
}

}  // namespace

ReferenceDistance reference_distance(const store::RecordedRun& run) {
  ReferenceDistance found;
  found.numerics = numerics_of(run);
  for (const auto& audit : run.audits) {
    found.audits.push_back(stretch_of(audit, found.is_portable()));
    raise(found.ce_loss, found.audits.back().ce_loss);
    raise(found.grad_norm, found.audits.back().grad_norm);
  }
  return found;
}

std::optional<AuditedDistance> audited_distance(const ReferencedRun& a, const ReferencedRun& b) {
  if (!a.reference.ce_loss || !b.reference.ce_loss) return std::nullopt;
  AuditedDistance found;
  const store::StepColumns& x = a.run.steps;
  const store::StepColumns& y = b.run.steps;
  for (const auto& [i, j] : common_steps(x, y)) {
    if (!is_measured(a.reference, x.step[i]) || !is_measured(b.reference, x.step[i])) continue;
    ++found.steps;
    found.ce_loss = std::max(found.ce_loss, std::abs(y.loss[j] - x.loss[i]));
    const double norm = std::abs(y.grad_norm[j] - x.grad_norm[i]) / std::abs(x.grad_norm[i]);
    if (std::isfinite(norm)) found.grad_norm = std::max(found.grad_norm, norm);
  }
  found.explained = found.ce_loss <= *a.reference.ce_loss + *b.reference.ce_loss;
  return found;
}

}  // namespace olmo::report
