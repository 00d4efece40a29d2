#include "serve/curve_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_line.h"

namespace olmo::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;
using store::Quantities;
using store::RunLine;

constexpr std::array<StepCurve, 10> kCurves = {{
    {"ce_loss", "Loss", "nats", "Loss"},
    {"z_loss", "z-loss", "", "Loss"},
    {"lr", "Learning rate", "", "Optimizer"},
    {"grad_norm", "Gradient norm", "before clipping", "Optimizer", true},
    {"clipping_rate", "Clipping", "share that was clipped", "Optimizer"},
    {"param_norm", "Parameter norm", "", "Optimizer"},
    {"tokens_per_second", "Throughput", "tokens/s", "Speed"},
    {"mfu", "Model FLOP utilisation", "share of the peak", "Speed"},
    {"seconds", "Time of a step", "s", "Speed", true},
    {"masked_instances", "Masked instances", "by the instance filter", "Data"},
}};

/// For so long one request reads, in portions of rows: the answer says that there are more. Reading
/// for a page that nobody looks at any longer ends then, too.
constexpr auto kReading = std::chrono::milliseconds(200);
constexpr std::size_t kRowsAtOnce = 25'000;
/// New rows that a page appends one by one.
constexpr std::size_t kNewRows = 2'000;

/// Seven digits are more than a screen shows, and half of what a number takes as text.
OrderedJson rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 7);
  double short_value = 0;
  std::from_chars(text.data(), end.ptr, short_value);
  return short_value;
}

/// Changes where steps are replaced by those of a later attempt.
std::string name_of(const RunLine& line) {
  std::string name = line.imported ? "imported" : "";
  for (const auto& stretch : line.stretches)
    name += std::to_string(stretch.attempt) + ":" + std::to_string(stretch.first) + ",";
  return name;
}

OrderedJson head_of(const ChosenRun& run, const RunLine& line) {
  return {{"key", run.entry.key},
          {"active", run.entry.now.may_run()},
          {"line", name_of(line)},
          {"last", line.empty() ? OrderedJson() : OrderedJson(line.last())}};
}

/// When the attempts of the line began, by their first steps.
OrderedJson starts_of(const ChosenRun& run, const RunLine& line) {
  OrderedJson starts = OrderedJson::array();
  if (line.imported) return starts;  // the clock is that of the import
  const auto attempts = store::read_attempts(*run.records, line.run_id);
  for (const auto& stretch : line.stretches) {
    for (const auto& attempt : attempts)
      if (attempt.attempt == stretch.attempt)
        starts.push_back({{"step", stretch.first}, {"utc", attempt.started_utc}});
  }
  return starts;
}

/// Sums of seconds; what is not recorded takes no time.
class Stopwatch {
 public:
  double add(double seconds) {
    if (std::isfinite(seconds)) sum_ += seconds;
    return sum_;
  }

 private:
  double sum_ = 0;
};

/// Every step has a loss: one that is missing in a bin is not finite.
void add_not_finite(const std::vector<store::SeriesBin>& bins, std::size_t loss,
                    OrderedJson& curve) {
  OrderedJson counts = OrderedJson::array();
  bool any = false;
  for (const auto& bin : bins) {
    counts.push_back(bin.rows - bin.of[loss].values);
    any = any || bin.rows > bin.of[loss].values;
  }
  if (any) curve["not_finite"] = std::move(counts);
}

OrderedJson json_of_bins(const std::vector<store::SeriesBin>& bins, OrderedJson json) {
  const auto of = step_quantities().columns;
  const std::size_t tokens = of.size() - 2, seconds = of.size() - 1;
  OrderedJson step = OrderedJson::array(), rows = step, token = step, time = step;
  Stopwatch watch;
  for (const auto& bin : bins) {
    step.push_back((bin.first + bin.last) / 2);
    rows.push_back(bin.rows);
    token.push_back(rounded(bin.of[tokens].mean));
    time.push_back(
        rounded(watch.add(bin.of[seconds].mean * static_cast<double>(bin.of[seconds].values))));
  }
  json["step"] = std::move(step);
  json["rows"] = std::move(rows);
  json["tokens"] = std::move(token);
  json["seconds"] = std::move(time);
  json["of"] = OrderedJson::object();
  for (const StepCurve& curve : kCurves) {
    const auto k =
        static_cast<std::size_t>(std::find(of.begin(), of.end(), curve.column) - of.begin());
    if (std::none_of(bins.begin(), bins.end(),
                     [&](const auto& bin) { return bin.of[k].values > 0; }))
      continue;
    OrderedJson low = OrderedJson::array(), mean = OrderedJson::array(),
                high = OrderedJson::array();
    for (const auto& bin : bins) {
      low.push_back(rounded(bin.of[k].low));
      mean.push_back(rounded(bin.of[k].mean));
      high.push_back(rounded(bin.of[k].high));
    }
    json["of"][curve.column] = {
        {"low", std::move(low)}, {"mean", std::move(mean)}, {"high", std::move(high)}};
    if (&curve == kCurves.data()) add_not_finite(bins, k, json["of"][curve.column]);
  }
  return json;
}

OrderedJson bins_json(const ChosenRun& run, const RunLine& line, const WantedCurves& wanted,
                      CurveCache& cache) {
  const auto kept =
      cache.kept(run.entry.key + " " + std::to_string(wanted.points) + " " +
                     std::to_string(wanted.range.first) + " " + std::to_string(wanted.range.last),
                 wanted.points);
  const std::lock_guard held(kept->mutex);
  if (!kept->bins) kept->bins.emplace(step_quantities(), wanted.points, wanted.range);
  OrderedJson json = head_of(run, line);
  const auto end = std::chrono::steady_clock::now() + kReading;
  bool complete = false;
  do {
    complete = kept->bins->follow(*run.records, line, kRowsAtOnce);
  } while (!complete && std::chrono::steady_clock::now() < end);
  json["complete"] = complete;
  // Rows that came since the line was read are the next request's.
  json["starts"] = starts_of(run, line);
  return json_of_bins(kept->bins->bins(), std::move(json));
}

