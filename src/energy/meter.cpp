#include "energy/meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <utility>

#include "core/clock.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/number.h"
#include "core/text/safe_text.h"

namespace olmo::energy {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenSamples = std::chrono::seconds(1);
/// A month of a node with eight devices is some 100 MB at this rate.
constexpr int kSamplesPerPowerRow = 10;

std::optional<std::string> slurm_job() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return job != nullptr ? std::optional<std::string>(job) : std::nullopt;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 20 && std::ranges::all_of(text, is_digit);
}

struct Answer {
  bool succeeded = false;
  std::string text = {};
};

/// What a shell command writes, at most 64 KiB.
Answer answer_of(const std::string& command) {
  constexpr std::size_t kMost = 65536;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 1024> part{};
  std::size_t size = 0;
  while (text.size() < kMost && (size = std::fread(part.data(), 1, part.size(), pipe)) > 0)
    text.append(part.data(), size);
  return {::pclose(pipe) == 0, text};
}

/// The largest number that is a line of its own: the job's, as its steps are parts of it.
std::uint64_t largest_line(const std::string& text) {
  std::uint64_t largest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (is_number(line)) largest = std::max<std::uint64_t>(largest, std::stoull(line));
  }
  return largest;
}

}  // namespace

struct EnergyMeter::Shared {
  std::mutex mutex;
  std::condition_variable wake;  ///< of the thread
  std::condition_variable gone;  ///< the thread has ended
  bool ending = false;           ///< guarded by mutex, as what follows
  bool ended = false;
  EnergyReadings readings;  ///< that nobody has taken yet

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
      [](const EnergySources& sources) { return open_rocm_smi(sources.sysfs, sources.rocm_smi); },
  };
  return kSensors;
}

EnergyMeter::~EnergyMeter() { end_thread(); }

void EnergyMeter::run(Shared& shared, const EnergySources& sources) {
  const auto start = Clock::now();
  std::vector<EnergyTally> tallies;
  const auto sample = [&](EnergyTally& tally) { tally.sample(seconds_since(start)); };
  for (const auto open : all_sensors()) {
    for (auto& channel : open(sources)) sample(tallies.emplace_back(std::move(channel)));
  }
  auto next = start;
  bool more = true;
  for (std::int64_t samples = 1; more; ++samples) {
    // A sensor that blocks must not be made up for.
    next = std::max(next + kBetweenSamples, Clock::now());
    more = shared.wait_until(next);
    std::ranges::for_each(tallies, sample);
    const std::lock_guard lock(shared.mutex);
    auto& [energy, power] = shared.readings;
    energy.clear();
    for (const auto& tally : tallies) energy.push_back(tally.record());
    if (more && samples % kSamplesPerPowerRow != 0) continue;
    for (auto& tally : tallies) {
      if (auto row = tally.power()) power.push_back(std::move(*row));
    }
  }
  if (!sources.asks_job) return;
  auto slurm = ask_slurm(slurm_job(), sources.sacct);
  const std::lock_guard lock(shared.mutex);
  shared.readings.energy.push_back(std::move(slurm));
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

EnergyReadings EnergyMeter::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->readings, {});
}

EnergyReadings EnergyMeter::finish() {
  end_thread();
  return take();
}

EnergyTally::EnergyTally(EnergyChannel channel) : channel_(std::move(channel)) {}

std::optional<double> EnergyTally::between(const Reading& before, const Reading& after) const {
  const double seconds = after.seconds - before.seconds;
  double joules = channel_.kind == EnergyChannel::Kind::kPower
                      ? (before.value + after.value) / 2 * seconds
                      : after.value - before.value;
  if (joules < 0) joules += channel_.wraps_at;
  return joules >= 0 && joules <= kMostWatts * std::max(1.0, seconds) ? std::optional(joules)
                                                                      : std::nullopt;
}

void EnergyTally::sample(double seconds) {
  if (!channel_.read) return;
  const auto value = channel_.read();
  if (!value || !(std::isfinite(*value) && *value >= 0)) {
    // A counter goes on by itself; what power was meanwhile nobody knows.
    if (channel_.kind == EnergyChannel::Kind::kPower) last_.reset();
    return;
  }
  samples_ += 1;
  const Reading now{seconds, *value};
  if (last_) {
    if (const auto joules = between(*last_, now)) {
      joules_ += *joules;
      seconds_ += now.seconds - last_->seconds;
    } else {
      resets_ += 1;
    }
  }
  last_ = now;
}

std::optional<store::PowerSample> EnergyTally::power() {
  if (!last_ || !(seconds_ > told_seconds_)) return std::nullopt;
  store::PowerSample sample{.seconds = last_->seconds,
                            .source = channel_.source,
                            .device = channel_.device,
                            .watts = (joules_ - told_joules_) / (seconds_ - told_seconds_)};
  told_joules_ = joules_;
  told_seconds_ = seconds_;
  return sample;
}

store::EnergyRecord EnergyTally::record() const {
  store::EnergyRecord row{.source = channel_.source,
                          .device = channel_.device,
                          .covers = channel_.covers,
                          .samples = samples_,
                          .note = channel_.note};
  if (joules_ > 0) {
    row.joules = joules_;
    row.seconds = seconds_;
  } else if (channel_.read) {
    row.note += samples_ < 2 ? "; not read twice yet" : "; it has not moved";
  }
  if (resets_ > 0)
    row.note += "; without " + std::to_string(resets_) + " intervals in which it was reset";
  return row;
}

store::EnergyRecord ask_slurm(const std::optional<std::string>& job, const std::string& sacct) {
  store::EnergyRecord row{.source = "slurm", .device = "job", .covers = "job"};
  if (!job || !is_number(*job)) {
    row.note = "SLURM_JOB_ID names no job";
    return row;
  }
  row.device += "-" + *job;
  const auto timeout = find_program("timeout");
  const auto program = find_program(sacct);
  // -k: killed a second later, if it ignores the request to end.
  const Answer answer = timeout && program ? answer_of(*timeout + " -k 1 5 '" + *program + "' -j " +
                                                       *job + " -n -P -o ConsumedEnergyRaw 2>&1")
                                           : Answer{};
  if (!answer.succeeded) {
    const auto why = safe_line(answer.text.substr(0, answer.text.find('\n')));
    row.note = "sacct did not answer" + (why.empty() ? "" : ": " + why);
    return row;
  }
  row.samples = 1;
  const auto joules = largest_line(answer.text);
  if (joules > 0) row.joules = static_cast<double>(joules);
  row.note = joules > 0
                 ? "the whole job until this attempt's end, with its other attempts"
                 : "sacct reports 0: Slurm counts no energy here, or not before the job ends";
  return row;
}

}  // namespace olmo::energy
