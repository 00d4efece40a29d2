// The page of a run: how it goes, what happened, what it was made with.
#include <algorithm>
#include <cmath>

#include "core/process/terminal.h"
#include "core/text/text.h"
#include "monitor/run_view.h"
#include "page/chart.h"
#include "page/html.h"
#include "serve/run_columns.h"
#include "serve/run_rows.h"
#include "serve/site.h"
#include "store/runs/audit_records.h"
#include "store/runs/run_facts.h"
#include "store/runs/series.h"

namespace olmo::serve {
namespace {

using namespace page;

constexpr std::size_t kLastEvents = 12;
constexpr std::size_t kCurvePoints = 500;

std::string byte_text(std::optional<double> bytes) {
  return bytes ? escape(format_bytes(*bytes)) : absent();
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? duration(*seconds) : absent();
}

std::string time_text(const std::string& utc) { return shown(short_time(utc), 40); }

/// How far the run is, and how long the rest takes at the pace of its last steps.
std::string progress_html(const RunEntry& run, const monitor::RunView& view) {
  const auto& summary = run.summary;
  const auto of = summary.run.max_steps;
  if (!summary.step || of <= 0) return {};
  std::string text = done_percent(std::min(*summary.step, of), of) + " of " + count(of) + " steps";
  if (view.eta_seconds) text += ", about " + escape(format_duration(*view.eta_seconds)) + " left";
  return "<p class=\"progress\"><progress max=\"" + std::to_string(of) + "\" value=\"" +
         std::to_string(*summary.step) + "\"></progress> " + text + "</p>\n";
}

/// The newest value of each task.
std::string evaluations_text(const monitor::RunView& view) {
  constexpr std::size_t kShownTasks = 6;
  std::string html;
  for (std::size_t i = 0; i < std::min(kShownTasks, view.evaluations.size()); ++i) {
    const auto& point = view.evaluations[i];
    html += (html.empty() ? "" : ", ") + shown(point.task, 60) + " " + number(point.value, 4);
    if (point.step) html += " <span class=\"note\">at step " + count(*point.step) + "</span>";
  }
  if (view.evaluations.size() > kShownTasks)
    html +=
        " and " + count(static_cast<std::int64_t>(view.evaluations.size() - kShownTasks)) + " more";
  return html;
}

/// Of all attempts; watts of the last one.
std::string energy_text(const monitor::RunView& view) {
  std::string html;
  for (const auto& sum : monitor::energy_sums(view.energy)) {
    html += (html.empty() ? "" : ", ") + shown(sum.covers, 60) + " " +
            number(sum.joules / 3600, 4) + " Wh";
    if (sum.watts) html += " <span class=\"note\">" + number(*sum.watts, 3) + " W</span>";
  }
  return html;
}

std::string status_html(const RunEntry& run) {
  return state_html(run) + (run.now.reason.empty() ? "" : note(shown(run.now.reason, 300)));
}

/// Whether the figures of the page are to be believed.
std::string record_text(const RunEntry& run) {
  const std::string mark = record_html(run);
  return mark.empty() ? to_string(run.record.state) : mark + note(shown(run.record.reason, 600));
}

std::string facts_html(const RunEntry& run, const monitor::RunView& view) {
  const auto& summary = run.summary;
  const auto& last = summary.last_attempt;
  Facts facts;
  facts.add("Status", status_html(run));
  facts.add("Record", record_text(run));
  if (summary.step) facts.add("Step", count(*summary.step));
  if (summary.tokens) facts.add("Tokens", compact(static_cast<double>(*summary.tokens)));
  if (summary.step || summary.tokens)
    facts.add("Loss", loss_html(run, 6) + " <span class=\"note\">nats</span>");
  if (summary.tokens_per_second) facts.add("Tokens/s", number(*summary.tokens_per_second, 4));
  if (view.seconds_per_step) facts.add("A step takes", duration(*view.seconds_per_step));
  facts.add("Evaluations", evaluations_text(view));
  facts.add("Energy", energy_text(view));
  if (summary.run.n_parameters > 0)
    facts.add("Parameters", compact(static_cast<double>(summary.run.n_parameters)));
  if (last.world_size)
    facts.add("Ranks", count(*last.world_size) +
                           (*last.world_size > 1 ? ", " + shown(last.strategy, 40) : ""));
  facts.add("Host", shown(summary.host, 120));
  facts.add("Created", time_text(summary.run.created_utc));
  if (!summary.imported)
    facts.add("Attempts",
              count(summary.attempts) +
                  (last.outcome.empty() ? "" : ", the last " + shown(last.outcome, 40)));
  std::string tags;
  for (const auto& tag : summary.tags) tags += element("span", "tag", shown(tag, 60)) + " ";
  facts.add("Tags", tags);
  facts.add("Run", code(clip(summary.run.run_id, 80)));
  facts.add("Database", code(clip(run.place, 200)));
  return facts.html();
}

std::string loss_chart(const store::RunDb& db, const store::RunLine& line) {
  if (line.empty()) return {};
  const auto points =
      store::pick_points(db.records(), line, {.columns = {"ce_loss"}, .metric = {}}, kCurvePoints);
  const std::vector<double>& losses = points.values[0];
  const auto curve = points_of(points.step, losses);
  if (curve.size() < 2) return {};
  const std::vector<double> steps(points.step.begin(), points.step.end());
  page::Axis x = axis_over(steps, Axis::Scale::kLinear, "steps", false);
  x.counts = true;
  Chart chart("Loss", "The loss by step, of single steps", x,
              axis_over(losses, Axis::Scale::kLinear, "nats"));
  chart.line(curve, {.classes = "a", .name = "loss"});
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (!std::isfinite(losses[i]))
      chart.mark(steps[i], "event-b", "step " + count(points.step[i]) + ": the loss is not finite");
  return chart.empty() ? std::string() : chart.html();
}

/// The newest first. `all`: how many are recorded.
std::string events_html(const std::vector<store::EventRecord>& events, std::int64_t all) {
  if (events.empty()) return note("No event is recorded.");
  Table table({{"Time (UTC)", false}, {"Step", true}, {"Event", false}, {"What", false}});
  for (auto event = events.rbegin(); event != events.rend(); ++event)
    table.row({time_text(event->utc), count(event->step), shown(event->kind, 60),
               shown(event->message, 600)});
  std::string html = table.html();
  if (all > std::ssize(events))
    html += note("The latest " + count(std::ssize(events)) + " of " + count(all) + " events.");
  return html;
}

/// A part of a run's page, fetched again while the run may go on.
Response part_page(const RunEntry& run, const std::string& here, const std::string& body) {
  const bool goes_on = run.now.activity != monitor::Activity::kEnded;
  return html_response(framed({.title = clip(run.title(), 120),
                               .heading = run.title(),
                               .kicker_html = shown(run.place, 200),
                               .tabs = run_tabs(run, here),
                               .refresh_seconds = goes_on ? 4 : 30},
                              "<div id=\"part\" data-live>\n" + body + "</div>\n"));
}

std::string links_html(const RunEntry& run) {
  const std::string key = url_encoded(run.key);
  return paragraph("<a href=\"/report?run=" + key +
                   "\">Report of this run</a>: every figure on one page, to be saved.");
}

Response overview(const RunEntry& listed) {
  const auto db = listed.open();
  RunEntry run = listed;  // with the numbers of now, as the curve has them
  const auto& id = run.summary.run.run_id;
  const auto view = monitor::read_run_view(db.records(), id, kLastEvents);
  static_cast<store::RunOverview&>(run.summary) = store::read_overview(db.records(), id);
  run.now = view;
  return part_page(
      run, "",
      progress_html(run, view) + facts_html(run, view) + loss_chart(db, view.line) +
          section("events", "Last events",
                  events_html(view.events, store::count_of(db.records(), "events", id))) +
          links_html(run));
}

Response events(const RunEntry& run) {
  const auto db = run.open();
  const auto& id = run.summary.run.run_id;
  return part_page(run, "/events",
                   events_html(store::last_events(db.records(), id, kShownRows),
                               store::count_of(db.records(), "events", id)));
}

Response checkpoints(const RunEntry& run) {
  const auto rows = rows_of(run.open(), "checkpoints", run.summary.run.run_id);
  if (rows.empty()) return part_page(run, "/checkpoints", note("No checkpoint is recorded."));
  Table table({{"Step", true},
               {"Size", true},
               {"Saved (UTC)", false},
               {"Took", true},
               {"Training stood still", true},
               {"Attempt", true},
               {"Path", false},
               {"SHA-256 of its manifest", false}});
  double kept = 0;
  std::int64_t deleted = 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const std::string gone = row->text("deleted_utc");
    if (gone.empty())
      kept += row->number("bytes").value_or(0);
    else
      ++deleted;
    table.row({count(row->integer("step")), byte_text(row->number("bytes")),
               time_text(row->text("created_utc")), seconds_text(row->number("seconds")),
               seconds_text(row->number("stall_seconds")), count(row->integer("attempt")),
               code(row->text("path")) + (gone.empty() ? ""
                                                       : "<br><span class=\"note\">deleted " +
                                                             time_text(gone) + "</span>"),
               code(row->text("sha256"))},
              gone.empty() ? "" : "gone");
  }
  const auto all = static_cast<std::int64_t>(rows.size());
  return part_page(
      run, "/checkpoints",
      note(counted(all - deleted, "checkpoint") + " of " + escape(format_bytes(kept)) +
           " together" + (deleted > 0 ? "; " + count(deleted) + " were deleted" : "")) +
          table.html());
}

std::string energy_table(const std::vector<Row>& rows) {
  if (rows.empty()) return note("No energy is recorded.");
  Table table({{"Sensor", false},
               {"Device", false},
               {"Host", false},
               {"Attempt", true},
               {"Energy", true},
               {"Over", true},
               {"Mean power", true},
               {"What it covers", false}});
  for (const Row& row : rows) {
    const auto joules = row.number("joules"), seconds = row.number("seconds");
    table.row({shown(row.text("source"), 60), shown(row.text("device"), 60),
               shown(row.text("host"), 60), count(row.integer("attempt")),
               joules ? number(*joules / 3600, 4) + " Wh" : absent(row.text("note")),
               seconds_text(seconds),
               joules && seconds && *seconds > 0 ? number(*joules / *seconds, 4) + " W" : absent(),
               shown(row.text("covers"), 200)});
  }
  return table.html();
}

std::string ranks_table(const std::vector<Row>& rows) {
  if (rows.empty()) return note("What single ranks did is not recorded.");
  Table table({{"Rank", true},
               {"Attempt", true},
               {"Host", false},
               {"Device", false},
               {"Steps", true},
               {"Data", true},
               {"Compute", true},
               {"Gather", true},
               {"Exchange", true},
               {"Save", true},
               {"Wait", true},
               {"Slowest in", true}});
  for (const Row& row : rows) {
    const auto time = [&](const char* name) { return seconds_text(row.number(name)); };
    table.row({count(row.integer("rank")), count(row.integer("attempt")),
               shown(row.text("host"), 60), shown(row.text("device"), 60),
               count(row.integer("steps")), time("data_seconds"), time("compute_seconds"),
               time("gather_seconds"), time("exchange_seconds"), time("save_seconds"),
               time("wait_seconds"), count(row.integer("slowest_steps"))});
  }
  return table.html();
}

Response energy(const RunEntry& run) {
  const auto db = run.open();
  const auto& id = run.summary.run.run_id;
  return part_page(run, "/energy",
                   section("energy", "Energy", energy_table(rows_of(db, "energy", id))) +
                       section("ranks", "Ranks", ranks_table(rows_of(db, "ranks", id))));
}

std::string attempts_table(const std::vector<Row>& rows) {
  Table table({{"Attempt", true},
               {"From step", true},
               {"Started (UTC)", false},
               {"Ended (UTC)", false},
               {"Outcome", false},
               {"Resumed from", false},
               {"Command", false}});
  for (const Row& row : rows)
    table.row({count(row.integer("attempt")), count(row.integer("start_step")),
               time_text(row.text("started_utc")), time_text(row.text("ended_utc")),
               shown(row.text("outcome"), 40), shown(row.text("resumed_from"), 200),
               code(row.text("command_line"))});
  return table.empty() ? note("No attempt is recorded.") : table.html();
}

std::string inputs_table(const std::vector<Row>& rows) {
  Table table({{"Input", false}, {"Path", false}, {"Size", true}, {"SHA-256", false}});
  for (const Row& row : rows)
    table.row({shown(row.text("kind"), 60), code(row.text("path")), byte_text(row.number("bytes")),
               code(row.text("sha256"))});
  return table.empty() ? note("No input is recorded.") : table.html();
}

std::string audits_table(const std::vector<Row>& rows) {
  Table table({{"Audit", true},
               {"Time (UTC)", false},
               {"Steps", false},
               {"Verdict", false},
               {"First difference", false},
               {"Started from", false}});
  for (const Row& row : rows) {
    const std::string verdict = row.text("verdict");
    std::string difference = row.text("difference");
    if (row.number("difference_step"))
      difference = "step " + count(row.integer("difference_step")) + ": " + difference;
    table.row({count(row.integer("audit")), time_text(row.text("created_utc")),
               count(row.integer("first_step")) + " to " + count(row.integer("last_step")),
               element("span", verdict == "different" ? "bad" : "good", shown(verdict, 40)),
               shown(difference, 200), shown(row.text("started_from"), 200)});
  }
  return table.empty() ? note("No stretch of this run was trained again and compared.")
                       : table.html();
}

/// Its few rows are held to their events at each look.
std::string audits_html(const store::RunDb& db, const std::string& id) {
  const auto altered = store::altered_audit(db.records(), id, store::read_audits(db.records(), id));
  return (altered.empty() ? "" : paragraph(element("span", "bad", shown(altered, 600) + "."))) +
         audits_table(rows_of(db, "audits", id));
}

Response record(const RunEntry& run) {
  const auto db = run.open();
  const auto& id = run.summary.run.run_id;
  return part_page(run, "/record",
                   section("attempts", "Attempts", attempts_table(rows_of(db, "attempts", id))) +
                       section("inputs", "Inputs", inputs_table(rows_of(db, "inputs", id))) +
                       section("audits", "Audits", audits_html(db, id)));
}

}  // namespace

void add_run_pages(Routes& routes, Catalog& catalog) {
  const auto add = [&](const char* path, Response (*page)(const RunEntry&)) {
    routes.add(std::string("/run/{}") + path, [&catalog, page](const Request& request) {
      return page(catalog.run(request.parts.at(0)));
    });
  };
  add("", overview);
  add("/events", events);
  add("/checkpoints", checkpoints);
  add("/energy", energy);
  add("/record", record);
}

}  // namespace olmo::serve
