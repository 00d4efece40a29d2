#include "cli/screen/watch_frame.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "cli/interface/help.h"
#include "cli/screen/watch_table.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "page/html.h"

namespace olmo::cli {
namespace {

using monitor::FollowedRun;
using monitor::RunView;

constexpr std::size_t kTwoChartsColumns = 100;
constexpr std::size_t kEventLines = 4;
constexpr std::size_t kEvaluationLines = 3;
constexpr std::size_t kSentenceLines = 3;  // of what went wrong, which a line may not hold
constexpr std::size_t kChartRows = 10;     // that facts leave to charts
constexpr char kSeparator[] = " · ";

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::string number_or_none(const std::optional<double>& value) {
  return value ? page::number(*value, 4) : "";
}

/// "step 120 of 1,000 (12 %)"; of an import without steps its tokens.
std::string progress_of(const RunView& view) {
  if (!view.last) return "no step yet";
  const auto of = view.run.max_steps;
  std::string text = "step " + page::count(view.last->step);
  if (of > 0)
    text += " of " + page::count(of) + " (" + page::done_percent(view.last->step, of) + ")";
  return text;
}

/// The numbers of the last step, the most important first.
Lines numbers_of(const RunView& view) {
  Lines parts;
  if (!view.last) return parts;
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) parts.push_back(what + value);
  };
  parts.push_back("loss " + (view.last->loss ? page::number(*view.last->loss, 5) : "not finite"));
  add("gradient norm ", number_or_none(view.last->grad_norm));
  add("lr ", number_or_none(view.last->lr));
  if (view.last->tokens_per_second)
    parts.push_back(format_token_rate(*view.last->tokens_per_second));
  if (view.last->mfu) parts.push_back("MFU " + page::percent(*view.last->mfu));
  return parts;
}

/// As many parts as fit, from the first.
std::string fitting(const Lines& parts, std::size_t columns) {
  std::string line;
  for (const auto& part : parts) {
    const std::string longer = line + (line.empty() ? "" : kSeparator) + safe_line(part);
    if (!line.empty() && display_width(longer) > columns) break;
    line = longer;
  }
  return shortened(line, columns);
}

/// The parts in as many lines as they take, at most `most`, which then ends with how many are left.
Lines filled(const Lines& parts, std::size_t columns, std::size_t most) {
  Lines lines;
  std::size_t i = 0;
  while (i < parts.size() && lines.size() < most) {
    std::string line = safe_line(parts[i++]);
    for (; i < parts.size(); ++i) {
      const std::string longer = line + kSeparator + safe_line(parts[i]);
      if (display_width(longer) > columns) break;
      line = longer;
    }
    lines.push_back(shortened(line, columns));
  }
  if (i < parts.size() && !lines.empty()) {
    const std::string more = kSeparator + ("and " + std::to_string(parts.size() - i) + " more");
    lines.back() = shortened(lines.back(), columns - std::min(columns, display_width(more))) + more;
  }
  return lines;
}

/// A sentence in as few lines as it takes.
Lines sentence_lines(const std::string& sentence, std::size_t columns) {
  Lines lines;
  std::istringstream text(wrapped(safe_line(sentence), columns, 0));
  for (std::string line; std::getline(text, line);) lines.push_back(shortened(line, columns));
  if (lines.size() > kSentenceLines) {
    lines.resize(kSentenceLines);
    lines.back() = shortened(lines.back(), columns - std::min<std::size_t>(columns, 1)) + "…";
  }
  return lines;
}

Lines head_of(const FollowedRun& run, const FrameOptions& options) {
  Lines name = {name_of(run) + "  " + state_of(run)};
  if (run.name() != name_of(run)) name.push_back(run.name());
  Lines lines = {fitting(name, options.columns)};
  if (!run.problem().empty()) append(lines, sentence_lines(run.problem(), options.columns));
  if (!run.view()) return lines;
  const RunView& view = *run.view();
  Lines progress = {progress_of(view)};
  if (view.last && view.last->tokens)
    progress.push_back(page::compact(static_cast<double>(*view.last->tokens)) + " tokens");
  if (view.eta_seconds)
    progress.push_back("eta " + format_duration(*view.eta_seconds) + " at " +
                       page::number(*view.seconds_per_step, 3) + " s a step");
  if (view.attempts > 1 && !view.line.imported)
    progress.push_back(counted(view.attempts, "attempt"));
  if (!run.curves().is_whole()) progress.push_back("curves are being read");
  lines.push_back(fitting(progress, options.columns));
  if (view.last) lines.push_back(fitting(numbers_of(view), options.columns));
  if (!view.reason.empty()) append(lines, sentence_lines(view.reason, options.columns));
  return lines;
}

