// The finished evaluations of a side, with the names of what each asked.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "report/record/side.h"

namespace olmo::report {

/// A finished evaluation and the names of its finished tasks and suites.
struct NamedEvaluation {
  const store::EvaluationEntry* entry = nullptr;
  std::size_t place = 0;  ///< among those of its side, the oldest first
  std::set<std::string> names = {};
};

/// `records` has to outlive them.
std::vector<NamedEvaluation> named_evaluations(const SideRecords& records);

std::set<std::string> in_both(const std::set<std::string>& a, const std::set<std::string>& b);

/// The same model asked in the same way, whatever was asked.
bool asked_alike(const store::EvaluationEntry& a, const store::EvaluationEntry& b);

}  // namespace olmo::report
