// Tasks and perplexity.
#include <algorithm>
#include <array>
#include <cmath>

#include "page/chart.h"
#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

constexpr std::size_t kShownOptions = 10;

Interval in_points(const Interval& interval) { return {100 * interval.low, 100 * interval.high}; }

std::string points_interval(const Interval& interval) {
  return "[" + points(interval.low) + ", " + points(interval.high) + "]";
}

std::string certified_text(bool certified) {
  return certified ? "<b class=\"ok\">✓</b> yes" : "no";
}

std::string problems(const std::vector<std::string>& invalid,
                     const std::vector<std::string>& mismatched) {
  std::string html;
  if (!invalid.empty()) html += "<h3 class=\"bad\">Missing or unequal</h3>\n" + list_of(invalid);
  if (!mismatched.empty())
    html += "<h3 class=\"bad\">Not the same question</h3>\n" + list_of(mismatched);
  return html;
}

std::string tasks_forest(const TasksComparison& tasks) {
  std::vector<ForestRow> rows;
  for (const TaskComparison& task : tasks.tasks) {
    ForestRow row;
    row.name = task.task;
    row.estimate = 100 * task.difference;
    row.interval95 = in_points(task.interval95);
    row.interval90 = in_points(task.equivalence.interval);
    row.margin = 100 * task.equivalence.margin;
    row.certified = task.equivalence.certified;
    row.value = points(task.difference) + " pp";
    row.remark = "n " + count(task.n) + ", flips " + count(task.flips);
    rows.push_back(row);
  }
  if (tasks.macro) {
    const MacroComparison& macro = *tasks.macro;
    rows.push_back({"macro average", 100 * macro.difference, in_points(macro.interval95),
                    in_points(macro.equivalence.interval), 100 * macro.equivalence.margin,
                    macro.equivalence.certified, true, points(macro.difference) + " pp",
                    count(static_cast<std::int64_t>(tasks.tasks.size())) + " tasks"});
  }
  return forest("Accuracy, B minus A", "percentage points; right of 0, B is better", rows);
}

std::string tasks_table(const TasksComparison& tasks) {
  Table table({{"Task", false},
               {"A", true},
               {"B", true},
               {"B − A, pp", true},
               {"95 % interval", true},
               {"p, Holm", true},
               {"± margin", true},
               {"Certified", false},
               {"Detectable", true},
               {"n needed", true}});
  for (const TaskComparison& task : tasks.tasks)
    table.row(
        {shown(task.task, 80) + "<br><span class=\"note\">" + shown(task.metric, 40) + "</span>",
         percent(task.accuracy_a), percent(task.accuracy_b), points(task.difference),
         points_interval(task.interval95), p_value(task.holm_p),
         fixed(100 * task.equivalence.margin, 2), certified_text(task.equivalence.certified),
         fixed(100 * task.detectable, 2), count(task.needed_n)});
  if (tasks.macro)
    table.row({"macro average", percent(tasks.macro->accuracy_a), percent(tasks.macro->accuracy_b),
               points(tasks.macro->difference), points_interval(tasks.macro->interval95), "–",
               fixed(100 * tasks.macro->equivalence.margin, 2),
               certified_text(tasks.macro->equivalence.certified), "–", "–"},
              "sum");
  return table.html() +
         note(
             "p: exact mid-p McNemar test, Holm over all tasks. Certified: the 90 % interval lies "
             "inside ± margin; that all tasks are equivalent at once has p " +
             p_value(tasks.all_pass_p) +
             ". Detectable: the smallest difference, in percentage points, found with power 0.8. n "
             "needed: instances to certify the margin at the discordance seen.");
}