/// What one chart shows: a quantity of every run, or the difference of two.
struct ChartOf {
  std::string title;
  std::vector<page::TerminalCurve> curves;
  bool is_loss = false;
};

std::vector<ChartOf> charts_of(Runs runs) {
  std::vector<ChartOf> charts;
  const Lines labels = labels_of(runs);
  for (std::size_t i = 0; i < std::size(monitor::kDrawn); ++i) {
    ChartOf chart{.title = monitor::kDrawn[i].title, .curves = {}, .is_loss = i == 0};
    bool any = false;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      chart.curves.push_back({runs.size() > 1 ? labels[k] : "", runs[k]->curves().curve(i)});
      any = any || !chart.curves.back().bins.empty();
    }
    if (any) charts.push_back(std::move(chart));
  }
  if (runs.size() == 2 && !charts.empty()) {
    auto difference = monitor::difference(runs[0]->curves().bins(), runs[1]->curves().bins(), 0);
    if (!difference.empty())
      charts.insert(charts.begin() + 1, ChartOf{.title = "loss, second minus first",
                                                .curves = {{"", std::move(difference)}},
                                                .is_loss = false});
  }
  return charts;
}

Lines draw(const ChartOf& chart, std::size_t columns, std::size_t rows,
           const FrameOptions& options) {
  using Scale = page::Axis::Scale;
  std::vector<double> x, y;
  for (const auto& curve : chart.curves) {
    for (const auto& bin : curve.bins) {
      x.push_back(bin.x);
      y.push_back(bin.mean);
    }
  }
  page::Axis across =
      page::axis_over(x, options.log_steps ? Scale::kLog : Scale::kLinear, "step", false);
  across.counts = true;
  page::Axis up =
      page::axis_over(y, options.log_values && chart.is_loss ? Scale::kLog : Scale::kLinear, "");
  up.counts = std::ranges::any_of(y, [](double value) { return value >= 10'000; });
  return page::terminal_chart(chart.title, across, up, chart.curves, columns, rows, options.ink);
}

/// Charts in `rows` lines: two beside each other where there is room; those that find none are left
/// out.
Lines chart_lines(Runs runs, std::size_t rows, const FrameOptions& options) {
  auto charts = charts_of(runs);
  if (charts.empty()) return {};  // no step yet
  const std::size_t beside = options.columns >= kTwoChartsColumns ? 2 : 1;
  const std::size_t gap = 2, width = (options.columns - gap * (beside - 1)) / beside;
  const std::size_t least = page::kLeastChartRows + 1;
  if (rows < page::kLeastChartRows || width < page::kLeastChartColumns) return {};
  const std::size_t wanted = (charts.size() + beside - 1) / beside;
  const std::size_t bands = std::clamp<std::size_t>(rows / least, 1, wanted);
  charts.resize(std::min(charts.size(), bands * beside));
  Lines lines;
  for (std::size_t band = 0; band < bands; ++band) {
    // The first bands get the lines that are left over.
    const std::size_t height = rows / bands + (band < rows % bands ? 1 : 0);
    Lines row = draw(charts[band * beside], width, height, options);
    if (beside == 2 && band * beside + 1 < charts.size()) {
      const Lines right = draw(charts[band * beside + 1], width, height, options);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += std::string(gap, ' ') + right[i];
    }
    append(lines, row);
  }
  return lines;
}

/// The newest value of each task; the step once where it is that of all.
Lines evaluation_parts(const std::vector<store::EvaluationPoint>& points) {
  Lines parts;
  const bool one_step = std::ranges::all_of(
      points, [&](const auto& point) { return point.step == points.front().step; });
  const auto place = [](const store::EvaluationPoint& point) {
    return point.step ? "at step " + page::count(*point.step) : std::string();
  };
  for (const auto& point : points) {
    std::string text = point.task + " " + point.metric + " " + page::number(point.value, 4);
    if (!one_step && point.step) text += " " + place(point);
    parts.push_back(text);
  }
  if (one_step && !points.empty() && points.front().step)
    parts.insert(parts.begin(), place(points.front()));
  return parts;
}

std::string energy_text(const monitor::EnergySum& sum) {
  std::string text = sum.covers + " " + page::compact(sum.joules) + " J";
  if (sum.watts) text += " (" + page::number(*sum.watts, 3) + " W)";
  return text;
}

/// Evaluations, checkpoints, energy, ranks, events: a line each, where there are some, at most
/// `rows`. Of the events the newest are shown.
Lines facts_of(const RunView& view, std::size_t rows, const FrameOptions& options) {
  Lines lines;
  constexpr std::size_t kIndent = 13;
  const std::size_t columns = options.columns - std::min(options.columns, kIndent);
  const auto add = [&](const char* what, const Lines& parts) {
    if (!parts.empty()) lines.push_back(page::padded(what, kIndent) + fitting(parts, columns));
  };
  for (const auto& line : filled(evaluation_parts(view.evaluations), columns, kEvaluationLines))
    add(lines.empty() ? "evaluations" : "", {line});
  if (!view.checkpoints.empty()) {
    const auto& last = view.checkpoints.back();
    add("checkpoints",
        {std::to_string(view.checkpoints.size()) + " kept, last at step " + page::count(last.step),
         format_bytes(static_cast<double>(last.bytes)), last.path});
  }
  Lines parts;
  for (const auto& sum : monitor::energy_sums(view.energy)) parts.push_back(energy_text(sum));
  add("energy", parts);
  if (const auto slowest = monitor::slowest_of(view.ranks)) {
    std::set<std::string> hosts;
    for (const auto& rank : view.ranks) hosts.insert(rank.host);
    add("ranks",
        {std::to_string(view.ranks.size()) + " on " +
             counted(static_cast<std::int64_t>(hosts.size()), "host"),
         "rank " + std::to_string(slowest->rank) + " (" + slowest->host + ") was the slowest in " +
             page::count(slowest->slowest_steps) + " of " + counted(slowest->steps, "step")});
  }
  lines.resize(std::min(lines.size(), rows));
  const std::size_t shown = std::min({view.events.size(), kEventLines, rows - lines.size()});
  for (std::size_t i = view.events.size() - shown; i < view.events.size(); ++i) {
    const auto& event = view.events[i];
    // 2026-01-31T23:59:59.123Z
    const std::string time = event.utc.size() >= 19 ? event.utc.substr(11, 8) : event.utc;
    add(i == view.events.size() - shown ? "events (UTC)" : "",
        {time + " step " + page::count(event.step) + " " + event.kind + ": " + event.message});
  }
  return lines;
}

std::string keys_of(std::size_t runs, const FrameOptions& options) {
  Lines keys = {options.paused ? "paused, space goes on" : "q quits", "l log loss", "x log steps"};
  if (!options.paused) keys.emplace_back("space pauses");
  if (runs > 1) keys.emplace_back("left, right: one run");
  return fitting(keys, options.columns);
}

}  // namespace

Lines watch_frame(std::span<const FollowedRun> all, const FrameOptions& options) {
  std::vector<const FollowedRun*> runs;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (options.selected == 0 || options.selected == i + 1) runs.push_back(&all[i]);
  Lines lines, facts;
  if (runs.size() == 1) {
    lines = head_of(*runs[0], options);
  } else if (runs.size() == 2) {
    auto comparison = comparison_of(runs, options.columns);
    lines = std::move(comparison.numbers);
    facts = std::move(comparison.evaluations);
  } else {
    lines = table_of(runs, options.columns);
  }
  if (runs.size() > 1) {
    for (const FollowedRun* run : runs) {
      if (!run->problem().empty()) append(lines, sentence_lines(run->problem(), options.columns));
    }
  }
  const std::size_t footer = options.keys ? 1 : 0;
  const std::size_t room = options.rows - std::min(options.rows, footer);
  // Where the terminal is low, curves go before facts.
  const std::size_t left = room - std::min(room, lines.size() + kChartRows);
  if (runs.size() == 1 && runs[0]->view()) facts = facts_of(*runs[0]->view(), left, options);
  if (facts.size() > left) {  // the evaluations of two runs
    const std::size_t more = facts.size() - left + 1;
    facts.resize(left);
    if (left > 0) facts.back() = "and " + counted(static_cast<std::int64_t>(more), "evaluation");
  }
  const bool any =
      std::ranges::any_of(runs, [](const auto* run) { return run->view().has_value(); });
  if (any && lines.size() + facts.size() < room)
    append(lines, chart_lines(runs, room - lines.size() - facts.size(), options));
  append(lines, facts);
  lines.resize(std::min(lines.size(), room));
  if (options.keys) {
    lines.resize(room);
    lines.push_back(keys_of(all.size(), options));
  }
  for (auto& line : lines) line = page::in_ink(line, options.ink);
  return lines;
}

std::string watch_line(const FollowedRun& run) {
  Lines parts = {name_of(run) + "  " + state_of(run)};
  if (!run.problem().empty()) parts.push_back(run.problem());
  if (run.view() && run.problem().empty()) {
    parts.push_back(progress_of(*run.view()));
    const auto numbers = numbers_of(*run.view());
    parts.insert(parts.end(), numbers.begin(), numbers.end());
    if (run.view()->eta_seconds)
      parts.push_back("eta " + format_duration(*run.view()->eta_seconds));
  }
  std::string line;
  for (const auto& part : parts) line += (line.empty() ? "" : " | ") + safe_line(part);
  return line;
}

}  // namespace olmo::cli
