// The report as Markdown and as CSV.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/safe_text.h"
#include "page/html.h"
#include "report/page/pages.h"
#include "report/page/sections.h"

namespace olmo::report {
namespace {

using namespace page;

std::string side_line(char letter, const Side& side) {
  return std::string("- **") + letter + "**: " + markdown_text(side.label) + ", database " +
         markdown_text(side.database) +
         (side.run ? ", run " + markdown_text(side.run->run_id) : "") +
         (side.database_sha256.empty() ? "" : ", SHA-256 " + markdown_text(side.database_sha256)) +
         "\n";
}

const char* standing_word(Standing standing) {
  constexpr std::array<const char*, 5> kWords = {"✓", "○", "!", "✕", "–"};
  return kWords.at(static_cast<std::size_t>(standing));
}

std::string bullet_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += "- " + markdown_text(text) + "\n";
  return out;
}

/// One line of the CSV; what is absent is an empty field.
struct CsvLine {
  std::string section, name, metric;
  std::optional<double> a, b, difference;
  std::optional<Interval> interval95 = {};
  const Equivalence* equivalence = nullptr;
};

std::string csv_line(const CsvLine& line) {
  const auto field = [](const std::optional<double>& value) {
    return "," + (value ? exact(*value) : std::string());
  };
  std::string out =
      csv_text(line.section) + "," + csv_text(line.name) + "," + csv_text(line.metric);
  out += field(line.a) + field(line.b) + field(line.difference);
  out += line.interval95 ? field(line.interval95->low) + field(line.interval95->high) : ",,";
  if (line.equivalence == nullptr) return out + ",,,\n";
  return out + field(line.equivalence->margin) + field(line.equivalence->p) +
         (line.equivalence->certified ? ",yes\n" : ",no\n");
}

template <typename Value>
const Value* pointer(const std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

/// The tests of the claims; `p` is that of a difference, as Holm corrected it.
std::string csv_of_claims(const ParityReport& report) {
  std::string out;
  for (const Claim& claim : report.claims)
    for (const Test& test : claim.tests) {
      const Equivalence equivalence{test.estimate, test.interval90, test.margin.value,
                                    test.holm_p.value_or(test.p.value_or(std::nan(""))),
                                    test.certified};
      out += csv_line({std::string("claim ") + to_string(claim.scope),
                       test.name,
                       test.unit,
                       {},
                       {},
                       test.estimate,
                       test.too_few ? std::nullopt : std::optional(test.interval95),
                       test.too_few ? nullptr : &equivalence});
    }
  return out;
}

/// A line for each claim, and what would make it stronger.
std::string claims_lines(const ParityReport& report) {
  std::string out;
  for (const Claim& claim : report.claims) {
    out += std::string("- **") + claim_title(claim.scope) +
           "**: " + markdown_text(to_string(claim.verdict)) + ".";
    if (claim.sentence != report.reason) out += " " + markdown_text(claim.sentence);
    if (const Test* test = claim.decided_by(); test != nullptr && !test->too_few)
      out += " Decided by " + markdown_text(test->name) + ": margin ±" +
             number(test->margin.value, 4) + " " +
             markdown_text(test->unit + " (" + source_of(test->margin)) + "), excludes ±" +
             number(test->excludes, 3) +
             (test->power ? ", power " + whole_percent(*test->power) : "") + ".";
    if (!claim.stronger.empty()) out += " Stronger: " + markdown_text(claim.stronger) + ".";
    out += "\n";
  }
  return out.empty() ? out : out + "\n";
}

std::string csv_of_trajectory(const ParityReport& report) {
  std::string out;
  if (report.trajectory) {
    const Trajectory& t = *report.trajectory;
    out += csv_line({"trajectory", "last stretch", "ce_loss", t.last_a, t.last_b, t.last.mean,
                     t.last_interval95, pointer(t.last.test)});
  }
  if (report.noise.equivalence)
    out += csv_line({"noise_floor",
                     "repeated runs",
                     "ce_loss",
                     {},
                     {},
                     report.noise.equivalence->estimate,
                     {},
                     &*report.noise.equivalence});
  return out;
}

/// bits_per_byte, bits_per_token_macro, …
std::string metric_name(const SourceComparison& source) {
  std::string name = source.unit;
  std::replace(name.begin(), name.end(), ' ', '_');
  return source.source.empty() ? name + "_macro" : name;
}

std::string csv_of_evaluations(const ParityReport& report) {
  std::string out;
  if (report.tasks) {
    for (const TaskComparison& t : report.tasks->tasks)
      out += csv_line({"tasks", t.task, t.metric, t.accuracy_a, t.accuracy_b, t.difference,
                       t.interval95, &t.equivalence});
    if (const MacroComparison* m = pointer(report.tasks->macro))
      out += csv_line({"tasks", "macro average", "accuracy", m->accuracy_a, m->accuracy_b,
                       m->difference, m->interval95, &m->equivalence});
  }
  if (report.perplexity) {
    for (const SourceComparison& s : report.perplexity->sources)
      out += csv_line({"perplexity", s.source.empty() ? s.suite : s.suite + "/" + s.source,
                       metric_name(s), s.bpb_a, s.bpb_b, s.difference, s.interval95,
                       pointer(s.equivalence)});
  }
  return out;
}

std::string csv_of_efficiency(const ParityReport& report) {
  constexpr std::array<std::pair<const char*, Quantity Efficiency::*>, 10> kRows = {
      {{"tokens_per_second", &Efficiency::tokens_per_second},
       {"tokens_per_second_per_device", &Efficiency::tokens_per_second_per_device},
       {"mfu", &Efficiency::mfu},
       {"train_seconds", &Efficiency::train_seconds},
       {"device_hours", &Efficiency::device_hours},
       {"joules", &Efficiency::joules},
       {"kwh", &Efficiency::kwh},
       {"carbon_kg", &Efficiency::carbon_kg},
       {"carbon_kg_market", &Efficiency::carbon_kg_market},
       {"cost", &Efficiency::cost}}};
  std::string out;
  for (const auto& [name, field] : kRows) {
    const Quantity a = report.efficiency_a ? (*report.efficiency_a).*field : std::nullopt;
    const Quantity b = report.efficiency_b ? (*report.efficiency_b).*field : std::nullopt;
    if (a || b)
      out += csv_line({"efficiency", "run", name, a, b, a && b ? Quantity(*b - *a) : std::nullopt});
  }
  return out;
}

}  // namespace

std::string parity_markdown(const ParityReport& report) {
  std::string out = std::string("# ") + markdown_text(to_string(report.verdict)) + "\n\n" +
                    markdown_text(report.reason) + "\n\n";
  if (!report.damage.empty()) out += "## Damage\n\n" + bullet_list(report.damage) + "\n";
  out += claims_lines(report);
  if (!report.caveats.empty()) out += bullet_list(report.caveats) + "\n";
  out += side_line('A', report.a) + side_line('B', report.b) + "- kind: " + to_string(report.kind) +
         ". " + markdown_text(report.kind_reason) + "\n\n";
  out += "| | Evidence | |\n|---|---|---|\n";
  for (const Finding& finding : findings(report))
    out += std::string("| ") + standing_word(finding.standing) + " | " + finding.title + " | " +
           markdown_text(finding.text) + " |\n";
  out +=
      "\n✓ shown, ○ not certified, ! caution, ✕ fails, – for information. Differences are B minus "
      "A.\n\n" +
      identity_markdown(report.identity);
  if (!report.command.empty())
    out += "\nMade by olmo-harness " + markdown_text(report.version) + ": " +
           markdown_text(report.command) + "\n";
  return out;
}

std::string parity_csv(const ParityReport& report) {
  return "section,name,metric,a,b,difference,low95,high95,margin,p,certified\n" +
         csv_of_claims(report) + csv_of_trajectory(report) + csv_of_evaluations(report) +
         csv_of_efficiency(report);
}

}  // namespace olmo::report
