#include "train/energy/meter.h"

#include <cstdlib>

#include "core/log.h"
#include "train/energy/slurm.h"
#include "train/energy/tally.h"

namespace olmo::train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenSamples = std::chrono::seconds(1);
/// A month of a node with eight devices is some 100 MB at this rate.
constexpr int kSamplesPerPowerRow = 10;

/// The channels of one kind of sensor, each read as soon as they are open.
class Tallies {
 public:
  explicit Tallies(Clock::time_point start) : start_(start) {}

  void add(std::vector<EnergyChannel> channels) {
    for (auto& channel : channels) {
      tallies_.emplace_back(std::move(channel));
      tallies_.back().sample(now());
    }
  }
  void sample() {
    for (auto& tally : tallies_) tally.sample(now());
  }
  [[nodiscard]] std::vector<store::EnergyRecord> energy() const {
    std::vector<store::EnergyRecord> rows;
    for (const auto& tally : tallies_) rows.push_back(tally.record());
    return rows;
  }
  void append_power(std::vector<store::PowerSample>& rows) {
    for (auto& tally : tallies_) {
      if (auto row = tally.power()) rows.push_back(std::move(*row));
    }
  }

 private:
  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  Clock::time_point start_;
  std::vector<EnergyTally> tallies_;
};

std::optional<std::string> slurm_job() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return job != nullptr ? std::optional<std::string>(job) : std::nullopt;
}

}  // namespace

EnergyMeter::EnergyMeter(EnergySources sources) {
  try {
    thread_ = std::thread([this, sources = std::move(sources)] {
      try {
        run(sources);
      } catch (const std::exception& error) {  // no figure of ours is worth a training
        log_warning(std::string("energy is not measured any more: ") + error.what());
      }
    });
  } catch (const std::system_error& error) {
    log_warning(std::string("energy is not measured: ") + error.what());
  }
}

EnergyMeter::~EnergyMeter() { end_thread(); }

void EnergyMeter::run(const EnergySources& sources) {
  const auto start = Clock::now();
  Tallies tallies(start);
  tallies.add(open_pm_counters(sources.sysfs));
  tallies.add(open_rapl(sources.sysfs));
  tallies.add(open_nvml(sources.nvml));
  tallies.add(open_rocm_smi(sources.rocm_smi));
  auto next = start;
  bool more = true;
  for (std::int64_t samples = 1; more; ++samples) {
    // A sensor that blocks must not be made up for.
    next = std::max(next + kBetweenSamples, Clock::now());
    more = wait_until(next);
    tallies.sample();
    const std::lock_guard lock(mutex_);
    energy_ = tallies.energy();
    if (!more || samples % kSamplesPerPowerRow == 0) tallies.append_power(power_);
  }
  auto slurm = ask_slurm(slurm_job(), sources.sacct);
  const std::lock_guard lock(mutex_);
  energy_.push_back(std::move(slurm));
}

bool EnergyMeter::wait_until(Clock::time_point next) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_until(lock, next, [this] { return ending_; });
}

void EnergyMeter::end_thread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EnergyMeter::record(store::RunDb& db) {
  std::vector<store::EnergyRecord> energy;
  std::vector<store::PowerSample> power;
  {
    const std::lock_guard lock(mutex_);
    energy.swap(energy_);
    power.swap(power_);
  }
  if (!power.empty()) db.record_power(power);
  if (!energy.empty()) db.record_energy(energy);
}

void EnergyMeter::finish(store::RunDb& db) {
  end_thread();
  record(db);
}

}  // namespace olmo::train
