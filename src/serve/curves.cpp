#include "serve/curves.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/process/waiting_threads.h"
#include "core/text/text.h"
#include "page/browser/files.h"
#include "page/chart.h"
#include "page/html.h"
#include "serve/curve_data.h"
#include "serve/form.h"
#include "serve/frame.h"
#include "serve/run_columns.h"
#include "serve/run_set.h"
#include "store/runs/run_line.h"

namespace olmo::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;
using page::Axis;
using page::element;
using page::escape;

/// Charts of metrics that a page shows; more than a reader looks at.
constexpr std::size_t kMetricCharts = 120;

/// One chart of the page: a curve for each run that has one.
struct DrawnChart {
  std::string source, title, unit, group;
  bool may_be_log = false;
  std::map<std::size_t, std::vector<page::Bin>> of_run = {};  ///< by the run's place in the set
};

bool wants_tokens(const Request& request) { return request.value("x") == "tokens"; }

void add_points(DrawnChart& chart, std::size_t run, const std::vector<page::Point>& points) {
  auto bins = page::bins_of(points);
  if (!bins.empty()) chart.of_run[run] = std::move(bins);
}

/// Calls `read(i, line)` for the runs, several at once; a run that cannot be read gets the reason.
/// On a slow disk some are left, so that the page stands within a second. Returns how many.
template <class Read>
std::size_t read_runs(RunSet& set, std::chrono::milliseconds patience, const Read& read) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience;
  std::atomic<std::size_t> left = 0;
  const auto read_one = [&](std::size_t i) {
    ChosenRun& run = set.runs[i];
    if (!run.records) return;
    if (i > 0 && Clock::now() > end) {
      ++left;
      return;
    }
    try {
      read(i, store::read_line(*run.records, run.entry.summary.run.run_id));
    } catch (const std::exception& error) {
      run.problem = error.what();
    }
  };
  for_each_while_waiting(set.runs.size(), read_one, kReaders);
  return left;
}

/// Points of a run's curves that the page comes with. Each costs some reads at far places of the
/// file, and the browser its share of the first paint.
std::size_t points_of_run(const RunSet& set) {
  return std::clamp<std::size_t>(1600 / set.runs.size(), 16, 150);
}

struct DrawnCharts {
  std::vector<DrawnChart> charts;
  std::size_t left = 0;  ///< runs that are not in them yet
};

/// Single rows, each found by its key, so that the page is there at once; its script asks for bins.
DrawnCharts step_charts(RunSet& set, std::chrono::milliseconds patience, bool tokens) {
  DrawnCharts drawn;
  for (const StepCurve& curve : step_curves())
    drawn.charts.push_back({curve.column, curve.title, curve.unit, curve.group, curve.may_be_log});
  const auto quantities = step_quantities();
  std::vector<store::SeriesPoints> of_run(set.runs.size());
  drawn.left = read_runs(set, patience, [&](std::size_t i, const store::RunLine& line) {
    of_run[i] = store::pick_points(*set.runs[i].records, line, quantities, points_of_run(set));
  });
  for (std::size_t i = 0; i < of_run.size(); ++i) {
    const auto& picked = of_run[i];
    if (picked.step.empty()) continue;
    const auto& token_counts = picked.values[quantities.columns.size() - 2];
    for (std::size_t k = 0; k < quantities.columns.size(); ++k)
      for (DrawnChart& chart : drawn.charts)
        if (chart.source == quantities.columns[k])
          add_points(chart, i,
                     tokens ? page::points_of(token_counts, picked.values[k])
                            : page::points_of(picked.step, picked.values[k]));
  }
  return drawn;
}

DrawnCharts metric_charts(RunSet& set, std::chrono::milliseconds patience) {
  std::vector<std::map<std::string, std::vector<page::Point>>> of_run(set.runs.size());
  DrawnCharts drawn;
  drawn.left = read_runs(set, patience, [&](std::size_t i, const store::RunLine& line) {
    const auto& records = *set.runs[i].records;
    auto names = store::metric_names(records, line.run_id);
    names.resize(std::min(names.size(), kMetricCharts));
    for (const auto& name : names) {
      const auto points =
          store::pick_points(records, line, {.columns = {}, .metric = name}, points_of_run(set));
      of_run[i][name] = page::points_of(points.step, points.values[0]);
    }
  });
  std::map<std::string, DrawnChart> charts;
  for (std::size_t i = 0; i < of_run.size(); ++i) {
    for (const auto& [name, points] : of_run[i]) {
      if (charts.size() == kMetricCharts && !charts.contains(name)) continue;
      DrawnChart& chart = charts[name];
      chart.source = name;
      chart.title = page::clip(name, 120);
      chart.group = "Metrics";
      add_points(chart, i, points);
    }
  }
  for (auto& [name, chart] : charts) drawn.charts.push_back(std::move(chart));
  return drawn;
}

