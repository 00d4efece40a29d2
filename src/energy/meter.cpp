#include "energy/meter.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/log.h"
#include "energy/slurm.h"
#include "energy/tally.h"

namespace olmo::energy {
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

struct EnergyMeter::Shared {
  std::mutex mutex;
  std::condition_variable wake;  ///< of the thread
  std::condition_variable gone;  ///< the thread has ended
  bool ending = false;           ///< guarded by mutex, as what follows
  bool ended = false;
  std::vector<store::EnergyRecord> energy;  ///< what record() has not seen yet
  std::vector<store::PowerSample> power;

  bool wait_until(Clock::time_point next) {
    std::unique_lock lock(mutex);
    return !wake.wait_until(lock, next, [this] { return ending; });
  }
};

EnergyMeter::EnergyMeter(EnergySources sources)
    : shared_(std::make_shared<Shared>()), patience_(sources.patience) {
  try {
    thread_ = std::thread([shared = shared_, sources = std::move(sources)] {
      try {
        run(*shared, sources);
      } catch (const std::exception& error) {  // no figure of ours is worth a training
        log_warning(std::string("energy is not measured any more: ") + error.what());
      }
      const std::lock_guard lock(shared->mutex);
      shared->ended = true;
      shared->gone.notify_all();
    });
  } catch (const std::system_error& error) {
    log_warning(std::string("energy is not measured: ") + error.what());
  }
}

std::span<const OpenSensor> all_sensors() {
  static constexpr std::array<OpenSensor, 4> kSensors = {
      [](const EnergySources& sources) { return open_pm_counters(sources.sysfs); },
      [](const EnergySources& sources) { return open_rapl(sources.sysfs); },
      [](const EnergySources& sources) { return open_nvml(sources.nvml); },
      [](const EnergySources& sources) { return open_rocm_smi(sources.rocm_smi); },
  };
  return kSensors;
}

EnergyMeter::~EnergyMeter() { end_thread(); }

void EnergyMeter::run(Shared& shared, const EnergySources& sources) {
  const auto start = Clock::now();
  Tallies tallies(start);
  for (const auto open : all_sensors()) tallies.add(open(sources));
  auto next = start;
  bool more = true;
  for (std::int64_t samples = 1; more; ++samples) {
    // A sensor that blocks must not be made up for.
    next = std::max(next + kBetweenSamples, Clock::now());
    more = shared.wait_until(next);
    tallies.sample();
    const std::lock_guard lock(shared.mutex);
    shared.energy = tallies.energy();
    if (!more || samples % kSamplesPerPowerRow == 0) tallies.append_power(shared.power);
  }
  auto slurm = ask_slurm(slurm_job(), sources.sacct);
  const std::lock_guard lock(shared.mutex);
  shared.energy.push_back(std::move(slurm));
}

void EnergyMeter::end_thread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->wake.notify_all();
  const bool ended = shared_->gone.wait_for(lock, patience_, [this] { return shared_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
    return;
  }
  thread_.detach();  // it waits for a driver, maybe for ever, and owns all that it touches
  log_warning("an energy sensor does not answer; what it had measured before is in the record");
}

void EnergyMeter::record(store::RunDb& db) {
  std::vector<store::EnergyRecord> energy;
  std::vector<store::PowerSample> power;
  {
    const std::lock_guard lock(shared_->mutex);
    energy.swap(shared_->energy);
    power.swap(shared_->power);
  }
  if (!power.empty()) db.record_power(power);
  if (!energy.empty()) db.record_energy(energy);
}

void EnergyMeter::finish(store::RunDb& db) {
  end_thread();
  record(db);
}

}  // namespace olmo::energy
