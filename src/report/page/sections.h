// The sections of the pages, in their order. Each takes what may be absent and then says so.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "report/page/run_page.h"
#include "report/parity.h"

namespace olmo::report::page {

/// How a part of the evidence stands.
enum class Standing { kGood, kOpen, kWarning, kBad, kAbsent };

/// One line of the summary below the verdict.
struct Finding {
  const char* section;  ///< id of the section that holds the evidence
  std::string title;
  Standing standing = Standing::kAbsent;
  std::string text;
};
std::vector<Finding> findings(const ParityReport& report);

/// "[−0.12, +0.31]"
std::string interval_text(const Interval& interval);
/// The verdict's symbol and the CSS class of its colour.
struct VerdictLook {
  const char* symbol;
  const char* classes;
};
VerdictLook look_of(Verdict verdict);

/// A side with its letter; the run or the evaluation may be absent.
struct NamedSide {
  char letter = 'A';
  const Side* side = nullptr;
  const Efficiency* efficiency = nullptr;
};

std::string verdict_section(const ParityReport& report);
std::string gate_section(const ParityReport& report);
std::string identity_section(const ParityReport& report);
/// The same as Markdown.
std::string identity_markdown(const Identity& identity);
std::string noise_section(const ParityReport& report);
std::string trajectory_section(const ParityReport& report);
std::string tasks_section(const ParityReport& report);
std::string perplexity_section(const ParityReport& report);

/// "the same bits", or what differs.
std::string audit_result(const AuditedStretch& audit);

// Of one run.
std::string scores_section(const RunReport& report);
std::string scores_markdown(const RunReport& report);
std::string audits_section(const RunReport& report);
std::string audits_markdown(const RunReport& report);

// Of one or of two sides.
std::string loss_charts(std::span<const NamedSide> sides, std::span<const Mark> marks);
std::string throughput_chart(std::span<const NamedSide> sides);
/// "step 1,200", or the tokens where the run tells no steps.
std::string place_of(const Mark& mark);
std::string events_table(std::span<const Mark> marks);
std::string efficiency_section(std::span<const NamedSide> sides);
std::string provenance_section(std::span<const NamedSide> sides);
std::string command_section(const std::string& command, const std::string& version,
                            std::span<const NamedSide> sides);

}  // namespace olmo::report::page