std::string drawn(const DrawnChart& drawn, const RunSet& set, const std::string& x_label,
                  bool log_x, bool log_y) {
  std::vector<double> xs, ys;
  for (const auto& [run, bins] : drawn.of_run) {
    for (const auto& bin : bins) {
      xs.push_back(bin.x);
      ys.push_back(bin.mean);
    }
  }
  if (ys.empty()) return {};
  const auto [low, high] = std::minmax_element(ys.begin(), ys.end());
  if (*low == 0 && *high == 0) return {};  // nothing is clipped, nothing masked
  const bool wide = drawn.may_be_log && *low > 0 && *high > 30 * *low;
  Axis x = page::axis_over(xs, log_x ? Axis::Scale::kLog : Axis::Scale::kLinear, x_label, false);
  x.counts = true;
  Axis y =
      page::axis_over(ys, wide || log_y ? Axis::Scale::kLog : Axis::Scale::kLinear, drawn.unit);
  y.counts = drawn.source == "tokens_per_second";
  page::Chart chart(drawn.title,
                    "From " + page::number(*low, 4) + " to " + page::number(*high, 4) + ".", x, y);
  chart.set_source(drawn.source);
  for (const auto& [run, bins] : drawn.of_run) {
    const ChosenRun& of = set.runs[run];
    chart.curve(bins, {of.look.c_str(), of.label, of.entry.key}, {});
  }
  return chart.html();
}

std::string tick(const char* name, const std::string& label, bool ticked) {
  return std::string("<label><input type=\"checkbox\" name=\"") + name +
         "\" value=\"1\" autocomplete=\"off\"" + (ticked ? " checked" : "") + "> " + escape(label) +
         "</label>\n";
}

/// What a reader chooses. Without a script the button asks for the page anew, which knows steps,
/// tokens and logarithms; the script does the rest.
std::string controls(const RunSet& set, const Request& request, bool metrics) {
  const std::string x = request.value("x");
  std::string axes, smooth = option("0", "no", true), bases = option("", "none", true);
  for (const auto& [value, text] : std::vector<std::pair<std::string, std::string>>{
           {"step", "step"}, {"tokens", "tokens"}, {"time", "hours of training"}, {"date", "date"}})
    axes += option(value, text, value == x);
  for (const char* share : {"1", "2", "5", "10", "20"})
    smooth += option(share, "over " + std::string(share) + " % of the run", false);
  for (const auto& run : set.runs) bases += option(run.entry.key, run.label, false);
  std::string html = "<form class=\"controls\" action=\"/curves\">\n";
  for (const auto& run : set.runs) html += hidden_field("run", run.entry.key);
  if (metrics) html += hidden_field("of", "metrics");
  html += choice("x", "Axis", axes) + tick("logx", "logarithmic", !request.values("logx").empty()) +
          choice("smooth", "Smoothed", smooth) +
          tick("logy", "values logarithmic", !request.values("logy").empty()) +
          std::string(set.runs.size() > 1 ? "<span>" : "<span hidden>") +
          choice("base", "Less run", bases) + "</span>" +
          "<noscript><button>Show</button></noscript>\n</form>\n";
  return html;
}

std::string key_of(const std::string& look) {
  return "<svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" aria-hidden=\"true\"><path "
         "class=\"" +
         escape(look) + "\" d=\"M1 5H27\"/></svg>";
}

std::string run_list(const RunSet& set) {
  std::string html;
  for (const auto& run : set.runs)
    html += "<div class=\"run\" data-key=\"" + escape(run.entry.key) +
            "\"><input type=\"checkbox\" name=\"hide\" checked autocomplete=\"off\" value=\"" +
            escape(run.entry.key) + "\" aria-label=\"Show " + page::shown(run.label, 80) + "\">" +
            key_of(run.look) + "<a href=\"/run/" + escape(url_encoded(run.entry.key)) + "\">" +
            page::shown(run.label, 120) + "</a><span class=\"state\">" +
            escape(run.entry.now.state) + record_html(run.entry) + "</span></div>\n";
  html = element("div", "runs", html) + "\n";
  if (set.runs.size() > 3)
    html +=
        "<p class=\"tools\"><button type=\"button\" id=\"show-all\">show all</button><button "
        "type=\"button\" id=\"show-none\">show none</button></p>\n";
  return html;
}

/// What the script knows of the runs.
std::string runs_json(const RunSet& set) {
  OrderedJson runs = OrderedJson::array();
  for (const auto& run : set.runs)
    runs.push_back({{"key", run.entry.key},
                    {"name", page::clip(run.label, 120)},
                    {"look", run.look},
                    {"active", run.entry.now.may_run()}});
  return page::embedded_json("runs", json_text(runs));
}

