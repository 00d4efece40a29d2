// What a run's checkpoints scored, and what its audits found.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/text/safe_text.h"
#include "page/chart.h"
#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

constexpr std::array<const char*, 6> kScoreColumns = {"Task", "Metric", "Step",
                                                      "n",    "Score",  "95 % interval"};
using ScoreRow = std::array<std::string, kScoreColumns.size()>;

ScoreRow row_of(const EvaluationScores& evaluation, const Score& score) {
  const auto& interval = score.interval95;
  return {score.task + (score.scope.empty() ? "" : ", " + score.scope),
          score.metric + (score.is_share ? ", %" : ""),
          evaluation.step ? count(*evaluation.step) : "–",
          count(score.n),
          score_text(score, score.value),
          interval ? score_text(score, interval->low) + " to " + score_text(score, interval->high)
                   : "–"};
}

/// The rows of one task stand together, by step: how it went along the run.
std::vector<ScoreRow> score_rows(const RunReport& report) {
  std::vector<std::array<std::string, 4>> names;  // of what has scores, in order
  std::vector<std::vector<ScoreRow>> groups;
  for (const EvaluationScores& evaluation : report.evaluations) {
    for (const Score& score : evaluation.scores) {
      const std::array<std::string, 4> name = {score.task, score.convention, score.scope,
                                               score.metric};
      const auto found = std::find(names.begin(), names.end(), name);
      const auto place = static_cast<std::size_t>(found - names.begin());
      if (found == names.end()) {
        names.push_back(name);
        groups.emplace_back();
      }
      groups[place].push_back(row_of(evaluation, score));
    }
  }
  std::vector<ScoreRow> rows;
  for (const auto& group : groups) rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

/// What one side's checkpoints scored in one metric, by step.
struct ScoreCurve {
  std::string title, unit;
  std::vector<std::vector<Bin>> of_side;
};

/// Of each score the steps at which it is known; those with one step alone are left to the table.
std::vector<ScoreCurve> score_curves(std::span<const ScoredSide> sides) {
  std::map<std::array<std::string, 4>, ScoreCurve> curves;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (const EvaluationScores& evaluation : sides[i].evaluations) {
      if (!evaluation.step) continue;
      for (const Score& score : evaluation.scores) {
        if (!std::isfinite(score.value)) continue;
        ScoreCurve& curve = curves[{score.task, score.scope, score.metric, score.convention}];
        curve.title = score.task + (score.scope.empty() ? "" : ", " + score.scope);
        curve.unit = score.is_share ? score.metric + ", %" : score.metric;
        curve.of_side.resize(sides.size());
        const double unit = score.is_share ? 100 : 1;
        const Interval range = score.interval95.value_or(Interval{score.value, score.value});
        std::vector<Bin>& bins = curve.of_side[i];
        const auto x = static_cast<double>(*evaluation.step);
        if (!bins.empty() && bins.back().x == x) bins.pop_back();  // the latest evaluation counts
        bins.push_back({x, unit * range.low, unit * score.value, unit * range.high, false});
      }
    }
  }
  std::vector<ScoreCurve> several;
  for (auto& [name, curve] : curves)
    if (std::any_of(curve.of_side.begin(), curve.of_side.end(),
                    [](const auto& bins) { return bins.size() > 1; }))
      several.push_back(std::move(curve));
  return several;
}

std::string score_chart(const ScoreCurve& curve, std::span<const ScoredSide> sides) {
  std::vector<double> steps, values;
  for (const auto& bins : curve.of_side) {
    for (const Bin& bin : bins) {
      steps.push_back(bin.x);
      values.insert(values.end(), {bin.low, bin.high});
    }
  }
  Axis x = axis_over(steps, Axis::Scale::kLinear, "step");
  x.counts = true;
  Chart chart(curve.title, "Scores with 95 % intervals by step.", x,
              axis_over(values, Axis::Scale::kLinear, curve.unit));
  for (std::size_t i = 0; i < sides.size(); ++i)
    chart.curve(curve.of_side[i], sides[i].look, {}, Spread::kBars);
  return chart.html();
}

/// Evaluations that did not finish or were altered, and tasks that have no scores.
std::vector<std::string> problems_of(const RunReport& report) {
  std::vector<std::string> problems;
  for (const EvaluationScores& evaluation : report.evaluations) {
    const std::string name = "Evaluation " + evaluation.evaluation_id;
    if (evaluation.status != "finished") problems.push_back(name + " is " + evaluation.status);
    if (!evaluation.damage.empty()) problems.push_back(name + " is damaged: no score is shown");
    for (const auto& problem : evaluation.problems) problems.push_back(name + ": " + problem);
  }
  return problems;
}

