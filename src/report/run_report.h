#pragma once

#include "report/page/run_page.h"

namespace olmo::report {

/// Reads one run, or an evaluation without one, with its latest evaluation, the
/// scores of all, and its audits. `cluster` is a file;
/// empty: none. Throws Error(kUsage) for a name that names nothing, Error(kDamaged) for a database
/// that cannot be read.
RunReport report_run(const std::string& run, const std::string& cluster);

}  // namespace olmo::report
