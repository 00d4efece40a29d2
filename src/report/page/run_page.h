// The page of one run.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/efficiency.h"
#include "report/evaluation_scores.h"
#include "report/parity.h"

namespace olmo::report {

struct RunReport {
  Side side;
  std::optional<Efficiency> efficiency;
  std::vector<Mark> marks;
  std::string command, version;
  std::vector<EvaluationScores> evaluations{};  ///< all of the run, or the one named
  std::vector<AuditedStretch> audits{};         ///< oldest first
};

std::string run_html(const RunReport& report);
nlohmann::ordered_json run_json(const RunReport& report);
std::string run_markdown(const RunReport& report);

}  // namespace olmo::report
