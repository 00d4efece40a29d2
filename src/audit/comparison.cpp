#include "audit/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/hash.h"
#include "core/text/number.h"
#include "core/text/text.h"

namespace olmo::audit {
namespace {

std::string shown(double value) { return formatted("%.17g", value); }
std::string shown(const std::optional<double>& value) { return value ? shown(*value) : "NULL"; }
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(const std::string& value) { return value; }

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(double a, double b) { return same_bits(a, b); }
bool same(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? same(*a, *b) : a.has_value() == b.has_value();
}

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
  return {recorded.step, quantity.name,
          "step " + std::to_string(recorded.step) +
              formatted(": %s was recorded as %.9g; the portable reference is %.9g, and fast is "
                        "within %.2g of it here",
                        quantity.name, recorded.*quantity.value, reference, envelope)};
}

}  // namespace

void Distances::add(const store::StepRecord& recorded, const store::StepRecord& reference) {
  ce_loss = std::max(ce_loss, std::abs(recorded.ce_loss - reference.ce_loss));
  grad_norm =
      std::max(grad_norm, std::abs(recorded.grad_norm - reference.grad_norm) / reference.grad_norm);
}

AuditedRun read_audited_run(const store::RecordDatabase& records, const std::string& run_id) {
  records.check_pages();
  const std::string where = records.path().string() + ": the run " + run_id;
  AuditedRun run;
  static_cast<store::RecordedRun&>(run) = store::read_run(records, run_id);
  if (run.imported) {
    throw Error(ErrorKind::kUsage, where +
                                       " was imported from a log: there is nothing to compute "
                                       "again, expected a run of `train`");
  }
  run.rows = store::read_steps(records, run_id, 0, std::numeric_limits<std::int64_t>::max());
  if (run.attempts.empty())
    throw Error(ErrorKind::kDamaged, where + " has no attempt: its rows were removed");
  if (run.rows.empty() && !run.damage.empty()) {
    // Of all that misses the steps, the last is latest; a seal knows no step.
    const auto last = std::find_if(run.damage.rbegin(), run.damage.rend(),
                                   [](const auto& finding) { return finding.step > 0; });
    const auto& finding = last == run.damage.rend() ? run.damage.front() : *last;
    throw Error(ErrorKind::kDamaged, where +
                                         " has no row of a step, though it had computed some (" +
                                         finding.sentence + "): its rows were removed");
  }
  if (run.rows.empty())
    throw Error(ErrorKind::kUsage, where + " has recorded no step yet: there is nothing to audit");
  for (const auto& [step, row] : run.rows) run.seconds += row.seconds;
  for (const auto& attempt : run.attempts) {
    const Json policy = recorded_json(attempt.policy);
    if (!policy.is_object() || policy.value("numerics", Json()) != "portable") run.fast = true;
  }
  return run;
}

std::vector<store::Finding> compare_rows(const store::StepRecord& recorded,
                                         const store::StepRecord& computed,
                                         std::int64_t chain_format) {
  using Row = store::StepRecord;
  const bool same_format = chain_format == kChainFormat;
  std::vector<store::Finding> findings;
  const auto compare = [&](const char* column, auto member) {
    if (same(recorded.*member, computed.*member)) return;
    findings.push_back({recorded.step, column,
                        "step " + std::to_string(recorded.step) + ": " + column +
                            " was recorded as " + shown(recorded.*member) + ", is " +
                            shown(computed.*member)});
  };
  if (same_format) compare("batch_hash", &Row::batch_hash);
  store::visit_computed_values(compare);
  if (same_format) compare("loss_hash", &Row::loss_hash);
  if (same_format) compare("chain_hash", &Row::chain_hash);
  return findings;
}

std::vector<store::Finding> compare_states(std::int64_t step, const std::string& source,
                                           const std::vector<store::StateHash>& recorded,
                                           const std::vector<store::StateHash>& computed) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::string> expected;
  for (const auto& hash : recorded) expected[{hash.part, hash.name}] = hash.sha256;
  std::vector<store::Finding> findings;
  const auto say = [&](const Key& key, const std::string& what) {
    const std::string tensor = key.first + "/" + key.second;
    findings.push_back({step, tensor, "step " + std::to_string(step) + ": " + tensor + " " + what});
  };
  for (const auto& hash : computed) {
    const Key key{hash.part, hash.name};
    const auto found = expected.find(key);
    if (found == expected.end()) {
      say(key, "is missing in " + source);
      continue;
    }
    if (found->second != hash.sha256) {
      say(key, "has the SHA-256 " + found->second + " in " + source + ", here " + hash.sha256);
    }
    expected.erase(found);
  }
  for (const auto& [key, unused] : expected)
    say(key, "is in " + source + ", and is no tensor of this training");
  return findings;
}

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
    result.distances.add(row, reference[i]);
  }
  if (!result.outside.empty()) result.identical = false;
  return result;
}

}  // namespace olmo::audit
