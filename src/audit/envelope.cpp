#include "audit/envelope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "audit/row_comparison.h"

namespace olmo::audit {
namespace {

constexpr double kFactor = 4.0;
constexpr double kFloor = 1e-6;

struct Quantity {
  const char* name;
  double store::StepRecord::*value;
};

constexpr std::array<Quantity, 3> kQuantities = {{
    {"ce_loss", &store::StepRecord::ce_loss},
    {"grad_norm", &store::StepRecord::grad_norm},
    {"param_norm", &store::StepRecord::param_norm},
}};

/// Columns that rounding does not touch.
bool is_exact(const std::string& column) {
  return column == "epoch" || column == "tokens" || column == "batch_hash" ||
         column == "masked_instances" || column == "lr";
}

store::Finding outside(const Quantity& quantity, const store::StepRecord& recorded,
                       double reference, double envelope) {
  char text[160];
  std::snprintf(text, sizeof text,
                ": %s was recorded as %.9g; the portable reference is %.9g, and fast is within "
                "%.2g of it here",
                quantity.name, recorded.*quantity.value, reference, envelope);
  return {recorded.step, quantity.name, "step " + std::to_string(recorded.step) + text};
}

}  // namespace

EnvelopeResult compare_with_envelope(const AuditedRun& recorded,
                                     const std::vector<store::StepRecord>& reference,
                                     const std::vector<store::StepRecord>& here) {
  EnvelopeResult result;
  std::array<double, kQuantities.size()> widest{};
  for (std::size_t i = 0; i < std::min(reference.size(), here.size()); ++i) {
    const auto found = recorded.rows.find(reference[i].step);
    if (found == recorded.rows.end()) continue;
    const store::StepRecord& row = found->second;
    ++result.steps;
    for (auto& finding : compare_rows(row, here[i], recorded.chain_format)) {
      result.identical = false;
      if (is_exact(finding.quantity)) result.outside.push_back(std::move(finding));
    }
    for (std::size_t q = 0; q < kQuantities.size(); ++q) {
      const auto value = kQuantities[q].value;
      const double expected = reference[i].*value;
      widest[q] = std::max(widest[q], std::abs(here[i].*value - expected));
      const double envelope = std::max(kFactor * widest[q], kFloor * std::abs(expected));
      if (!(std::abs(row.*value - expected) <= envelope))
        result.outside.push_back(outside(kQuantities[q], row, expected, envelope));
    }
    const double ce = std::abs(row.ce_loss - reference[i].ce_loss);
    const double grad = std::abs(row.grad_norm - reference[i].grad_norm) / reference[i].grad_norm;
    result.distances.ce_loss = std::max(result.distances.ce_loss, ce);
    result.distances.grad_norm = std::max(result.distances.grad_norm, grad);
  }
  if (!result.outside.empty()) result.identical = false;
  return result;
}

}  // namespace olmo::audit
