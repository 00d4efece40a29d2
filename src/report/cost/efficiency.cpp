#include "report/cost/efficiency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "core/sorted_quantile.h"
#include "core/text/text.h"
#include "store/runs/energy_rows.h"

namespace olmo::report {
namespace {

/// Seconds since 1970 of `2026-01-31T23:59:59.123Z`, as records have it; nothing for other text.
std::optional<double> utc_seconds(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, end = 0;
  double second = 0;
  if (text.size() > 32 || std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &year, &month,
                                      &day, &hour, &minute, &second, &end) != 6)
    return std::nullopt;
  namespace c = std::chrono;
  const c::year_month_day date{c::year(year), c::month(static_cast<unsigned>(month)),
                               c::day(static_cast<unsigned>(day))};
  const bool sound = date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 &&
                     second >= 0 && second < 61 && static_cast<std::size_t>(end) == text.size();
  if (!sound) return std::nullopt;
  return static_cast<double>(c::sys_days(date).time_since_epoch().count()) * 86400.0 +
         hour * 3600.0 + minute * 60.0 + second;
}

/// What of a JSON object is a number, at least `least`; nothing else is believed.
Quantity number(const Json& object, const char* key, double least) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return value >= least && std::isfinite(value) ? Quantity(value) : std::nullopt;
}

Json parsed(const std::string& text) {
  Json json = recorded_json(text);
  return json.is_object() ? json : Json::object();
}

// --- steps ---

/// Tokens that the steps trained on: a run that goes on from another's state begins above 0.
/// Nothing where a damaged record would have it negative.
Quantity tokens_trained(const store::RecordedRun& run) {
  const auto& tokens = run.steps.tokens;
  if (!run.tokens_known || tokens.empty()) return std::nullopt;
  double trained = static_cast<double>(tokens.back());
  if (run.steps.step.front() > 1) {
    if (tokens.size() < 2) return std::nullopt;
    trained -= std::max(0.0, 2 * static_cast<double>(tokens[0]) - static_cast<double>(tokens[1]));
  }
  return trained >= 0 ? Quantity(trained) : std::nullopt;
}

/// Absent where a step is missing, or its time is none.
Quantity seconds_of_steps(const store::StepColumns& steps) {
  if (steps.seconds.empty() || steps.seconds.size() != steps.size()) return std::nullopt;
  if (steps.step.back() - steps.step.front() + 1 != static_cast<std::int64_t>(steps.size()))
    return std::nullopt;
  if (!std::ranges::all_of(steps.seconds, [](double seconds) { return seconds > 0; }))
    return std::nullopt;
  const double sum = std::accumulate(steps.seconds.begin(), steps.seconds.end(), 0.0);
  return sum > 0 && std::isfinite(sum) ? Quantity(sum) : std::nullopt;
}

/// Of those that were recorded: 0 is none. Absent where one cannot be.
Quantity median_rate(const std::vector<double>& rates) {
  const auto cannot_be = [](double rate) { return rate < 0 || std::isinf(rate); };
  if (std::ranges::any_of(rates, cannot_be)) return std::nullopt;
  std::vector<double> known;
  std::copy_if(rates.begin(), rates.end(), std::back_inserter(known),
               [](double rate) { return std::isfinite(rate) && rate > 0; });
  if (known.empty()) return std::nullopt;
  std::sort(known.begin(), known.end());
  return sorted_quantile(known, 0.5);
}

// --- attempts ---

/// How long an attempt lasted. One whose end was not recorded, as it was killed or goes on, lasted
/// at least until the last row that it wrote.
struct AttemptTime {
  Quantity seconds;
  bool at_least = false;
};

