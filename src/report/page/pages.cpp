#include "report/page/pages.h"

#include <array>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/safe_text.h"
#include "page/html.h"
#include "report/page/json_parts.h"
#include "report/page/sections.h"
#include "report/record/side.h"

namespace olmo::report {
namespace {

using namespace page;

const Efficiency* pointer(const std::optional<Efficiency>& efficiency) {
  return efficiency ? &*efficiency : nullptr;
}

/// Lines of text without markup.
std::vector<std::string> summary(const RunReport& report) {
  if (!report.side.run) return {"No training steps are recorded."};
  const store::RecordedRun& run = *report.side.run;
  const store::StepColumns& steps = run.steps;
  std::string size = count(static_cast<std::int64_t>(steps.size())) +
                     (!steps.steps_known  ? " points of a log that tells no steps"
                      : steps.size() == 1 ? " step"
                                          : " steps");
  if (run.tokens_known && !steps.tokens.empty())
    size += ", " + count(steps.tokens.back()) + " tokens";
  if (run.n_parameters > 0)
    size += ", " + compact(static_cast<double>(run.n_parameters)) + " parameters";
  std::vector<std::string> lines = {"Run " + run.run_id + " of " + report.side.database, size};
  if (!steps.loss.empty()) lines.push_back("Last loss: " + number(steps.loss.back(), 6) + " nats");
  if (report.efficiency && report.efficiency->tokens_per_second)
    lines.push_back(number(*report.efficiency->tokens_per_second) + " tokens/s (median)");
  else if (report.efficiency && report.efficiency->tokens_per_second_per_device)
    lines.push_back(number(*report.efficiency->tokens_per_second_per_device) +
                    " tokens/s per device (median); the number of devices is not known");
  if (report.efficiency && report.efficiency->mfu) {
    const Efficiency& e = *report.efficiency;
    lines.push_back("MFU " + percent(*e.mfu) + " of " + number(*e.peak_flops / 1e9, 4) +
                    " GFLOP/s, " + e.peak_source + (e.mfu_note.empty() ? "" : "; " + e.mfu_note));
  }
  if (report.efficiency) {
    const World& world = report.efficiency->world;
    for (const auto& attempt : world.attempts) lines.push_back(attempt);
    if (world.slowest) lines.push_back("slowest: " + to_text(*world.slowest));
  }
  lines.push_back(count(static_cast<std::int64_t>(run.attempts.size())) +
                  (run.attempts.size() == 1 ? " attempt, " : " attempts, ") +
                  count(static_cast<std::int64_t>(report.marks.size())) +
                  (report.marks.size() == 1 ? " marked event" : " marked events"));
  if (!report.side.disagreement.empty())
    lines.push_back("The run " + report.side.disagreement + ".");
  if (!report.side.unchecked.empty()) lines.push_back("The record " + report.side.unchecked + ".");
  return lines;
}

std::string metrics_section(const store::RecordedRun* run) {
  if (run == nullptr || run->metrics.empty()) return {};
  Table table({{"Metric", false},
               {"Points", true},
               {"Last", true},
               {run->steps.steps_known ? "At step" : "At tokens", true}});
  for (const store::RecordedMetric& metric : run->metrics)
    table.row({code(clip(metric.name, 120)), count(metric.points), number(metric.last, 6),
               count(metric.last_step)});
  const auto n = static_cast<std::int64_t>(run->metrics.size());
  return section("metrics", "Metrics of the run",
                 folded(count(n) + (n == 1 ? " metric" : " metrics"), table.html()));
}

std::string title_of(const Side& side) {
  return side.run && !side.run->name.empty() ? side.run->name : side.label;
}

/// A record that was not ended may be that of a killed training: a report looks at nothing else.
std::string status_of(const store::RecordedRun& run) {
  return run.status == "running" ? "running by its record" : run.status;
}

std::string header(const RunReport& report) {
  const auto damage = damage_of(report);
  std::string html =
      "<header>\n<p class=\"kicker\">One run" +
      (report.side.run ? ": " + shown(status_of(*report.side.run), 60) : std::string()) +
      "</p>\n<h1>" + shown(title_of(report.side), 200) + "</h1>\n" + list_of(summary(report));
  if (!damage.empty()) html += "<h2 class=\"bad\">What is damaged</h2>\n" + list_of(damage);
  return html + "</header>\n";
}

}  // namespace

std::string parity_html(const ParityReport& report) {
  const std::array<NamedSide, 2> sides = {{{'A', &report.a, pointer(report.efficiency_a)},
                                           {'B', &report.b, pointer(report.efficiency_b)}}};
  const std::string body =
      verdict_section(report) + claims_section(report) + gate_section(report) +
      identity_section(report) + noise_section(report) + trajectory_section(report) +
      tasks_section(report) + perplexity_section(report) + efficiency_section(sides) +
      provenance_section(sides) + command_section(report.command, report.version, sides);
  const std::string json = json_text(parity_json(report));
  return document(std::string(to_string(report.verdict)) + ": " + clip(report.a.label, 80) +
                      " and " + clip(report.b.label, 80),
                  body, json);
}

std::string run_html(const RunReport& report) {
  const std::array<NamedSide, 1> sides = {
      {{'A', &report.side, report.efficiency ? &*report.efficiency : nullptr}}};
  const std::string charts = loss_charts(sides, report.marks);
  const std::string body =
      header(report) +
      section("trajectory", "Training",
              (charts.empty() ? note("No training steps are recorded.") : charts) +
                  events_table(report.marks)) +
      scores_section(report) + audits_section(report) +
      metrics_section(report.side.run ? &*report.side.run : nullptr) + efficiency_section(sides) +
      provenance_section(sides) + command_section(report.command, report.version, sides);
  return document(clip(title_of(report.side), 120), body, json_text(run_json(report)));
}

nlohmann::ordered_json run_json(const RunReport& report) {
  nlohmann::ordered_json json = {{"schema", kRunSchema}};
  json.update(json_of(report.side));
  json["damage"] = damage_of(report);
  json["disagreement"] = report.side.disagreement;
  json["marks"] = json_list(report.marks);
  json["evaluations"] = json_list(report.evaluations);
  json["audits"] = json_list(report.audits);
  json["efficiency"] = json_or_null(report.efficiency);
  json["command"] = report.command;
  json["version"] = report.version;
  return json;
}

std::string run_markdown(const RunReport& report) {
  std::string out = "# " + markdown_text(title_of(report.side)) + "\n\n";
  for (const std::string& line : summary(report)) out += "- " + markdown_text(line) + "\n";
  for (const std::string& line : damage_of(report))
    out += "- damaged: " + markdown_text(line) + "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(report.marks.size(), kShownRows); ++i)
    out += "- " + markdown_text(report.marks[i].kind) + " at " + place_of(report.marks[i]) + ": " +
           markdown_text(report.marks[i].text) + "\n";
  return out + scores_markdown(report) + audits_markdown(report);
}

}  // namespace olmo::report
