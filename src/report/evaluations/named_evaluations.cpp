#include "report/evaluations/named_evaluations.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"

namespace olmo::report {
namespace {

/// What is rounded, as the policy of an evaluation has it.
std::string rounding_of(const store::EvaluationEntry& entry) {
  const Json policy = recorded_json(entry.record.policy);
  std::string text;
  for (const char* key : {"precision", "mixed_precision"})
    text += (policy.is_object() && policy.contains(key) ? policy[key].dump() : "") + " ";
  return text;
}

}  // namespace

std::vector<NamedEvaluation> named_evaluations(const SideRecords& records) {
  std::vector<NamedEvaluation> found;
  const store::EvaluationDb db(records.database());
  for (const auto& entry : records.evaluations) {
    NamedEvaluation& one =
        found.emplace_back(NamedEvaluation{.entry = &entry, .place = found.size()});
    for (const auto& task : db.tasks(entry.evaluation_id))
      if (task.status == "finished") one.names.insert(task.record.task);
  }
  return found;
}

std::set<std::string> in_both(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> names;
  std::ranges::set_intersection(a, b, std::inserter(names, names.end()));
  return names;
}

bool asked_alike(const store::EvaluationEntry& a, const store::EvaluationEntry& b) {
  const auto& x = a.record;
  const auto& y = b.record;
  return x.step == y.step && x.weights_digest == y.weights_digest &&
         x.tokenizer_digest == y.tokenizer_digest &&
         limits_of(x.settings) == limits_of(y.settings) && rounding_of(a) == rounding_of(b);
}

}  // namespace olmo::report