/// From the attempt's start to the last time that its rows tell.
Quantity seconds_told(const store::RecordedRun& run, const store::AttemptRecord& attempt) {
  const auto start = utc_seconds(attempt.started_utc);
  if (!start) return std::nullopt;
  double last = *start;
  const auto note = [&](std::int64_t of, const std::string& utc) {
    if (of == attempt.attempt) last = std::max(last, utc_seconds(utc).value_or(last));
  };
  for (const auto& event : run.events) note(event.attempt, event.utc);
  for (const auto& [step, checkpoint] : run.checkpoints)
    note(checkpoint.attempt, checkpoint.created_utc);
  return last - *start;
}

/// The longest that was measured within the attempt, by a clock that is never set back.
Quantity seconds_measured(const store::RecordedRun& run, const store::AttemptRecord& attempt) {
  Quantity longest;
  const auto found = run.step_seconds.find(attempt.attempt);
  if (found != run.step_seconds.end() && found->second > 0 && std::isfinite(found->second))
    longest = found->second;
  for (const auto& row : run.energy) {
    if (row.attempt == attempt.attempt && row.covers != "job" && row.seconds)
      longest = std::max(longest.value_or(0), *row.seconds);
  }
  return longest;
}

AttemptTime time_of(const store::RecordedRun& run, const store::AttemptRecord& attempt) {
  const auto measured = seconds_measured(run, attempt);
  const auto at_least = [&](Quantity told) -> AttemptTime {
    if (!told) return {measured, true};
    return {std::max(*told, measured.value_or(0)), true};
  };
  if (attempt.ended_utc.empty())
    return at_least(run.imported ? std::nullopt : seconds_told(run, attempt));
  const auto start = utc_seconds(attempt.started_utc), end = utc_seconds(attempt.ended_utc);
  // What was measured in it took longer where its clock was set back meanwhile.
  if (!start || !end || *end - *start < measured.value_or(0)) return at_least(std::nullopt);
  return {*end - *start, false};
}

/// What all attempts took.
struct RunTime {
  Quantity seconds;
  Quantity device_hours;  ///< of each attempt with as many devices as it had
  std::string note;       ///< Efficiency::hours_note
};