/// Tokens and time at some steps, for the axes: from single rows, each standing for those since the
/// one before.
void add_axes(const ChosenRun& run, const RunLine& line, OrderedJson& json) {
  constexpr std::size_t kRows = 300;
  const auto points = store::pick_points(*run.records, line,
                                         {.columns = {"tokens", "seconds"}, .metric = {}}, kRows);
  OrderedJson tokens = OrderedJson::array(), seconds = tokens, rows = tokens;
  Stopwatch watch;
  for (std::size_t i = 0; i < points.step.size(); ++i) {
    const auto since = i == 0 ? 1 : points.step[i] - points.step[i - 1];
    tokens.push_back(rounded(points.values[0][i]));
    seconds.push_back(rounded(watch.add(points.values[1][i] * static_cast<double>(since))));
    rows.push_back(since);
  }
  json["step"] = points.step;
  json["rows"] = std::move(rows);
  json["tokens"] = std::move(tokens);
  json["seconds"] = std::move(seconds);
}

OrderedJson metrics_json(const ChosenRun& run, const RunLine& line, const WantedCurves& wanted) {
  OrderedJson json = head_of(run, line);
  json["complete"] = true;
  json["starts"] = starts_of(run, line);
  add_axes(run, line, json);
  json["of"] = OrderedJson::object();
  for (const auto& name : store::metric_names(*run.records, line.run_id)) {
    const auto points = store::pick_points(*run.records, line, {.columns = {}, .metric = name},
                                           wanted.points, wanted.range);
    OrderedJson mean = OrderedJson::array();
    for (const double value : points.values[0]) mean.push_back(rounded(value));
    json["of"][name] = {{"step", points.step}, {"mean", std::move(mean)}};
  }
  return json;
}

}  // namespace

std::span<const StepCurve> step_curves() { return kCurves; }

Quantities step_quantities() {
  Quantities quantities;
  for (const StepCurve& curve : kCurves)
    if (std::string_view(curve.column) != "seconds") quantities.columns.emplace_back(curve.column);
  quantities.columns.emplace_back("tokens");
  quantities.columns.emplace_back("seconds");
  return quantities;
}

std::shared_ptr<CurveCache::Kept> CurveCache::kept(const std::string& name, std::size_t bins) {
  const std::lock_guard held(mutex_);
  Entry& entry = entries_[name];
  if (!entry.kept) {
    entry.kept = std::make_shared<Kept>();
    entry.bins = bins;
    bins_ += bins;
  }
  entry.used = ++clock_;
  auto found = entry.kept;
  while (bins_ > kMostBins && entries_.size() > 1) {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bins_ -= oldest->second.bins;
    entries_.erase(oldest);
  }
  return found;
}

OrderedJson curves_json(const ChosenRun& run, const WantedCurves& wanted, CurveCache& cache) {
  const RunLine line = store::read_line(*run.records, run.entry.summary.run.run_id);
  return wanted.metrics ? metrics_json(run, line, wanted) : bins_json(run, line, wanted, cache);
}

OrderedJson new_steps_json(const ChosenRun& run, std::int64_t after, bool metrics) {
  const RunLine line = store::read_line(*run.records, run.entry.summary.run.run_id);
  OrderedJson json = head_of(run, line);
  json["behind"] = metrics;  // they are few: all are read again
  const auto quantities = step_quantities();
  store::SeriesPoints points = {.step = {}, .values = {}};
  if (!metrics) points = store::points_after(*run.records, line, quantities, after, kNewRows + 1);
  if (points.step.size() > kNewRows) {
    json["behind"] = true;
    points = {.step = {}, .values = {}};
  }
  if (!points.step.empty()) json["last"] = points.step.back();
  json["step"] = points.step;
  json["of"] = OrderedJson::object();
  for (std::size_t k = 0; k < points.values.size(); ++k) {
    const auto& column = points.values[k];
    OrderedJson values = OrderedJson::array();
    for (const double value : column) values.push_back(rounded(value));
    const bool is_axis = k + 2 >= quantities.columns.size();
    if (is_axis) json[quantities.columns[k]] = values;
    const bool is_curve = quantities.columns[k] != "tokens";
    if (is_curve &&
        std::any_of(column.begin(), column.end(), [](double v) { return std::isfinite(v); }))
      json["of"][quantities.columns[k]] = std::move(values);
  }
  return json;
}

std::int64_t number_in(const std::string& text, const std::string& name, std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  const auto number = parse_number<std::int64_t>(text);
  if (!number)
    throw Error(ErrorKind::kUsage, "the address: `" + name + "` expects a whole number, got `" +
                                       text.substr(0, 40) + "`");
  return *number;
}

std::int64_t number_of(const Request& request, const std::string& name, std::int64_t otherwise) {
  return number_in(request.value(name), name, otherwise);
}

WantedCurves wanted_curves(const Request& request) {
  WantedCurves wanted;
  const std::string of = request.value("of");
  if (!of.empty() && of != "steps" && of != "metrics")
    throw Error(ErrorKind::kUsage, "the address: `of` is `steps` or `metrics`");
  wanted.metrics = of == "metrics";
  wanted.points = static_cast<std::size_t>(
      std::clamp<std::int64_t>(number_of(request, "points", 600), 64, 5'000));
  wanted.range.first = number_of(request, "from", wanted.range.first);
  wanted.range.last = number_of(request, "to", wanted.range.last);
  return wanted;
}

}  // namespace olmo::serve
