// The reports on two runs and on one, as files.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/parity.h"
#include "report/run_report.h"

namespace olmo::report {

// What the JSON of either report calls its form, as its key `schema`.
inline constexpr const char* kParitySchema = "olmo-harness/parity@1";
inline constexpr const char* kRunSchema = "olmo-harness/run@1";

/// One HTML file without any outside resource, at most 2 MB; the same bytes for the same report.
std::string parity_html(const ParityReport& report);
/// Every number that the page shows (kParitySchema). Curves are left out.
nlohmann::ordered_json parity_json(const ParityReport& report);
/// A summary for an issue or a log.
std::string parity_markdown(const ParityReport& report);
/// One line a comparison: section, name, metric, a, b, difference, low95, high95, margin, p,
/// certified. `p` is that of the equivalence test, in the lines of a claim that of a difference.
std::string parity_csv(const ParityReport& report);

std::string run_html(const RunReport& report);
nlohmann::ordered_json run_json(const RunReport& report);
std::string run_markdown(const RunReport& report);

}  // namespace olmo::report