std::string word(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Quantity devices_of(const store::RecordedRun& run, const store::AttemptRecord& attempt) {
  std::vector<store::RankRecord> ranks;
  std::ranges::copy_if(run.ranks, std::back_inserter(ranks),
                       [&](const auto& rank) { return rank.attempt == attempt.attempt; });
  if (!ranks.empty()) return static_cast<double>(store::devices_of(ranks));
  const Json environment = parsed(attempt.environment);
  const auto found = environment.find("devices");
  if (found != environment.end() && found->is_array() && !found->empty())
    return static_cast<double>(found->size());
  // An import may be told how many there were.
  return number(environment, "device_count", 1);
}

/// A GPU is named by the policy, and by W&B; what else computes is the processor.
std::string device_of(const store::AttemptRecord& attempt) {
  std::string device = word(parsed(attempt.policy), "device_name");
  const Json environment = parsed(attempt.environment);
  for (const char* key : {"gpu", "cpu"})
    if (device.empty()) device = word(environment, key);
  return device;
}

void describe_devices(const store::RecordedRun& run, Efficiency& result) {
  if (run.attempts.empty()) return;
  result.devices = devices_of(run, run.attempts.back());
  result.device = device_of(run.attempts.back());
}

/// The steps whose rates tell of the last attempt's devices: all, or those after its start where an
/// earlier attempt had others, or other threads, for which its peak is none.
std::vector<double> rates_here(const store::RecordedRun& run, const std::vector<double>& rates) {
  const auto elsewhere = [&](const store::AttemptRecord& attempt) {
    const auto& last = run.attempts.back();
    const auto threads_of = [](const auto& one) {
      return number(parsed(one.policy), "threads", 1);
    };
    return devices_of(run, attempt) != devices_of(run, last) ||
           device_of(attempt) != device_of(last) || threads_of(attempt) != threads_of(last);
  };
  const auto& steps = run.steps.step;
  if (rates.size() != steps.size() || !std::ranges::any_of(run.attempts, elsewhere)) return rates;
  const auto first = std::ranges::upper_bound(steps, run.attempts.back().start_step);
  return {rates.begin() + (first - steps.begin()), rates.end()};
}

RunTime time_of(const store::RecordedRun& run) {
  double seconds = 0, hours = 0;
  bool hours_known = true;
  std::vector<std::string> at_least;
  for (const auto& attempt : run.attempts) {
    const AttemptTime time = time_of(run, attempt);
    if (!time.seconds) return {};
    seconds += *time.seconds;
    const auto of_attempt = device_hours(time.seconds, devices_of(run, attempt));
    hours_known = hours_known && of_attempt;
    hours += of_attempt.value_or(0);
    if (time.at_least) at_least.push_back(std::to_string(attempt.attempt));
  }
  if (seconds <= 0) return {};
  RunTime time{.seconds = seconds, .device_hours = {}, .note = {}};
  if (hours_known) time.device_hours = hours;
  if (!at_least.empty())
    time.note = "at least: when attempt " + joined(at_least) + " ended is not known";
  return time;
}

/// All steps but those that survived. Of an import these alone are known.
Quantity seconds_redone(const store::RecordedRun& run, Quantity survived) {
  if (run.imported) return std::nullopt;
  if (run.attempts.size() == 1) return 0;
  if (!survived || run.step_seconds.empty()) return std::nullopt;
  double all = 0;
  for (const auto& [attempt, seconds] : run.step_seconds) all += seconds;
  return std::max(0.0, all - *survived);
}

/// Of all devices and of one, as far as one follows from the other.
void describe_throughput(const store::RecordedRun& run, Efficiency& result) {
  const store::StepColumns& steps = run.steps;
  result.tokens_per_second = median_rate(rates_here(run, steps.tokens_per_second));
  result.tokens_per_second_per_device =
      median_rate(rates_here(run, steps.tokens_per_second_per_device));
  if (!result.devices) return;
  if (result.tokens_per_second)
    result.tokens_per_second_per_device = *result.tokens_per_second / *result.devices;
  else if (result.tokens_per_second_per_device)
    result.tokens_per_second = *result.tokens_per_second_per_device * *result.devices;
}

// --- work ---

/// Twice the keys that a query sees on average, added up over the layers: of a whole causal
/// sequence its length.
double lengths_of_layers(const Json& model, double layers, double length) {
  const auto window = number(model, "sliding_window", 1);
  const auto every = number(model, "full_attention_every", 1);
  if (!window || !every || *window >= length) return layers * length;
  const double full = std::floor(layers / *every);
  return full * length + (layers - full) * (2 * *window - std::floor(*window * *window / length));
}

/// As the trainer's `mfu` (model::FlopsPerToken::model_forward and _backward): every matrix product
/// that training needs, the head with them and the look-up not, and the causal half of attention.
/// Sliding attention counts as a shorter sequence.
Quantity flops_per_token(const store::RecordedRun& run) {
  const Json config = parsed(run.config);
  const auto found = config.find("model");
  if (found == config.end() || !found->is_object() || run.n_parameters <= 0) return std::nullopt;
  const Json& model = *found;
  const auto width = number(model, "d_model", 1), layers = number(model, "n_layers", 1);
  const auto length = number(model, "max_sequence_length", 1);
  auto rows = number(model, "embedding_size", 1);
  if (!rows) rows = number(model, "vocab_size", 1);
  const auto tying = model.find("weight_tying");
  if (!width || !layers || !length || !rows || tying == model.end() || !tying->is_boolean())
    return std::nullopt;
  const double look_up = tying->get<bool>() ? 0 : *rows * *width;
  const double products = static_cast<double>(run.n_parameters) - look_up;
  if (products <= 0) return std::nullopt;
  return 6 * (products + *width * lengths_of_layers(model, *layers, *length));
}

constexpr const char* kFlopsFormula =
    "6 (N + n_layers d_model T) FLOP per token: N the parameters with the head and without the "
    "embedding look-up, T = max_sequence_length, causal attention; of sliding attention T is "
    "twice the keys that a query sees on average";

// --- energy ---

using Rows = std::vector<store::EnergyRecord>;

/// Those of `rows` that measured something of one of these kinds.
Rows of_kinds(const Rows& rows, const std::vector<std::string>& kinds) {
  Rows found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found), [&](const auto& row) {
    return store::is_measured(row) && std::ranges::find(kinds, row.covers) != kinds.end();
  });
  return found;
}

