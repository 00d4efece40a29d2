#include "exports/points.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/metric_names.h"
#include "core/text/number.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "store/evaluations/evaluation_db.h"
#include "store/runs/recorded_run.h"
#include "store/runs/series.h"

namespace olmo::exports {
namespace {

namespace names = metric_names;

/// Steps that are in memory at a time.
constexpr std::size_t kRowsAtOnce = 5000;

/// In 2255. A record may be damaged: tools, and clocks that count nanoseconds, know no later time.
constexpr double kLatest = 9e9;

/// Of "2026-01-31T23:59:59.123Z"; nothing for another text, and for times that no run can have.
std::optional<double> unix_seconds_of(const std::string& utc) {
  std::tm parts{};
  const char* rest = ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  double unit = 0.1;
  if (*rest == '.')
    for (++rest; is_digit(*rest); ++rest, unit /= 10) fraction += unit * (*rest - '0');
  const double seconds = static_cast<double>(::timegm(&parts)) + fraction;
  if (seconds < 0 || seconds > kLatest) return std::nullopt;
  return seconds;
}

/// The time of day at each step of a run, which never goes back: a clock that was set, or a log
/// without times, must not make a tool draw in circles.
class StepClock {
 public:
  explicit StepClock(const std::vector<store::AttemptRecord>& attempts) {
    for (const auto& attempt : attempts)
      if (const auto begin = unix_seconds_of(attempt.started_utc)) begin_[attempt.attempt] = *begin;
    if (!begin_.empty()) now_ = begin_.begin()->second;
  }
  double now() const { return now_; }
  double after(std::int64_t attempt, double seconds) {
    const auto begin = begin_.find(attempt);
    if (attempt != attempt_ && begin != begin_.end()) now_ = std::max(now_, begin->second);
    attempt_ = attempt;
    if (std::isfinite(seconds) && seconds > 0) now_ = std::min(now_ + seconds, kLatest);
    return now_;
  }

 private:
  std::map<std::int64_t, double> begin_;
  std::int64_t attempt_ = 0;
  double now_ = 0;
};

void add(Point& point, const char* name, const std::optional<double>& value) {
  if (value) point.numbers.push_back({name, *value});
}

template <class Integer>
double real(Integer value) {
  return static_cast<double>(value);
}

void add_step(Point& point, const store::StepRecord& row) {
  add(point, names::kLoss, row.ce_loss);
  add(point, names::kLossPerLabel, row.ce_loss_per_label);
  add(point, names::kZLoss, row.z_loss);
  add(point, names::kTotalLoss, row.loss);
  add(point, names::kEpoch, real(row.epoch));
  add(point, names::kMaskedInstances, real(row.masked_instances));
  add(point, names::kLearningRate, row.lr);
  add(point, names::kGradNorm, row.grad_norm);
  add(point, names::kMaxGradNorm, row.max_grad_norm);
  add(point, names::kClippingRate, row.clipping_rate);
  add(point, names::kParamNorm, row.param_norm);
  add(point, names::kTokens, real(row.tokens));
  add(point, names::kSeconds, row.seconds);
  add(point, names::kTokensPerSecond, row.tokens_per_second);
  add(point, names::kMfu, row.mfu);
}

void add_imported_step(Point& point, const store::ImportedStepRecord& row) {
  add(point, names::kLoss, row.loss);
  add(point, names::kLearningRate, row.lr);
  add(point, names::kGradNorm, row.grad_norm);
  if (row.tokens) add(point, names::kTokens, real(*row.tokens));
  add(point, names::kSeconds, row.seconds);
  add(point, names::kTokensPerSecond, row.tokens_per_second);
  add(point, names::kTokensPerSecondPerDevice, row.tokens_per_second_per_device);
}

/// OLMo's names of what a perplexity suite is scored by; others stay.
std::string perplexity_metric(const std::string& metric) {
  if (metric == "ce_loss") return "CrossEntropyLoss";
  if (metric == "ppl") return "Perplexity";
  return metric;
}

using NumbersByStep = std::map<std::int64_t, std::vector<NamedNumber>>;

/// The scores of finished evaluations; of two at a step the later one counts.
NumbersByStep scores_of(store::RunDb& db, const std::string& run_id) {
  std::map<std::int64_t, std::map<std::string, double>> scores;
  const store::EvaluationDb evaluations(db.records());
  for (const auto& entry : evaluations.list(run_id)) {
    if (!entry.record.step) continue;
    for (const auto& task : evaluations.tasks(entry.evaluation_id)) {
      if (task.status != "finished") continue;
      const std::string& name = task.record.task;
      const std::string prefix = task.record.kind == "perplexity" ? names::kPerplexity + name + "/"
                                                                  : names::kDownstream + name + "_";
      for (const auto& metric : evaluations.metrics(entry.evaluation_id, name)) {
        if (!metric.scope.empty()) continue;
        scores[*entry.record.step][safe_line(prefix + perplexity_metric(metric.metric))] =
            metric.value;
      }
    }
  }
  NumbersByStep numbers;
  for (const auto& [step, of_step] : scores)
    for (const auto& [name, value] : of_step) numbers[step].push_back({name, value});
  return numbers;
}

/// Makes points of what lies in several tables, a range of steps at a time.
class PointReader {
 public:
  PointReader(store::RunDb& db, const std::string& run_id, const OnPoint& visit)
      : records_(db.records()),
        run_id_(run_id),
        visit_(visit),
        line_(store::read_line(db.records(), run_id)),
        clock_(store::read_attempts(db.records(), run_id)),
        scores_(scores_of(db, run_id)) {}

