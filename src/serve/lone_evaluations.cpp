#include "serve/lone_evaluations.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/text.h"
#include "page/html.h"
#include "report/page/sections.h"
#include "serve/http.h"
#include "serve/run_columns.h"
#include "store/evaluations/evaluation_labels.h"

namespace olmo::serve {
namespace {

using namespace page;
using store::EvaluationEntry;

/// Of one database; the rest is counted.
constexpr std::int64_t kNewest = 1000;

/// The scores of whole tasks and suites, a few of them.
std::string scores_html(const std::vector<report::Score>& scores) {
  constexpr int kShownScores = 4;
  std::string html;
  int shown_scores = 0, others = 0;
  for (const auto& score : scores) {
    if (!score.scope.empty()) continue;
    if (shown_scores == kShownScores) {
      ++others;
      continue;
    }
    html += (shown_scores++ == 0 ? "" : ", ") + shown(score.task, 60) + " " +
            (score.is_share ? "" : shown(score.metric, 40) + " ") + "<span class=\"i\">" +
            report::page::score_text(score, score.value) + (score.is_share ? " %" : "") + "</span>";
  }
  if (others > 0) html += " and " + count(others) + " more";
  return html.empty() ? "<span class=\"note\">none</span>" : html;
}

std::string status_html(const EvaluationEntry& entry) {
  const char* classes = entry.status == "failed" ? "bad" : entry.status == "finished" ? "" : "warn";
  return element("span", classes, shown(store::status_text(entry.status), 40));
}

std::string page_of(const LoneEvaluation& evaluation) {
  return "/evaluation/" + url_encoded(evaluation.key);
}

std::string row_html(const LoneEvaluation& evaluation) {
  const auto& entry = evaluation.entry;
  const std::string name = shown(store::model_of(entry), 120);
  const auto cell = [](const char* title, const std::string& html, const char* classes = "") {
    return std::string("<td") +
           (*classes == '\0' ? "" : std::string(" class=\"") + classes + "\"") + " data-h=\"" +
           title + "\">" + html + "</td>";
  };
  return "<tr><td class=\"pick\"><input type=\"checkbox\" name=\"run\" value=\"" +
         escape(evaluation.key) + "\" aria-label=\"Choose the evaluation of " + name +
         "\"></td><th scope=\"row\"><a href=\"" + escape(page_of(evaluation)) + "\">" + name +
         "</a></th>" + cell("Status", status_html(entry)) +
         cell("Scores", scores_html(evaluation.scores), "wrap") +
         cell("Step", entry.record.step ? count(*entry.record.step) : "–", "n") +
         cell("Created (UTC)", shown(short_time(entry.created_utc), 40)) +
         cell("Database", shown(evaluation.place, 120)) + "</tr>\n";
}

bool holds_all(const LoneEvaluation& evaluation, const std::vector<std::string_view>& words) {
  const auto& entry = evaluation.entry;
  std::string text = entry.record.checkpoint + " " + entry.evaluation_id + " " + evaluation.place;
  for (const auto& score : evaluation.scores) text += " " + score.task;
  text = ascii_lower(text);
  return std::ranges::all_of(
      words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// The run that made the model, where it is served, too.
std::string run_html(const Listing& listing, const EvaluationEntry& entry) {
  if (!entry.record.run_id) return {};
  for (const auto& run : listing.runs)
    if (run.summary.run.run_id == *entry.record.run_id)
      return "<a href=\"/run/" + url_encoded(run.key) + "\">" + shown(run.title(), 120) + "</a>";
  return code(clip(*entry.record.run_id, 80)) +
         " <span class=\"note\">not in the folders that are served</span>";
}

}  // namespace

LoneEvaluations read_lone_evaluations(store::RecordDatabase& records) {
  const store::EvaluationDb db(records);
  LoneEvaluations found;
  const auto entries = db.list_without_run(kNewest);
  for (const auto& entry : entries) {
    LoneEvaluation one{.key = {}, .database = {}, .place = {}, .entry = entry, .scores = {}};
    one.scores = report::read_scores(records, std::span(&entry, 1)).front().scores;
    // Long, and read again where they are shown.
    for (auto* text : {&one.entry.record.settings, &one.entry.record.policy,
                       &one.entry.record.build, &one.entry.record.environment})
      text->clear();
    found.newest.push_back(std::move(one));
  }
  if (static_cast<std::int64_t>(entries.size()) == kNewest)
    found.others = db.count_without_run() - kNewest;
  return found;
}

std::string lone_evaluations_html(const Listing& listing,
                                  const std::vector<std::string_view>& words) {
  std::string rows;
  std::size_t fitting = 0;
  for (const auto& evaluation : listing.evaluations)
    if (holds_all(evaluation, words) && ++fitting <= kShownRows) rows += row_html(evaluation);
  if (fitting == 0) return {};
  std::string html =
      "<h2>Evaluations without a run</h2>\n" +
      note(
          "Of models from elsewhere, or in databases of their own. Tick two to see what was "
          "chosen differently.") +
      "<div class=\"scroll\"><table class=\"every\">\n<thead><tr><th></th>";
  for (const char* title : {"Model", "Status", "Scores"})
    html += std::string("<th scope=\"col\">") + title + "</th>";
  html +=
      "<th scope=\"col\" class=\"n\">Step</th><th scope=\"col\">Created (UTC)</th><th "
      "scope=\"col\">Database</th></tr></thead>\n<tbody>" +
      rows + "</tbody>\n</table></div>\n";
  const auto others = static_cast<std::int64_t>(fitting - std::min(fitting, kShownRows)) +
                      (words.empty() ? listing.older_evaluations : 0);
  return html + (others > 0 ? note("and " + count(others) + " older ones") : "");
}

nlohmann::ordered_json lone_evaluations_json(const Listing& listing) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson list = OrderedJson::array();
  for (const auto& evaluation : listing.evaluations) {
    const auto& entry = evaluation.entry;
    OrderedJson scores = OrderedJson::array();
    for (const auto& score : evaluation.scores)
      scores.push_back({{"task", score.task},
                        {"scope", score.scope},
                        {"metric", score.metric},
                        {"n", score.n},
                        {"value", score.value}});
    list.push_back({{"key", evaluation.key},
                    {"evaluation_id", entry.evaluation_id},
                    {"status", entry.status},
                    {"created_utc", entry.created_utc},
                    {"checkpoint", entry.record.checkpoint},
                    {"run_id", or_null<OrderedJson>(entry.record.run_id)},
                    {"step", or_null<OrderedJson>(entry.record.step)},
                    {"scores", std::move(scores)},
                    {"database", evaluation.place}});
  }
  return list;
}

std::string evaluation_facts_html(const Listing& listing, const LoneEvaluation& evaluation) {
  const auto& entry = evaluation.entry;
  const auto& record = entry.record;
  Facts facts;
  facts.add("Status", status_html(entry));
  facts.add("Model", record.checkpoint.empty() ? absent("no path is recorded")
                                               : code(clip(record.checkpoint, 300)));
  facts.add("Run", run_html(listing, entry));
  if (record.step) facts.add("Step", count(*record.step));
  facts.add("Created", shown(short_time(entry.created_utc), 40) + " UTC");
  if (entry.ended_utc) facts.add("Ended", shown(short_time(*entry.ended_utc), 40) + " UTC");
  if (!record.weights_digest.empty())
    facts.add("SHA-256 of its weights", code(record.weights_digest));
  if (!record.tokenizer_digest.empty())
    facts.add("SHA-256 of its tokenizer", code(record.tokenizer_digest));
  facts.add("Evaluation", code(clip(entry.evaluation_id, 80)));
  facts.add("Database", code(clip(evaluation.place, 200)));
  if (!record.command_line.empty()) facts.add("Command", code(clip(record.command_line, 600)));
  return facts.html();
}

}  // namespace olmo::serve