constexpr char kNotEvaluated[] = "No evaluation is recorded; `olmo-harness eval RUN` makes one.";
constexpr char kNotAudited[] =
    "No audit is recorded; `olmo-harness audit RUN --sample 2 --record` makes one.";

std::string steps_of(const AuditedStretch& audit) {
  return count(audit.first_step) + " to " + count(audit.last_step);
}

std::string markdown_row(const auto& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + markdown_text(cell) + " |";
  return line + "\n";
}

}  // namespace

Look side_look(char side) { return {side == 'B' ? "b" : "a", std::string(1, side)}; }

std::string score_text(const Score& score, double value) {
  return score.is_share ? fixed(100 * value, 2) : number(value, 5);
}

std::string score_charts(std::span<const ScoredSide> sides, std::size_t most, const char* heading) {
  const auto curves = score_curves(sides);
  if (curves.empty()) return {};
  std::string html;
  for (std::size_t i = 0; i < std::min(curves.size(), most); ++i)
    html += score_chart(curves[i], sides);
  html = element(heading, "", "Over the checkpoints") + "\n" + element("div", "grid2", html) + "\n";
  if (curves.size() > most)
    html += note("and " + count(static_cast<std::int64_t>(curves.size() - most)) +
                 " more scores; <code>--json</code> has them");
  if (sides.size() == 1) return html + note("Bars: 95 % intervals of each score.");
  return html +
         note(
             "Bars: 95 % intervals of each score by itself. All answer the same questions, so bars "
             "that overlap do not show that the scores agree; the intervals of the "
             "<i>difference</i> tell, which stand with the tests of a parity report.");
}

std::string scores_section(const RunReport& report) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < kScoreColumns.size(); ++i)
    columns.push_back({kScoreColumns.at(i), i >= 2});
  Table table(columns);
  for (const ScoreRow& row : score_rows(report)) {
    std::vector<std::string> cells;
    for (const auto& cell : row) cells.push_back(shown(cell, 120));
    table.row(cells);
  }
  const auto problems = problems_of(report);
  std::string html = table.empty() ? "" : table.html() + note(kAboutScores);
  const std::array<ScoredSide, 1> sides = {{{side_look('A'), report.evaluations}}};
  html += score_charts(sides);
  if (report.evaluations.empty())
    return empty_section("scores", "Evaluations", escape(kNotEvaluated));
  if (!problems.empty()) html += "<h3>Without scores</h3>\n" + list_of(problems);
  return section("scores", "Evaluations", html);
}

std::string audits_section(const RunReport& report) {
  Table table({{"Steps", false}, {"On", false}, {"Result", false}});
  for (const AuditedStretch& audit : report.audits)
    table.row({steps_of(audit), shown(audit.machine, 200), shown(audit_result(audit), 200)});
  if (table.empty()) return empty_section("audits", "Audits", escape(kNotAudited));
  return section("audits", "Audits",
                 table.html() + note("Steps that were trained again and compared "
                                     "with the record."));
}

std::string scores_markdown(const RunReport& report) {
  std::string out = "\n## Evaluations\n\n";
  if (report.evaluations.empty()) return out + kNotEvaluated + "\n";
  const auto rows = score_rows(report);
  if (!rows.empty()) {
    out += markdown_row(kScoreColumns) + "|---|---|---:|---:|---:|---:|\n";
    for (std::size_t i = 0; i < std::min(rows.size(), kShownRows); ++i)
      out += markdown_row(rows[i]);
    if (rows.size() > kShownRows)
      out += "\n" + count(static_cast<std::int64_t>(rows.size() - kShownRows)) + " more\n";
    out += "\n" + std::string(kAboutScores) + "\n";
  }
  for (const auto& problem : problems_of(report)) out += "\n- " + markdown_text(problem);
  return out + (out.back() == '\n' ? "" : "\n");
}

std::string audits_markdown(const RunReport& report) {
  std::string out = "\n## Audits\n\n";
  if (report.audits.empty()) return out + kNotAudited + "\n";
  for (const AuditedStretch& audit : report.audits)
    out += "- steps " + steps_of(audit) + ": " + markdown_text(audit_result(audit)) +
           (audit.machine.empty() ? "" : ", on " + markdown_text(audit.machine)) + "\n";
  return out;
}

}  // namespace olmo::report::page
