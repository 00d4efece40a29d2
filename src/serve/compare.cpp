#include "serve/compare.h"

#include <map>

#include "core/error.h"
#include "page/html.h"
#include "report/comparability/side_by_side.h"
#include "serve/run_set.h"
#include "store/runs/recorded_run.h"

namespace olmo::serve {
namespace {

using config::MismatchClass;
using page::Table;
using report::SettingLine;
using report::Settings;
using report::StatedConfig;

/// What a run was made of and with, by kind.
struct ComparedFacts {
  StatedConfig config;
  Settings inputs, policy, build, machine;
};

ComparedFacts facts_of(const ChosenRun& run) {
  ComparedFacts facts;
  store::RecordedRun recorded;
  static_cast<store::RunRecord&>(recorded) = run.entry.summary.run;
  recorded.label = run.label;
  recorded.imported = run.entry.summary.imported;
  facts.config = report::stated_config(recorded);
  std::map<std::string, int> counts;
  for (const auto& input : store::read_inputs(*run.records, recorded.run_id))
    facts.inputs[input.kind + " " + std::to_string(++counts[input.kind])] =
        "\"" + input.sha256.substr(0, 16) + "\"";
  const auto attempts = store::read_attempts(*run.records, recorded.run_id);
  if (attempts.empty()) return facts;
  facts.policy = report::leaves_of(attempts.back().policy, run.label + ": its policy");
  facts.build = report::leaves_of(attempts.back().build, run.label + ": its build");
  facts.machine = report::machine_of(attempts.back().environment, run.label + ": its environment");
  return facts;
}

/// One kind of facts of all runs.
template <class Part>
std::vector<Part> parts_of(const std::vector<ComparedFacts>& facts, Part ComparedFacts::*part) {
  std::vector<Part> parts;
  for (const auto& one : facts) parts.push_back(one.*part);
  return parts;
}

std::string table_of(const std::vector<SettingLine>& lines, const RunSet& set, bool with_reason) {
  std::vector<page::Column> columns = {{"Key", false}};
  for (const auto& run : set.runs) columns.push_back({page::clip(run.label, 60), false});
  if (with_reason) columns.push_back({"What it means", false});
  Table table(columns);
  for (const SettingLine& line : lines) {
    std::vector<std::string> cells = {page::code(line.key)};
    for (const auto& value : line.values) {
      const std::string text = page::shown(value.value_or(report::kNotSet), 300);
      cells.push_back(value == line.values.front() ? text : "<b>" + text + "</b>");
    }
    if (with_reason) cells.push_back(page::shown(line.reason));
    table.row(cells);
  }
  return table.html();
}

std::string count_of(std::size_t n, const char* what) {
  return page::count(static_cast<std::int64_t>(n)) + " " + what + (n == 1 ? "" : "s");
}

/// The keys that differ, by what that means for a comparison.
std::string differing_keys(const std::vector<SettingLine>& lines, const RunSet& set) {
  struct Kind {
    MismatchClass mismatch;
    const char* title;
  };
  constexpr Kind kKinds[] = {
      {MismatchClass::kFatal, "Runs that differ in these cannot be compared"},
      {MismatchClass::kConfound, "These change the result"},
      {MismatchClass::kBenign, "These cannot change the result, or are what is compared"}};
  std::string html;
  for (const Kind& kind : kKinds) {
    std::vector<SettingLine> found;
    for (const SettingLine& line : lines)
      if (line.differs && line.mismatch == kind.mismatch) found.push_back(line);
    if (!found.empty())
      html += "<h3>" + std::string(kind.title) + "</h3>\n" + table_of(found, set, true);
  }
  if (html.empty()) html = page::note("No key of the configs differs.");
  std::vector<SettingLine> untold;
  for (const SettingLine& line : lines)
    if (line.untold) untold.push_back(line);
  if (!untold.empty())
    html += page::folded("Not stated by every run: " + count_of(untold.size(), "key"),
                         page::note("An imported config has defaults that are not known here, so "
                                    "these may differ or not.") +
                             table_of(untold, set, true));
  return html;
}

/// Folded, by the part of the config that they belong to.
std::string equal_keys(const std::vector<SettingLine>& lines, const RunSet& set) {
  std::map<std::string, std::vector<SettingLine>> parts;
  for (const SettingLine& line : lines) {
    const auto dot = line.key.find('.');
    if (!line.differs && !line.untold)
      parts[dot == std::string::npos ? "run" : line.key.substr(0, dot)].push_back(line);
  }
  std::string html;
  for (const auto& [part, found] : parts)
    html += page::folded(page::shown(part, 60) + ": " + count_of(found.size(), "key"),
                         table_of(found, set, false));
  return html;
}

/// One kind of facts: those that differ, and the others folded.
std::string facts_section(const char* title, const std::vector<ComparedFacts>& facts,
                          Settings ComparedFacts::*part, const RunSet& set) {
  const auto lines = report::side_by_side(parts_of(facts, part));
  std::vector<SettingLine> differing, equal;
  for (const SettingLine& line : lines) (line.differs ? differing : equal).push_back(line);
  if (lines.empty()) return {};
  return "<h3>" + std::string(title) + "</h3>\n" +
         (differing.empty() ? page::note("Nothing differs.") : table_of(differing, set, false)) +
         (equal.empty()
              ? ""
              : page::folded(count_of(equal.size(), "equal fact"), table_of(equal, set, false)));
}

Response compare_page(Catalog& catalog, const Request& request) {
  RunSet set = chosen_runs(catalog, request);
  std::vector<ComparedFacts> facts;
  RunSet read{.runs = {}, .sentences = set.sentences};
  for (auto& run : set.runs) {
    try {
      if (run.records) {
        facts.push_back(facts_of(run));
        read.runs.push_back(std::move(run));
        continue;
      }
    } catch (const Error& error) {
      run.problem = error.what();
    }
    read.sentences.push_back(run.label + ": " + run.problem);
  }
  if (read.runs.empty()) throw NotFound(read.sentences.back());
  const auto config = report::configs_side_by_side(parts_of(facts, &ComparedFacts::config));
  const std::string body =
      problems_html(read) +
      page::section("differ", "What differs",
                    differing_keys(config, read) +
                        page::note("Keys that a config does not state have their default. Values "
                                   "that differ from the first run’s are bold.")) +
      page::section("equal", "What is equal", equal_keys(config, read)) +
      page::section("beside", "Beside the config",
                    facts_section("Inputs", facts, &ComparedFacts::inputs, read) +
                        facts_section("Numerics policy", facts, &ComparedFacts::policy, read) +
                        facts_section("Build", facts, &ComparedFacts::build, read) +
                        facts_section("Machine", facts, &ComparedFacts::machine, read));
  return html_response(framed(set_frame(read, "Configs", "compare"), body));
}

}  // namespace

void add_compare(Routes& routes, Catalog& catalog) {
  routes.add("/compare",
             [&catalog](const Request& request) { return compare_page(catalog, request); });
}

}  // namespace olmo::serve
