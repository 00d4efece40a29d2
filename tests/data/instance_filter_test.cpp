#include "data/instance_filter.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::Json;
using Ids = std::vector<std::int64_t>;

TEST_CASE("periodic runs equal OLMo's", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("filter");
  for (const Json& row : golden) {
    const auto ids = row.at("ids").get<Ids>();
    INFO(row.dump());
    std::vector<std::vector<std::int64_t>> runs;
    for (const PeriodicRun& run : find_periodic_runs(ids, 13))
      runs.push_back({run.start, run.end, run.period, run.times});
    CHECK(runs == row.at("runs").get<std::vector<std::vector<std::int64_t>>>());
  }
}

TEST_CASE("an instance is masked from repetition_max_count repeats on", "[data]") {
  Ids ids(100, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(1000 + i);
  std::fill(ids.begin() + 20, ids.begin() + 52, 7);  // 32 times
  const InstanceFilterConfig config;
  CHECK_FALSE(keep_instance(ids, config));
  ids[51] = 8;  // 31 times
  CHECK(keep_instance(ids, config));
}

TEST_CASE("periods outside the configured range are not looked at", "[data]") {
  const Ids ids(64, 7);
  CHECK_FALSE(keep_instance(
      ids, {.repetition_max_period = 1, .repetition_min_period = 1, .repetition_max_count = 32}));
  CHECK(keep_instance(
      ids, {.repetition_max_period = 13, .repetition_min_period = 3, .repetition_max_count = 32}));
}
