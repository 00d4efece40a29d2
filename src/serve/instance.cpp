#include "serve/instance.h"

#include <algorithm>

#include "core/error.h"
#include "eval/asked.h"
#include "eval/scoring.h"
#include "page/html.h"
#include "serve/curve_data.h"
#include "serve/routes.h"

namespace olmo::serve {
namespace {

using page::escape;

/// A prompt may be as long as a model's context.
constexpr std::size_t kPromptBytes = 60'000;

std::string verbatim(const std::string& text) {
  return "<pre class=\"prompt\" dir=\"auto\">" + page::shown(text, kPromptBytes) + "</pre>\n";
}

/// The prompt once, where all continuations share it.
std::string prompt_html(const eval::Example& example) {
  const auto& first = example.options.front().context;
  const bool shared = std::all_of(example.options.begin(), example.options.end(),
                                  [&](const auto& option) { return option.context == first; });
  if (shared) return "<h2>Prompt</h2>\n" + verbatim(first);
  std::string html = "<h2>Prompts</h2>\n";
  for (std::size_t i = 0; i < example.options.size(); ++i)
    html += "<h3>of continuation " + std::to_string(i) + "</h3>\n" +
            verbatim(example.options[i].context);
  return html;
}

std::string score_cell(const eval::MetricDefinition& metric, const OptionRow& row) {
  try {
    const auto value = eval::find_score(metric.score).of(row);
    return value ? page::number(*value, 5) : "–";
  } catch (const Error&) {
    return "–";  // a score of a newer version
  }
}

std::string scores_table(const ScoredTask& task, const std::vector<OptionRow>& rows,
                         const eval::Example* example) {
  std::vector<page::Column> columns = {{"Continuation", false},
                                       {"", false},
                                       {"Rank", true},
                                       {"Margin", true},
                                       {"Log-likelihood, nats", true}};
  for (const auto& metric : task.metrics) columns.push_back({page::clip(metric.name, 40), true});
  for (const char* title : {"Tokens", "Bytes", "Prompt tokens", "Cut from the prompt"})
    columns.push_back({title, true});
  columns.push_back({"Greedy", false});
  page::Table table(columns);
  for (const OptionRow& row : rows) {
    const auto index = static_cast<std::size_t>(row.cont_id);
    const bool known = example != nullptr && index < example->options.size();
    std::vector<std::string> cells = {
        known ? "<span dir=\"auto\">" + page::shown(example->options[index].continuation, 4000) +
                    "</span>"
              : "option " + std::to_string(row.cont_id),
        std::string(row.cont_id == row.label ? "<b class=\"good\">right</b>" : "") +
            (row.rank == 1 ? " <b>chosen</b>" : ""),
        page::count(row.rank), page::number(row.margin, 4), page::number(row.logprob, 6)};
    for (const auto& metric : task.metrics) cells.push_back(score_cell(metric, row));
    for (const auto value : {row.cont_tokens, row.cont_bytes, row.ctx_tokens, row.truncated_tokens})
      cells.push_back(page::count(value));
    cells.emplace_back(row.is_greedy ? "yes" : "no");
    table.row(cells, row.cont_id == row.label ? "differs" : "");
  }
  return table.html();
}

/// What kept the texts back; empty: nothing.
std::string why_no_text(const InstanceTexts::Found& texts, const eval::Example* example,
                        const std::vector<OptionRow>& rows) {
  if (!texts.task) return texts.problem;
  if (example == nullptr) return "the data have no such instance";
  if (!eval::was_asked(*example, rows))
    return "it was another text when it was evaluated: data or definition of the task have changed "
           "since";
  return "";
}

std::string neighbour(const Request& request, std::int64_t doc, const char* text) {
  return "<a href=\"" +
         escape(task_address("/instance", request, {{"doc", {std::to_string(doc)}}})) + "\">" +
         text + "</a>";
}

}  // namespace

Response instance_page(Catalog& catalog, InstanceTexts& known, const Request& request) {
  const ScoredTask a = asked_task(catalog, request);
  const auto b = other_task(catalog, request);
  const auto doc = number_of(request, "doc", 0);
  const auto rows = a.rows(doc);
  if (rows.empty())
    throw NotFound("The task " + a.record.task + " has no instance " + std::to_string(doc) +
                   " in this evaluation.");
  const auto texts = known.find(a.record.task, a.record.convention);
  const auto* example = texts.task ? eval::find_example(*texts.task, doc) : nullptr;
  const std::string missing = why_no_text(texts, example, rows);
  if (!missing.empty()) example = nullptr;
  std::string body = page::paragraph(
      "<a href=\"" + escape(task_address("/instances", request)) + "\">all instances</a> &ensp;" +
      (doc > 0 ? neighbour(request, doc - 1, "previous") + " &ensp;" : "") +
      (a.rows(doc + 1).empty() ? "" : neighbour(request, doc + 1, "next")));
  body += example != nullptr
              ? prompt_html(*example)
              : page::note(
                    "Prompt and continuations cannot be shown, as the record has their "
                    "hashes only: " +
                    page::shown(missing, 400));
  body += "<h2>Continuations</h2>\n" +
          (b ? page::paragraph(page::side_mark('A') + page::shown(a.name(), 120)) : "") +
          scores_table(a, rows, example);
  if (b) {
    const auto others = b->rows(doc);
    body += page::paragraph(page::side_mark('B') + page::shown(b->name(), 120)) +
            (others.empty() ? page::note("It did not score this instance.")
                            : scores_table(*b, others, example));
  }
  const std::string native = rows.front().native_id;
  body += page::note((native.empty() ? "" : "Name in the data: " + page::code(native) + ". ") +
                     "Hash of the first request: " + page::code(rows.front().request_hash) + ".");
  Frame frame;
  frame.title = a.record.task + " " + std::to_string(doc);
  frame.heading = a.record.task + ", instance " + page::count(doc);
  frame.kicker_html = page::shown(a.name(), 160) + ", " + page::shown(a.record.convention, 40);
  frame.tabs = run_tabs_of(a);
  frame.wide = true;
  return html_response(framed(frame, body));
}

}  // namespace olmo::serve
