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
    const AskedParts asked(entry.record.settings);
    for (const auto& task : db.tasks(entry.evaluation_id))
      if (task.status == "finished")
        one.parts.insert_or_assign(task.record.task, asked.of(task.record.task));
  }
  return found;
}

const store::EvaluationEntry& latest_of(const std::vector<store::EvaluationEntry>& evaluations) {
  return *std::max_element(
      evaluations.rbegin(), evaluations.rend(), [](const auto& a, const auto& b) {
        return std::pair(a.record.step, a.created_utc) < std::pair(b.record.step, b.created_utc);
      });
}

std::set<std::string> names_of(const std::map<std::string, Asked>& parts) {
  std::set<std::string> names;
  for (const auto& [name, asked] : parts) names.insert(name);
  return names;
}

std::set<std::string> names_of(const NamedEvaluation& one) { return names_of(one.parts); }

std::set<std::string> in_both(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> names;
  std::ranges::set_intersection(a, b, std::inserter(names, names.end()));
  return names;
}

std::set<std::string> asked_alike(const NamedEvaluation& a, const NamedEvaluation& b) {
  std::set<std::string> names = in_both(names_of(a), names_of(b));
  std::erase_if(names,
                [&](const std::string& name) { return a.parts.at(name) != b.parts.at(name); });
  return names;
}

bool computed_alike(const store::EvaluationEntry& a, const store::EvaluationEntry& b) {
  return a.record.tokenizer_digest == b.record.tokenizer_digest && rounding_of(a) == rounding_of(b);
}

bool same_model(const store::EvaluationEntry& a, const store::EvaluationEntry& b) {
  return a.record.step == b.record.step && a.record.weights_digest == b.record.weights_digest &&
         computed_alike(a, b);
}

}  // namespace olmo::report
