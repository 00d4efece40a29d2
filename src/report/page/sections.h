// The sections of the pages.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "page/chart.h"
#include "page/html.h"
#include "report/claims/claim.h"
#include "report/parity.h"
#include "report/record/side.h"
#include "report/run_report.h"
#include "report/training/identity.h"

namespace olmo::report::page {

using namespace olmo::page;  // what sections are made of

// The summary below the verdict: one line for each part of the evidence.

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

/// The first screen: the verdict, a sentence to quote, and a row for each claim.
std::string verdict_section(const ParityReport& report);
/// The first claim that gave the verdict; null where none did, as with a fatal mismatch.
const Claim* claim_of_verdict(const ParityReport& report);
/// "These two models", "These two setups".
const char* claim_title(Scope scope);
/// Every test of every claim, what errors were allowed, and how the tests work.
std::string claims_section(const ParityReport& report);
/// How a test was made, from how many instances and runs; HTML.
std::string method_of(const Test& test);
/// "default: …", or who declared it and when.
std::string source_of(const Margin& margin);
/// A claim's test of an endpoint for equivalence; null if there is none.
const Test* find_test(const ParityReport& report, Scope scope, Endpoint endpoint);
/// "certified", "not certified: …": what a test says of its margin.
std::string outcome_of(const Test& test);
/// The settings that differ, by what they mean for the comparison.
std::string gate_section(const ParityReport& report);

/// Where the runs part, and what audits measured.
std::string identity_section(const ParityReport& report);
/// The same as Markdown.
std::string identity_markdown(const Identity& identity);

/// "the same bits", or what differs.
std::string audit_result(const AuditedStretch& audit);

std::string noise_section(const ParityReport& report);
std::string trajectory_section(const ParityReport& report);

// Of one or of two sides.
std::string loss_charts(std::span<const NamedSide> sides, std::span<const Mark> marks);
std::string throughput_chart(std::span<const NamedSide> sides);
/// "step 1,200", or the tokens where the run tells no steps.
std::string place_of(const Mark& mark);
std::string events_table(std::span<const Mark> marks);

std::string tasks_section(const ParityReport& report);
std::string perplexity_section(const ParityReport& report);

/// The evaluations of a side's checkpoints, by step.
struct ScoredSide {
  Look look;
  std::span<const EvaluationScores> evaluations;
};
/// The letter of a side as its look.
Look side_look(char side);
/// "45.31" of a share, in percent; else five digits.
std::string score_text(const Score& score, double value);
/// The note below a table of scores.
inline constexpr char kAboutScores[] =
    "95 % interval: Wilson’s for accuracies, the bootstrap over documents for perplexities, 1.96 "
    "standard errors for costs. n: instances or documents.";
/// A small chart for each score that is known at two steps or more, at most so many; "" if there is
/// none.
std::string score_charts(std::span<const ScoredSide> sides, std::size_t most = 24,
                         const char* heading = "h3");

// What the checkpoints of one run scored, and what its audits found.
std::string scores_section(const RunReport& report);
std::string scores_markdown(const RunReport& report);
std::string audits_section(const RunReport& report);
std::string audits_markdown(const RunReport& report);

std::string efficiency_section(std::span<const NamedSide> sides);

/// What each side was made of and with: inputs, builds, machines, attempts.
std::string provenance_section(std::span<const NamedSide> sides);
/// The command that makes the page again.
std::string command_section(const std::string& command, const std::string& version,
                            std::span<const NamedSide> sides);

}  // namespace olmo::report::page