std::string still_to_come(const RunSet& set, std::size_t left) {
  if (left == 0) return {};
  return "Reading takes long: " + std::to_string(set.runs.size() - left) + " of " +
         counted(static_cast<std::int64_t>(set.runs.size()), "run") + " are drawn so far.";
}

Response curves_page(Catalog& catalog, const Request& request, std::chrono::milliseconds patience) {
  RunSet set = chosen_runs(catalog, request);
  const bool metrics = request.value("of") == "metrics";
  const bool tokens = wants_tokens(request) && !metrics;
  const auto [charts, left] =
      metrics ? metric_charts(set, patience) : step_charts(set, patience, tokens);
  const bool log_x = !request.values("logx").empty(), log_y = !request.values("logy").empty();
  std::string groups, group, open;
  const auto close = [&] {
    if (!open.empty())
      groups += "<section><h2>" + escape(group) + "</h2>\n" + element("div", "curves", open) +
                "</section>\n";
    open.clear();
  };
  for (const DrawnChart& chart : charts) {
    if (chart.group != group) close();
    group = chart.group;
    open += drawn(chart, set, tokens ? "tokens" : "step", log_x, log_y);
  }
  close();
  if (groups.empty())
    groups = page::note(metrics ? "No further metrics are recorded." : "No step is recorded yet.");
  Query other = query_of(set);
  if (!metrics) other["of"] = {"metrics"};
  const std::string body =
      problems_html(set) + "<div id=\"curves\" data-of=\"" + (metrics ? "metrics" : "steps") +
      "\">\n" + run_list(set) + controls(set, request, metrics) +
      "<p id=\"notice\" class=\"warn\" role=\"status\">" + still_to_come(set, left) + "</p>\n" +
      (left > 0 ? "<noscript>" + page::note("Load the page again for the others.") + "</noscript>\n"
                : "") +
      groups + "</div>\n" +
      page::paragraph("<a href=\"" + escape(address_of("/curves", other)) + "\">" +
                      (metrics ? "Loss, learning rate, norms and speed"
                               : "Further metrics that the runs recorded") +
                      "</a>") +
      runs_json(set);
  Frame frame = set_frame(set, "Curves", "curves");
  frame.heading = title_of(set);
  frame.scripts = {"/curves.js"};
  return html_response(framed(frame, body));
}

/// One run's curves. Throws Error for a database that cannot be read.
Response curves_answer(Catalog& catalog, CurveCache& cache, const Request& request) {
  const WantedCurves wanted = wanted_curves(request);
  const RunSet set = chosen_runs(catalog, request);
  const ChosenRun& run = set.runs.front();
  if (!run.records) throw Error(ErrorKind::kInput, run.problem);
  return json_response(curves_json(run, wanted, cache));
}

/// Of several runs at once; what is wrong with one does not keep back the others.
Response news_answer(Catalog& catalog, const Request& request) {
  const bool metrics = wanted_curves(request).metrics;
  const auto keys = request.values("run"), afters = request.values("after");
  if (keys.size() != afters.size())
    throw Error(ErrorKind::kUsage, "the address: each `run` needs its `after`");
  const RunSet set = chosen_runs(catalog, request);
  OrderedJson runs = OrderedJson::array();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto run = std::find_if(set.runs.begin(), set.runs.end(),
                                  [&](const auto& one) { return one.entry.key == keys[i]; });
    std::string problem = "it is no longer in the folders that are served";
    if (run != set.runs.end()) problem = run->problem;
    if (run != set.runs.end() && run->records) {
      try {
        runs.push_back(new_steps_json(*run, number_in(afters[i], "after", -1), metrics));
        continue;
      } catch (const Error& error) {
        problem = error.what();
      }
    }
    runs.push_back({{"key", keys[i]}, {"error", problem}});
  }
  return json_response({{"runs", std::move(runs)}});
}

}  // namespace

void add_curves(Routes& routes, Catalog& catalog, std::chrono::milliseconds patience) {
  const auto page = [&catalog, patience](const Request& request) {
    return curves_page(catalog, request, patience);
  };
  routes.add("/curves", page);
  routes.add("/run/{}/curves", page);
  routes.add("/curves.js", [](const auto&) { return script_response(page::curves_js()); });
  const auto cache = std::make_shared<CurveCache>();
  routes.add("/api/curves", [&catalog, cache](const Request& request) {
    return curves_answer(catalog, *cache, request);
  });
  routes.add("/api/curves/new",
             [&catalog](const Request& request) { return news_answer(catalog, request); });
}

}  // namespace olmo::serve