/// What an attempt measured by hosts, of each the sensors of the widest coverage: a node holds its
/// packages and devices. Empty: that host measured nothing.
std::vector<Rows> widest_of_hosts(const Rows& attempt) {
  std::map<std::string, Rows> hosts;
  for (const auto& row : attempt)
    if (row.covers != "job") hosts[row.host].push_back(row);
  std::vector<Rows> chosen;
  for (const auto& [host, rows] : hosts) {
    chosen.push_back(of_kinds(rows, {"node"}));
    if (chosen.back().empty()) chosen.back() = of_kinds(rows, {"package", "device"});
  }
  return chosen;
}

bool all_nodes(const std::vector<Rows>& hosts) {
  return !hosts.empty() && std::ranges::all_of(hosts, [](const Rows& rows) {
    return !rows.empty() && rows.front().covers == "node";
  });
}

double mean_seconds(const Rows& rows) {
  double sum = 0;
  for (const auto& row : rows) sum += row.seconds.value_or(0) / static_cast<double>(rows.size());
  return sum;
}

/// What is added up, and for how long it was measured.
struct MeasuredEnergy {
  Rows rows;
  double seconds = 0;  ///< of all attempts, of each the mean over its hosts
};

/// Of each attempt the sensors of its hosts or, where not every host has a counter of its node, the
/// job's, which holds all hosts and all attempts within it.
MeasuredEnergy chosen_energy(const Rows& rows) {
  std::map<std::int64_t, Rows> attempts;
  for (const auto& row : rows) attempts[row.attempt].push_back(row);
  std::set<std::string> jobs;
  for (const auto& [attempt, of_attempt] : attempts) {
    if (all_nodes(widest_of_hosts(of_attempt))) continue;
    for (const auto& job : of_kinds(of_attempt, {"job"})) jobs.insert(job.device);
  }
  const auto is_chosen_job = [&](const store::EnergyRecord& row) {
    return row.covers == "job" && jobs.contains(row.device);
  };
  MeasuredEnergy found;
  for (const auto& [attempt, of_attempt] : attempts) {
    if (std::ranges::any_of(of_attempt, is_chosen_job)) {
      std::ranges::copy_if(of_attempt, std::back_inserter(found.rows), is_chosen_job);
      continue;
    }
    const auto hosts = widest_of_hosts(of_attempt);
    for (const Rows& host : hosts) {
      found.rows.insert(found.rows.end(), host.begin(), host.end());
      if (!host.empty()) found.seconds += mean_seconds(host) / static_cast<double>(hosts.size());
    }
  }
  found.rows = store::sum_by_sensor(found.rows);
  std::erase_if(found.rows, [](const auto& row) { return !row.joules; });
  return found;
}

/// "nvml gpu0 (device), rapl package-0 (package)", or why nothing was measured.
std::string method_of(const Rows& chosen, const Rows& sums) {
  if (sums.empty()) return "not measured: the run has no record of energy";
  std::string text;
  const bool several =
      std::ranges::any_of(chosen, [&](const auto& row) { return row.host != chosen.front().host; });
  for (const auto& row : chosen)
    text += (text.empty() ? "" : ", ") + (several ? row.host + ": " : "") + row.source + " " +
            row.device + " (" + row.covers + ")";
  if (!text.empty()) return text;
  for (const auto& row : sums)
    text += (text.empty() ? "not measured: " : "; ") + row.source + ": " + row.note;
  return text;
}

