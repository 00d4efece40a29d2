#include "train/world_record.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/compute/gpu.h"
#include "core/compute/machine.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process_identity.h"
#include "dist/exchange.h"
#include "store/runs/recorded_run.h"

namespace olmo::train {
namespace {

constexpr std::chrono::seconds kBetweenRecords{60};

std::string text_of(const RankFacts& facts) {
  return json_text(Json::array(
      {facts.host, facts.machine, facts.pid, facts.device, facts.processor, facts.threads}));
}

RankFacts parse_facts(const std::string& text) {
  const Json json = Json::parse(text);
  return {json[0], json[1], json[2], json[3], json[4], json[5]};
}

RankFacts facts_of(const Policy& policy) {
  const ProcessIdentity process = own_identity();
  RankFacts facts;
  facts.host = process.host;
  facts.machine = process.machine();
  facts.pid = process.pid;
  facts.device = to_string(policy.device);
  facts.processor = policy.gpu != nullptr ? policy.gpu->name() + " at " + policy.gpu->bus()
                                          : environment().value("cpu", std::string());
  facts.threads = policy.threads;
  return facts;
}

std::string text_of(const energy::EnergyReadings& readings) {
  Json energy = Json::array(), power = Json::array();
  for (const auto& row : readings.energy)
    energy.push_back({row.source, row.device, row.covers, or_null(row.joules), or_null(row.seconds),
                      row.samples, row.note});
  for (const auto& row : readings.power)
    power.push_back({row.source, row.device, row.seconds, row.watts});
  return json_text(Json{{"energy", energy}, {"power", power}});
}

energy::EnergyReadings parse_readings(const std::string& text) {
  const Json json = Json::parse(text);
  energy::EnergyReadings readings;
  const auto number = [](const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
  };
  for (const Json& row : json["energy"]) {
    store::EnergyRecord record{.source = row[0], .device = row[1], .covers = row[2]};
    record.joules = number(row[3]);
    record.seconds = number(row[4]);
    record.samples = row[5];
    record.note = row[6];
    readings.energy.push_back(std::move(record));
  }
  for (const Json& row : json["power"]) {
    store::PowerSample sample{.seconds = row[2], .source = row[0], .device = row[1]};
    sample.watts = row[3];
    readings.power.push_back(std::move(sample));
  }
  return readings;
}

}  // namespace

std::vector<store::RankRecord> describe_ranks(const std::vector<RankFacts>& facts) {
  std::map<std::string, std::string> hosts;  // name by machine
  std::set<std::string> taken;
  std::map<std::string, std::int64_t> local;
  std::vector<store::RankRecord> rows;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const RankFacts& each = facts[rank];
    if (!hosts.contains(each.machine)) {
      std::string name = each.host;
      for (int number = 2; !taken.insert(name).second; ++number)
        name = each.host + " (" + std::to_string(number) + ")";
      hosts[each.machine] = name;
    }
    store::RankRecord row;
    row.rank = static_cast<std::int64_t>(rank);
    row.host = hosts[each.machine];
    row.local_rank = local[each.machine]++;
    row.pid = each.pid;
    row.device = each.device;
    row.processor = each.processor;
    row.threads = each.threads;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<store::RankRecord> describe_world(dist::Communicator& ranks, const Policy& policy) {
  std::vector<RankFacts> facts;
  for (const auto& text : dist::all_gather_text(ranks, text_of(facts_of(policy))))
    facts.push_back(parse_facts(text));
  return describe_ranks(facts);
}

int ranks_beside(const std::vector<store::RankRecord>& world, int rank) {
  const std::string& host = world[static_cast<std::size_t>(rank)].host;
  return static_cast<int>(std::ranges::count(world, host, &store::RankRecord::host));
}

WorldRecord::WorldRecord(dist::Communicator& ranks, Recorder& recorder,
                         std::vector<store::RankRecord> world, energy::EnergySources sources)
    : ranks_(ranks),
      recorder_(recorder),
      sums_(std::move(world)),
      interval_(static_cast<std::size_t>(ranks.size())) {
  OLMO_CHECK(sums_.size() == interval_.size());
  one_machine_ =
      std::ranges::all_of(sums_, [&](const auto& rank) { return rank.host == sums_.front().host; });
  if (is_first_of_machine()) {
    sources.asks_job = ranks.rank() == 0;  // Slurm counts the job with all its machines
    meter_.emplace(std::move(sources));
  }
  recorder_.record_ranks(sums_);
}

std::int64_t WorldRecord::devices() const { return store::devices_of(sums_); }

bool WorldRecord::is_first_of_machine() const {
  return sums_[static_cast<std::size_t>(ranks_.rank())].local_rank == 0;
}

bool WorldRecord::is_due() const {
  return std::chrono::steady_clock::now() - recorded_ >= kBetweenRecords;
}

void WorldRecord::add(std::int64_t step, const std::vector<StepReport>& reports) {
  if (steps_ == 0) first_step_ = step;
  last_step_ = step;
  ++steps_;
  std::size_t slowest = 0;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const StepTimes& times = reports[rank].times;
    if (times.own() > reports[slowest].times.own()) slowest = rank;
    for (std::size_t i = 0; i < kPhases; ++i) interval_[rank].seconds[i] += times.seconds[i];
    store::RankRecord& sum = sums_[rank];
    sum.steps += 1;
    sum.data_seconds += times.of(Phase::kData);
    sum.compute_seconds += times.of(Phase::kCompute);
    sum.gather_seconds += times.of(Phase::kGather);
    sum.exchange_seconds += times.of(Phase::kExchange);
    sum.save_seconds += times.of(Phase::kSave);
    sum.wait_seconds += times.of(Phase::kWait);
    sum.gathered_bytes += times.gathered_bytes;
    sum.exchanged_bytes += times.exchanged_bytes;
  }
  sums_[slowest].slowest_steps += 1;
  if (meter_ && ranks_.rank() == 0) record_energy(meter_->take(), 0);
}

void WorldRecord::record() {
  record_times();
  if (!one_machine_) record_energy_of_all(meter_ ? meter_->take() : energy::EnergyReadings());
  recorded_ = std::chrono::steady_clock::now();
}

void WorldRecord::finish(bool together) {
  record_times();
  const auto readings = meter_ ? meter_->finish() : energy::EnergyReadings();
  if (one_machine_ || !together) {
    if (ranks_.rank() == 0) record_energy(readings, 0);
  } else {
    record_energy_of_all(readings);
  }
}

void WorldRecord::record_times() {
  recorder_.record_ranks(sums_);
  if (steps_ == 0) return;
  std::vector<store::PhaseRecord> rows;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto less = [i](const StepTimes& a, const StepTimes& b) {
      return a.seconds[i] < b.seconds[i];
    };
    const auto [least, most] = std::ranges::minmax_element(interval_, less);
    const auto steps = static_cast<double>(steps_);
    double sum = 0;
    for (const StepTimes& times : interval_) sum += times.seconds[i];
    store::PhaseRecord row{.first_step = first_step_, .last_step = last_step_};
    row.phase = to_string(static_cast<Phase>(i));
    row.mean = sum / static_cast<double>(interval_.size()) / steps;
    row.least = least->seconds[i] / steps;
    row.most = most->seconds[i] / steps;
    row.rank = most - interval_.begin();
    rows.push_back(std::move(row));
  }
  recorder_.record_phases(rows);
  std::ranges::fill(interval_, StepTimes());
  steps_ = 0;
}

void WorldRecord::record_energy(energy::EnergyReadings readings, std::size_t rank) {
  for (auto& row : readings.energy) row.host = sums_[rank].host;
  for (auto& row : readings.power) row.host = sums_[rank].host;
  recorder_.record_energy(readings.energy, readings.power);
}

void WorldRecord::record_energy_of_all(const energy::EnergyReadings& mine) {
  const auto texts = dist::all_gather_text(ranks_, text_of(mine));
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    record_energy(parse_readings(texts[rank]), rank);
}

}  // namespace olmo::train
