#include "report/training/published_noise.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "report/training/decimals.h"

namespace olmo::report {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::kInput, path + ": " + what);
}

/// A key that is misspelt would else be as if it were not there.
void refuse_unknown_keys(const Json& object, const std::set<std::string>& known,
                         const std::string& of, const std::string& path) {
  for (const auto& [key, value] : object.items())
    if (!known.contains(key))
      refuse(path, "unknown key `" + key + "` " + of + "; expected " +
                       joined(std::vector<std::string>(known.begin(), known.end())));
}

double positive(const Json& entry, const char* key, const std::string& path) {
  if (!entry.contains(key) || !entry[key].is_number() || !(entry[key].get<double>() > 0))
    refuse(path, std::string("each of `deviations` needs a positive number `") + key + "`, got " +
                     entry.dump());
  return entry[key].get<double>();
}

/// The larger of two sizes over the smaller.
double ratio(double a, double b) { return std::max(a, b) / std::min(a, b); }

}  // namespace

PublishedNoise read_noise(const std::string& path) {
  const Json json = read_json_file(path);
  if (!json.is_object() || !json.contains("source") || !json["source"].is_string() ||
      json["source"].get<std::string>().empty() || !json.contains("deviations") ||
      !json["deviations"].is_array() || json["deviations"].empty())
    refuse(path, "expected an object with a text `source` and a list `deviations`");
  refuse_unknown_keys(json, {"source", "deviations"}, "of the file", path);
  PublishedNoise noise{.source = json["source"]};
  for (const Json& entry : json["deviations"]) {
    if (!entry.is_object() || !entry.contains("metric") || !entry["metric"].is_string())
      refuse(path, "each of `deviations` needs a text `metric`, got " + entry.dump());
    refuse_unknown_keys(entry, {"metric", "parameters", "tokens", "deviation", "runs"},
                        "of one of `deviations`", path);
    PublishedDeviation& found = noise.deviations.emplace_back();
    found.metric = entry["metric"];
    found.parameters = positive(entry, "parameters", path);
    found.tokens = positive(entry, "tokens", path);
    found.deviation = positive(entry, "deviation", path);
    if (!entry.contains("runs")) continue;
    if (!entry["runs"].is_number_integer() || entry["runs"] < 2)
      refuse(path, "`runs` must be a whole number from 2 on, got " + entry["runs"].dump());
    found.runs = entry["runs"];
  }
  return noise;
}

const PublishedDeviation* deviation_for(const PublishedNoise& noise, const std::string& metric,
                                        double parameters, double tokens) {
  const PublishedDeviation* nearest = nullptr;
  double least = INFINITY;
  for (const auto& entry : noise.deviations) {
    const double by_parameters = ratio(entry.parameters, parameters);
    const double by_tokens = ratio(entry.tokens, tokens);
    if (entry.metric != metric || !(by_parameters <= kSameSize) || !(by_tokens <= kSameSize))
      continue;
    if (by_parameters * by_tokens >= least) continue;
    least = by_parameters * by_tokens;
    nearest = &entry;
  }
  return nearest;
}

Test with_published_noise(const Test& pair, const PublishedDeviation& deviation,
                          const std::string& source) {
  constexpr double kManyRuns = 1e6;  // without `runs`: as if it were known exactly
  const double degrees = deviation.runs ? static_cast<double>(*deviation.runs - 1) : kManyRuns;
  const double within = pair.endpoint == Endpoint::kLoss ? pair.standard_error.value_or(0) : 0;
  const Estimate estimate{pair.estimate, std::hypot(std::sqrt(2.0) * deviation.deviation, within),
                          degrees};
  Test test = pair;
  test.method = "one run a side, published deviation between runs";
  test.noise = source;
  test.interval90 = widened(estimate.interval(0.90), pair.hidden);
  test.interval95 = widened(estimate.interval(0.95), pair.hidden);
  test.p = estimate.p(pair.hidden);
  test.standard_error = estimate.error;
  test.degrees_of_freedom = degrees;
  test.equal_bits = false;
  return test;
}

}  // namespace olmo::report