void add_energy(const store::RecordedRun& run, Efficiency& result) {
  result.sources = store::sum_by_sensor(run.energy);
  const auto [chosen, seconds] = chosen_energy(run.energy);
  result.energy_method = method_of(chosen, result.sources);
  for (const auto& row : chosen) result.joules = result.joules.value_or(0) + *row.joules;
  const bool jobs =
      std::ranges::any_of(chosen, [](const auto& row) { return row.covers == "job"; });
  if (seconds > 0 && !jobs && result.attempt_seconds)
    result.energy_coverage = std::min(1.0, seconds / *result.attempt_seconds);
}

/// A peak of the cluster file is stated, one of the record measured (records of version 0.1 do not
/// say so): both are shown, as a utilisation is of either.
void add_peaks(const Json& environment, const Cluster& cluster, Efficiency& result) {
  if (cluster.peak_flops) result.peaks.push_back({*cluster.peak_flops, cluster.peak_source, {}});
  const std::string source = word(environment, "peak_source");
  if (const auto peak = number(environment, "peak_flops", 1))
    result.peaks.push_back(
        {*peak,
         source.empty() ? "measured: matrix products, briefly before training" : source,
         {}});
  for (Peak& peak : result.peaks)
    peak.mfu = model_flops_utilisation(result.tokens_per_second, result.flops_per_token,
                                       result.devices, peak.flops);
  result.peak_source = source;  // why there is none
  if (result.peaks.empty()) return;
  result.peak_flops = result.peaks.front().flops;
  result.peak_source = result.peaks.front().source;
  result.mfu = result.peaks.front().mfu;
}

Quantity thousandfold(Quantity value) { return value ? Quantity(*value * 1000) : std::nullopt; }

}  // namespace

Quantity mfu_of_one_token(const store::RecordedRun& run, const store::AttemptRecord& attempt) {
  return model_flops_utilisation(1, flops_per_token(run), devices_of(run, attempt),
                                 number(parsed(attempt.environment), "peak_flops", 1));
}

Efficiency efficiency_of(const store::RecordedRun& run, const Cluster& cluster) {
  Efficiency result;
  result.cluster = cluster;
  const Json environment = store::environment_of(run);
  result.world = world_of(run);
  describe_devices(run, result);
  result.tokens = tokens_trained(run);
  result.train_seconds = seconds_of_steps(run.steps);
  const RunTime time = time_of(run);
  result.attempt_seconds = time.seconds;
  result.hours_note = time.note;
  result.redone_seconds = seconds_redone(run, result.train_seconds);
  describe_throughput(run, result);

  result.flops_per_token = flops_per_token(run);
  if (result.flops_per_token) result.flops_formula = kFlopsFormula;
  add_peaks(environment, cluster, result);
  if (result.mfu && *result.mfu > 1)
    result.mfu_note = "above 100 %: the peak is not this machine's, or was measured too low";

  add_energy(run, result);
  result.device_hours =
      time.seconds ? time.device_hours : device_hours(result.train_seconds, result.devices);
  result.cost = cost(result.device_hours, cluster.price_per_device_hour);
  const auto mwh = megawatt_hours(result.joules);
  result.kwh = thousandfold(mwh);
  result.facility_kwh = facility_energy(result.kwh, cluster.pue);
  result.carbon_kg = thousandfold(carbon_tonnes(mwh, cluster.pue, cluster.kg_per_kwh));
  result.carbon_kg_market =
      thousandfold(carbon_tonnes(mwh, cluster.pue, cluster.kg_per_kwh_market));
  // Joules of a part of the time are not those of all tokens.
  constexpr double kMeasuredThroughout = 0.9;
  if (result.energy_coverage.value_or(1) >= kMeasuredThroughout)
    result.tokens_per_joule = tokens_per_joule(result.tokens, result.joules);
  return result;
}

}  // namespace olmo::report