std::string pairs_table(const TasksComparison& tasks) {
  Table table({{"Task", false},
               {"Both right", true},
               {"Only A", true},
               {"Only B", true},
               {"Both wrong", true},
               {"p, McNemar", true},
               {"Flips", true},
               {"Explained", true}});
  Table scores({{"Task", false},
                {"Options", true},
                {"Same bits", true},
                {"Mean, nats", true},
                {"|Median|", true},
                {"99.9 %", true},
                {"Largest", true},
                {"KL, nats", true}});
  for (const TaskComparison& task : tasks.tasks) {
    const PairedCounts& c = task.counts;
    table.row({shown(task.task, 80), count(c.both_right), count(c.only_a_right),
               count(c.only_b_right), count(c.both_wrong), p_value(task.p), count(task.flips),
               count(task.explained_flips)});
    const ScoreAgreement& s = task.agreement;
    scores.row({shown(task.task, 80), count(s.options), count(s.equal_bits),
                signed_number(s.mean, 3), number(s.median, 3), number(s.quantile999, 3),
                number(s.largest, 3), number(s.divergence, 3)});
  }
  return folded("Right and wrong answers in pairs", table.html()) +
         folded(
             "Agreement of the options’ log-likelihoods",
             scores.html() +
                 note("Differences B − A of the options’ log-likelihoods: their mean, and median, "
                      "99.9 % quantile and largest of their sizes. KL: divergence of the choice "
                      "among an instance’s options, mean."));
}

std::string logprobs_text(const std::vector<double>& logprobs, std::int64_t chosen,
                          std::int64_t label) {
  std::string html;
  for (std::size_t i = 0; i < std::min(logprobs.size(), kShownOptions); ++i) {
    const auto option = static_cast<std::int64_t>(i);
    const std::string value = fixed(logprobs[i], 4) + (option == label ? "*" : "");
    html += (i == 0 ? "" : " &ensp;") + (option == chosen ? element("b", "", value) : value);
  }
  return html + (logprobs.size() > kShownOptions ? " …" : "");
}

/// What was asked: its last line, and the whole folded behind it.
std::string asked(const Flip& flip) {
  constexpr std::size_t kLongest = 1200;
  if (flip.context.empty() && flip.continuations.empty()) return "–";
  const std::size_t from = flip.context.size() > kLongest ? flip.context.size() - kLongest : 0;
  const std::string end = (from > 0 ? "…" : "") + flip.context.substr(from);
  const std::size_t line = flip.context.find_last_of('\n', flip.context.find_last_of('\n') - 1);
  std::string options;
  for (std::size_t i = 0; i < std::min(flip.continuations.size(), kShownOptions); ++i)
    options += element("li", "",
                       shown(flip.continuations[i], 300) +
                           (static_cast<std::int64_t>(i) == flip.label ? " *" : ""));
  return folded(shown(flip.context.substr(line == std::string::npos ? 0 : line + 1), 120),
                element("pre", "", escape(end)) + element("ol", "", options));
}

std::string flips_table(const TasksComparison& tasks) {
  if (tasks.all_flips == 0) return paragraph("Both sides chose the same option everywhere.");
  std::string html = paragraph(count(tasks.all_explained) + " of " + count(tasks.all_flips) +
                               " flips are explained by margins within the noise (" +
                               number(tasks.noise, 3) + "). " + shown(tasks.noise_source));
  Table table({{"Task", false},
               {"Instance", true},
               {"Asked", false},
               {"A", false},
               {"B", false},
               {"Margins", false},
               {"Explained", false}});
  for (const Flip& flip : tasks.flips)
    table.row({shown(flip.task, 80), count(flip.doc_id), asked(flip),
               logprobs_text(flip.logprobs_a, flip.chosen_a, flip.label),
               logprobs_text(flip.logprobs_b, flip.chosen_b, flip.label),
               number(flip.margin_a, 3) + " / " + number(flip.margin_b, 3),
               flip.explained ? "yes" : "<b class=\"warn\">no</b>"});
  if (table.empty()) return html;
  return html + folded("Flips, unexplained ones first (" +
                           count(static_cast<std::int64_t>(tasks.flips.size())) + " listed)",
                       table.html() + note("Log-likelihoods of the options in nats; bold: chosen; "
                                           "*: the right answer. What was asked is made again "
                                           "from the task’s data (<code>--data</code>), as records "
                                           "hold no texts."));
}

