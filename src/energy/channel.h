#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace olmo::energy {

/// One device or part whose energy a sensor measures: a row of the table `energy`.
struct EnergyChannel {
  enum class Kind {
    kCounter,  ///< joules since some moment
    kPower,    ///< watts now
  };

  std::string source;     ///< nvml, rocm_smi, rapl, pm_counters, slurm
  std::string device;     ///< gpu0, package-0, node, job-123
  std::string covers;     ///< device, package, node, job
  std::string note = {};  ///< what to know about its figures, or why there are none
  Kind kind = Kind::kCounter;
  double wraps_at = 0;  ///< joules after which the counter begins again at 0; 0: never
  /// Returns the present value, or nothing if there is no new one. An empty function means that
  /// this machine does not measure it. The function owns what it reads from.
  std::function<std::optional<double>()> read = {};
};

/// Where to look for sensors. Tests name folders and libraries of their own.
struct EnergySources {
  std::filesystem::path sysfs = "/sys";
  std::vector<std::string> nvml = {"libnvidia-ml.so.1"};  ///< the first that can be loaded
  std::vector<std::string> rocm_smi = {"librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so"};
  std::string sacct = "sacct";
  bool asks_job = true;  ///< asks Slurm for the energy of the whole job, at the end
  std::chrono::milliseconds patience{
      10'000};  ///< with all of them at the end; more than Slurm is given
};

// Each function returns at least one channel. A sensor that is absent gives a channel without
// `read`, whose note says why, so that the record explains the missing joules.

/// Linux's powercap: processor packages and memory.
std::vector<EnergyChannel> open_rapl(const std::filesystem::path& sysfs);
/// HPE Cray's counter of the whole node.
std::vector<EnergyChannel> open_pm_counters(const std::filesystem::path& sysfs);
/// NVIDIA's management library.
std::vector<EnergyChannel> open_nvml(const std::vector<std::string>& libraries);
/// AMD's management library. Where its driver is not loaded, it is not opened: installed with other
/// software, it would write errors of its own to the terminal.
std::vector<EnergyChannel> open_rocm_smi(const std::filesystem::path& sysfs,
                                         const std::vector<std::string>& libraries);

/// The functions above, in the order in which they are tried: the one list of all sensors.
using OpenSensor = std::vector<EnergyChannel> (*)(const EnergySources&);
std::span<const OpenSensor> all_sensors();

}  // namespace olmo::energy
