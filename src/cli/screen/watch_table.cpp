#include "cli/screen/watch_table.h"

#include <set>
#include <sstream>

#include "cli/screen/table.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "page/html.h"

namespace olmo::cli {
namespace {

using monitor::FollowedRun;
using monitor::RunView;
using Rows = std::vector<Lines>;

Lines table_lines(const TextTable& table, std::size_t columns) {
  Lines lines;
  std::istringstream text(table.text(columns));
  for (std::string line; std::getline(text, line);) lines.push_back(shortened(line, columns));
  return lines;
}

/// For a cell, which TextTable then sets flush right.
std::string cell_of(const std::optional<double>& value) {
  return value ? page::short_number(*value) : "";
}

/// Each step has a loss, be it no number.
std::string loss_cell(const RunView& view) {
  if (!view.last) return "";
  return view.last->loss ? page::short_number(*view.last->loss) : "not finite";
}

/// "120 of 1,000".
std::string steps_of(const RunView& view) {
  if (!view.last) return "none yet";
  return page::count(view.last->step) +
         (view.run.max_steps > 0 ? " of " + page::count(view.run.max_steps) : "");
}

void add_numbers(TextTable& table, const FollowedRun& a, const FollowedRun& b) {
  const auto last = [](const FollowedRun& run) {
    return run.view()->last.value_or(monitor::LastStep{});
  };
  const auto at_a = last(a), at_b = last(b);
  const auto row = [&](const char* what, const std::optional<double>& left,
                       const std::optional<double>& right, const std::string& difference = "") {
    if (left || right) table.add({what, cell_of(left), cell_of(right), difference});
  };
  table.add({"step", steps_of(*a.view()), steps_of(*b.view()), ""});
  const auto differences = monitor::difference(a.curves().bins(), b.curves().bins(), 0);
  std::string difference, faster;
  if (!differences.empty())
    difference = page::signed_number(differences.back().mean, 3) + " at step " +
                 page::count(static_cast<std::int64_t>(differences.back().x));
  if (at_a.tokens_per_second && at_b.tokens_per_second && *at_a.tokens_per_second > 0)
    faster = page::signed_number(100 * (*at_b.tokens_per_second / *at_a.tokens_per_second - 1), 3) +
             " %";
  table.add({"loss", loss_cell(*a.view()), loss_cell(*b.view()), difference});
  row("gradient norm", at_a.grad_norm, at_b.grad_norm);
  row("learning rate", at_a.lr, at_b.lr);
  row("tokens/s", at_a.tokens_per_second, at_b.tokens_per_second, faster);
}

/// Tasks on which both were evaluated: rows of the table of numbers.
Rows evaluation_rows(const RunView& a, const RunView& b) {
  Rows rows;
  for (const auto& left : a.evaluations) {
    for (const auto& right : b.evaluations) {
      if (left.task != right.task || left.metric != right.metric) continue;
      rows.push_back({safe_line(left.task + " " + left.metric), cell_of(left.value),
                      cell_of(right.value),
                      left.step == right.step ? page::signed_number(right.value - left.value, 3)
                                              : "of other steps"});
    }
  }
  return rows;
}

/// One line each where a table has no room: the numbers first, which must not be cut.
Lines lines_of(const Rows& rows, std::size_t columns) {
  Lines lines;
  for (const auto& row : rows)
    lines.push_back(shortened(row[1] + ", " + row[2] + " (" + row[3] + ") " + row[0], columns));
  return lines;
}

}  // namespace

std::string name_of(const FollowedRun& run) {
  return safe_line(run.view() ? run.view()->run.name : run.name());
}

Lines labels_of(Runs runs) {
  Lines labels;
  std::set<std::string> different;
  for (const FollowedRun* run : runs) {
    labels.push_back(name_of(*run));
    different.insert(labels.back());
  }
  if (different.size() < runs.size())
    for (std::size_t i = 0; i < runs.size(); ++i) labels[i] = safe_line(runs[i]->name());
  return labels;
}

std::string state_of(const FollowedRun& run) {
  if (!run.problem().empty()) return run.view() ? "not readable now" : "waiting";
  // A narrow terminal cuts the end.
  return (run.mark().empty() ? "" : run.mark() + ", ") + run.view()->state;
}

Lines table_of(Runs runs, std::size_t columns) {
  const Lines labels = labels_of(runs);
  TextTable table(
      {"run", "state", "step", "of", "loss", "grad norm", "lr", "tokens/s", "MFU", "eta"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const FollowedRun* run = runs[i];
    if (!run->view()) {
      table.add({labels[i], state_of(*run), "", "", "", "", "", "", "", ""});
      continue;
    }
    const RunView& view = *run->view();
    const auto last = view.last.value_or(monitor::LastStep{});
    table.add({labels[i], state_of(*run), view.last ? std::to_string(last.step) : "",
               view.run.max_steps > 0 ? std::to_string(view.run.max_steps) : "", loss_cell(view),
               cell_of(last.grad_norm), cell_of(last.lr), cell_of(last.tokens_per_second),
               last.mfu ? page::percent(*last.mfu) : "",
               view.eta_seconds ? format_duration(*view.eta_seconds) : ""});
  }
  return table_lines(table, columns);
}

Comparison comparison_of(Runs runs, std::size_t columns) {
  const FollowedRun &a = *runs[0], &b = *runs[1];
  const Lines labels = labels_of(runs);
  TextTable table({"", labels[0], labels[1], "second minus first"});
  table.add({"state", state_of(a), state_of(b), ""});
  const bool both = a.view() && b.view();
  if (both) add_numbers(table, a, b);
  Comparison comparison{.numbers = table_lines(table, columns), .evaluations = {}};
  if (!both) return comparison;
  const Rows evaluations = evaluation_rows(*a.view(), *b.view());
  for (const auto& row : evaluations) table.add(row);
  // A table that finds no room beside itself goes on below, and is not cut by its lines.
  auto all = table_lines(table, columns);
  if (all.size() != table.rows()) {
    comparison.evaluations = lines_of(evaluations, columns);
    return comparison;
  }
  const auto first = all.end() - std::ssize(evaluations);
  comparison.numbers.assign(all.begin(), first);
  comparison.evaluations.assign(first, all.end());
  return comparison;
}

}  // namespace olmo::cli