std::string source_name(const SourceComparison& source) {
  return source.source.empty() ? source.suite + ", macro" : source.suite + " / " + source.source;
}

std::string sources_forest(const PerplexityComparison& perplexity) {
  std::vector<ForestRow> rows;
  for (const SourceComparison& source : perplexity.sources) {
    ForestRow row;
    row.name = source_name(source);
    row.estimate = source.difference;
    row.interval95 = source.interval95;
    row.summary = source.source.empty();
    row.value = signed_number(source.difference, 3);
    row.remark = count(source.documents) + " documents";
    if (source.unit != kBitsPerByte) row.remark += ", " + source.unit;
    if (source.equivalence) {
      row.interval90 = source.equivalence->interval;
      row.margin = source.equivalence->margin;
      row.certified = source.equivalence->certified;
    }
    rows.push_back(row);
  }
  const bool per_byte =
      std::all_of(perplexity.sources.begin(), perplexity.sources.end(),
                  [](const SourceComparison& source) { return source.unit == kBitsPerByte; });
  const std::string either = per_byte ? "" : " or token";
  return forest("Bits per byte" + either + ", B minus A",
                kBitsPerByte + either + "; left of 0, B is better", rows);
}

std::string sources_table(const PerplexityComparison& perplexity) {
  Table table({{"Source", false},
               {"Documents", true},
               {"Bytes", true},
               {"A", true},
               {"B", true},
               {"B − A", true},
               {"95 % interval", true},
               {"p, Holm", true},
               {"Certified", false},
               {"Same bits", true}});
  for (const SourceComparison& s : perplexity.sources)
    table.row(
        {shown(source_name(s), 120) + "<br><span class=\"note\">" + shown(s.unit, 40) + "</span>",
         count(s.documents), count(s.bytes), number(s.bpb_a, 6), number(s.bpb_b, 6),
         signed_number(s.difference),
         s.interval95 ? interval_text(*s.interval95) : absent("too few documents"),
         p_value(s.holm_p), s.equivalence ? certified_text(s.equivalence->certified) : absent(),
         count(s.equal_bits)},
        s.source.empty() ? "sum" : "");
  return table.html() + note(
                            "Paired bootstrap by document. Same bits: documents whose negative "
                            "log-likelihood is the same number on both sides.");
}

}  // namespace

std::string tasks_section(const ParityReport& report) {
  const std::array<ScoredSide, 2> sides = {
      {{side_look('A'), report.scores_a}, {side_look('B'), report.scores_b}}};
  const std::string charts = score_charts(sides);
  if (!report.tasks)
    return charts.empty() ? empty_section("tasks", "Tasks", "No evaluation of tasks on both sides.")
                          : section("tasks", "Tasks", charts);
  const TasksComparison& tasks = *report.tasks;
  std::string html = problems(tasks.invalid, tasks.mismatched);
  if (!tasks.tasks.empty())
    html += tasks_forest(tasks) + tasks_table(tasks) + pairs_table(tasks) + charts +
            "<h3>Flips</h3>\n" + flips_table(tasks);
  if (html.empty()) html = note("No task was evaluated on both sides.");
  return section("tasks", "Tasks", html);
}

std::string perplexity_section(const ParityReport& report) {
  if (!report.perplexity ||
      (report.perplexity->sources.empty() && report.perplexity->invalid.empty() &&
       report.perplexity->mismatched.empty()))
    return empty_section("perplexity", "Bits per byte", "No text was evaluated on both sides.");
  const PerplexityComparison& perplexity = *report.perplexity;
  std::string html = problems(perplexity.invalid, perplexity.mismatched);
  if (!perplexity.sources.empty()) html += sources_forest(perplexity) + sources_table(perplexity);
  return section("perplexity", "Bits per byte", html);
}

}  // namespace olmo::report::page