  void read() {
    // By rows and not by steps: those of an import, or of a damaged file, may lie far apart.
    std::int64_t from = std::numeric_limits<std::int64_t>::min(), after = from;
    while (true) {
      const auto rows = store::points_after(records_, line_, {.columns = {"lr"}, .metric = {}},
                                            after, kRowsAtOnce)
                            .step;
      if (rows.empty()) break;
      read_range(from, rows.back());
      after = rows.back();
      if (after == std::numeric_limits<std::int64_t>::max()) return;
      from = after + 1;
    }
    read_range(from, std::numeric_limits<std::int64_t>::max());  // evaluations after the last step
  }

 private:
  void read_range(std::int64_t first, std::int64_t last) {
    points_.clear();
    if (line_.imported) {
      for (const auto& row : store::read_imported_steps(records_, run_id_, first, last)) {
        Point& point = at(row.position);
        point.unix_seconds = clock_.after(0, row.seconds.value_or(0));
        add_imported_step(point, row);
      }
    } else {
      for (const auto& [step, row] : store::read_steps(records_, run_id_, first, last)) {
        Point& point = at(step);
        point.unix_seconds = clock_.after(row.attempt, row.seconds);
        add_step(point, row);
      }
    }
    for (const auto& row : store::read_metrics(records_, line_, first, last))
      at(row.step).numbers.push_back({safe_line(row.name), row.value});
    for (auto score = scores_.lower_bound(first); score != scores_.end() && score->first <= last;
         ++score)
      add_scores(at(score->first), score->second);
    give();
  }

  Point& at(std::int64_t step) {
    Point& point = points_[step];
    point.step = step;
    return point;
  }

  /// A run's own evaluations are metrics of it already.
  static void add_scores(Point& point, const std::vector<NamedNumber>& scores) {
    for (const auto& score : scores) {
      const bool known = std::ranges::any_of(
          point.numbers, [&](const NamedNumber& number) { return number.name == score.name; });
      if (!known) point.numbers.push_back(score);
    }
  }

  void give() {
    for (auto& [step, point] : points_) {
      // A step that only metrics have is as old as the step before it.
      now_ = point.unix_seconds = std::max({now_, point.unix_seconds, first_time_});
      if (!point.numbers.empty()) visit_(point);
    }
  }

  const store::RecordDatabase& records_;
  const std::string& run_id_;
  const OnPoint& visit_;
  store::RunLine line_;
  StepClock clock_;
  NumbersByStep scores_;
  std::map<std::int64_t, Point> points_;
  double first_time_ = clock_.now();
  double now_ = 0;
};

std::vector<NamedText> leaves_of(const std::string& text, const std::string& path = "") {
  std::vector<NamedText> leaves;
  const Json json = recorded_json(text);
  if (json.is_discarded()) return leaves;
  for_each_leaf(json, path, [&](const std::string& place, const Json& value) {
    if (value.is_null() || value.is_object()) return;
    leaves.push_back({safe_line(place),
                      value.is_string() ? safe_text(value.get<std::string>()) : json_text(value)});
  });
  return leaves;
}

/// How and where the last attempt ran, and what was measured.
std::vector<NamedText> machine_of(const store::RecordDatabase& records, const std::string& run_id,
                                  const std::vector<store::AttemptRecord>& attempts) {
  std::vector<NamedText> facts;
  const auto append = [&](std::vector<NamedText> more) {
    facts.insert(facts.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  };
  if (!attempts.empty()) {
    const auto& last = attempts.back();
    append(leaves_of(last.policy, "policy"));
    append(leaves_of(last.build, "build"));
    append(leaves_of(last.environment, "environment"));
    if (last.world_size) facts.push_back({"ranks", std::to_string(*last.world_size)});
    if (!last.strategy.empty()) facts.push_back({"strategy", safe_line(last.strategy)});
  }
  facts.push_back({"attempts", std::to_string(attempts.size())});
  std::map<std::string, double> joules;
  for (const auto& row : store::read_energy(records, run_id))
    if (row.joules) joules["energy." + row.source + "." + row.device + ".joules"] += *row.joules;
  for (const auto& [name, value] : joules) facts.push_back({safe_line(name), number_text(value)});
  return facts;
}

}  // namespace

RunFacts read_facts(const store::RunDb& db, const std::string& run_id) {
  const auto run = db.run(run_id);
  const auto attempts = store::read_attempts(db.records(), run_id);
  RunFacts facts;
  facts.run_id = run.run_id;
  facts.name = safe_line(run.name);
  facts.status = safe_line(run.status);
  facts.config = run.config;
  facts.settings = leaves_of(run.config);
  for (const auto& tag : store::read_tags(db.records()))
    if (tag.run_id == run_id) facts.tags.push_back(safe_line(tag.tag));
  facts.machine = machine_of(db.records(), run_id, attempts);
  facts.begin = attempts.empty() ? 0 : unix_seconds_of(attempts.front().started_utc).value_or(0);
  facts.end = attempts.empty() ? 0 : unix_seconds_of(attempts.back().ended_utc).value_or(0);
  return facts;
}

void for_each_point(store::RunDb& db, const std::string& run_id, const OnPoint& visit) {
  PointReader(db, run_id, visit).read();
}

}  // namespace olmo::exports
