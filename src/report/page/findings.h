// The summary below the verdict: one line for each part of the evidence.
#pragma once

#include <string>
#include <vector>

#include "report/parity.h"

namespace olmo::report::page {

/// How a part of the evidence stands.
enum class Standing { kGood, kOpen, kWarning, kBad, kAbsent };

struct Finding {
  const char* section;  ///< id of the section that holds the evidence
  std::string title;
  Standing standing = Standing::kAbsent;
  std::string text;
};
std::vector<Finding> findings(const ParityReport& report);

/// The verdict's symbol and the CSS class of its colour.
struct VerdictLook {
  const char* symbol;
  const char* classes;
};
VerdictLook look_of(Verdict verdict);

}  // namespace olmo::report::page
