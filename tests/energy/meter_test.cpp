// Sensors on fake trees of /sys and on small libraries that take the vendors' place.
#include "energy/meter.h"

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/happens.h"
#include "support/temporary_directory.h"

namespace olmo::energy {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// As the kernel's files, it never is there without its text: a meter in another thread may read it
/// at any moment.
void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  const fs::path temporary = path.string() + ".new";
  std::ofstream(temporary) << text;
  fs::rename(temporary, path);
}

void write_zone(const fs::path& sysfs, const std::string& zone, const std::string& name,
                const std::string& microjoules) {
  const fs::path folder = sysfs / "class" / "powercap" / zone;
  write(folder / "name", name + "\n");
  write(folder / "energy_uj", microjoules + "\n");
  write(folder / "max_energy_range_uj", "262143328850\n");
}

/// A channel that reads the values of a list, one a sample.
EnergyChannel listed(std::vector<std::optional<double>> values, EnergyChannel::Kind kind,
                     double wraps_at = 0) {
  return {.source = "rapl",
          .device = "package-0",
          .covers = "package",
          .note = "test",
          .kind = kind,
          .wraps_at = wraps_at,
          .read = [values, i = std::size_t{0}]() mutable {
            return i < values.size() ? values[i++] : std::nullopt;
          }};
}

store::EnergyRecord tallied(EnergyChannel channel, int samples) {
  EnergyTally tally(std::move(channel));
  for (int i = 0; i < samples; ++i) tally.sample(i);
  return tally.record();
}

/// Compiles a library that defines `functions` in C++ with C names.
std::string build_library(const fs::path& folder, const std::string& functions) {
  const fs::path source = folder / "fake.cpp", library = folder / "libfake.so";
  write(source, "extern \"C\" {\n" + functions + "}\n");
  const std::string command =
      "${CXX:-c++} -shared -fPIC -o " + library.string() + " " + source.string();
  REQUIRE(std::system(command.c_str()) == 0);
  return library.string();
}

/// Threads of this process.
std::ptrdiff_t threads_now() {
  const fs::directory_iterator tasks("/proc/self/task");
  return std::distance(fs::begin(tasks), fs::end(tasks));
}

constexpr auto kCounter = EnergyChannel::Kind::kCounter;
constexpr auto kPower = EnergyChannel::Kind::kPower;

}  // namespace

TEST_CASE("a counter that passes its range goes on, one that is reset loses an interval",
          "[energy]") {
  const auto wrapped = tallied(listed({90.0, 95.0, 5.0, 20.0}, kCounter, 100), 4);
  CHECK(wrapped.joules.value() == Approx(30));
  CHECK(wrapped.seconds.value() == Approx(3));
  CHECK(wrapped.samples == 4);

  const auto reset = tallied(listed({90.0, 95.0, 5.0, 20.0}, kCounter), 4);
  CHECK(reset.joules.value() == Approx(20));
  CHECK(reset.seconds.value() == Approx(2));
  CHECK_THAT(reset.note, Contains("1 intervals in which it was reset"));

  // Passing the range would have taken 150 kW.
  const auto jumped = tallied(listed({100e3, 150e3, 0.0, 100.0}, kCounter, 300e3), 4);
  CHECK(jumped.joules.value() == Approx(100));
}

TEST_CASE("a counter goes on over a gap, power does not", "[energy]") {
  const auto counter = tallied(listed({10.0, std::nullopt, 30.0}, kCounter), 3);
  CHECK(counter.joules.value() == Approx(20));
  CHECK(counter.seconds.value() == Approx(2));
  const auto power = tallied(listed({10.0, 20.0, std::nullopt, 40.0, 40.0}, kPower), 5);
  CHECK(power.joules.value() == Approx(15 + 40));
  CHECK(power.seconds.value() == Approx(2));
}

TEST_CASE("what was not measured is absent with a reason, never 0", "[energy]") {
  for (const auto& row :
       {tallied(listed({7.0, 7.0, 7.0}, kCounter), 3), tallied(listed({0.0, 0.0}, kCounter), 2),
        tallied(listed({7.0}, kCounter), 1), tallied(listed({}, kCounter), 3),
        tallied(listed({NAN, -1.0, INFINITY}, kPower), 3)}) {
    CHECK_FALSE(row.joules);
    CHECK_FALSE(row.seconds);
    CHECK(row.note != "test");
  }
}

TEST_CASE("power is the mean since the sample before", "[energy]") {
  EnergyTally tally(listed({0.0, 50.0, 150.0, 150.0}, kCounter));
  tally.sample(0);
  CHECK_FALSE(tally.power());
  tally.sample(1);
  tally.sample(2);
  CHECK(tally.power().value().watts == Approx(75));
  CHECK_FALSE(tally.power());
  tally.sample(3);
  const auto idle = tally.power();
  CHECK(idle.value().watts == 0);
  CHECK(idle->seconds == 3);
}

TEST_CASE("RAPL: packages and memory once, without their parts", "[energy]") {
  const test::TemporaryDirectory sysfs;
  const fs::path& root = sysfs.path();
  write_zone(root, "intel-rapl:0", "package-0", "1000000");
  write_zone(root, "intel-rapl:0:0", "core", "1");
  write_zone(root, "intel-rapl:0:1", "dram", "2000000");
  write_zone(root, "intel-rapl:1", "psys", "3");
  write_zone(root, "intel-rapl-mmio:0", "package-0", "4");
  const auto channels = open_rapl(root);
  REQUIRE(channels.size() == 2);
  CHECK(channels[0].device == "package-0");
  CHECK(channels[0].covers == "package");
  CHECK(channels[0].read().value() == Approx(1));
  CHECK(channels[0].wraps_at == Approx(262143.32885));
  CHECK(channels[1].device == "dram-0");
  CHECK(channels[1].read().value() == Approx(2));
}

TEST_CASE("RAPL that is missing, closed or broken says so", "[energy]") {
  const test::TemporaryDirectory sysfs;
  const auto none = open_rapl(sysfs.path());
  REQUIRE(none.size() == 1);
  CHECK_FALSE(none[0].read);
  CHECK_THAT(none[0].note, Contains("no processor package"));

  write_zone(sysfs.path(), "intel-rapl:0", "package-0", "many");
  CHECK_THAT(open_rapl(sysfs.path())[0].note, Contains("does not hold a number"));
  const fs::path energy = sysfs / "class/powercap/intel-rapl:0/energy_uj";
  if (::geteuid() == 0) {  // root may read everything but a folder
    fs::remove(energy);
    fs::create_directory(energy);
  } else {
    fs::permissions(energy, fs::perms::none);
  }
  const auto closed = open_rapl(sysfs.path());
  CHECK_FALSE(closed[0].read);
  CHECK_THAT(closed[0].note, Contains("energy_uj: ") && Contains("only root"));
}

TEST_CASE("pm_counters: the node's counter while it is fresh", "[energy]") {
  const test::TemporaryDirectory sysfs;
  CHECK_THAT(open_pm_counters(sysfs.path())[0].note, Contains("No such file"));
  const fs::path folder = sysfs / "cray/pm_counters";
  write(folder / "energy", "5000 J\n");
  write(folder / "freshness", "17\n");
  const auto channels = open_pm_counters(sysfs.path());
  REQUIRE(channels.size() == 1);
  CHECK(channels[0].covers == "node");
  CHECK(channels[0].read().value() == 5000);
  CHECK_FALSE(channels[0].read());
  write(folder / "energy", "5300 J\n");
  write(folder / "freshness", "18\n");
  CHECK(channels[0].read().value() == 5300);
}

TEST_CASE("NVML: energy, else power, else a reason", "[energy]") {
  const test::TemporaryDirectory folder;
  const auto library = build_library(folder.path(), R"(
    int nvmlInit_v2() { return 0; }
    int nvmlShutdown() { return 0; }
    int nvmlDeviceGetCount_v2(unsigned* n) { *n = 4; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** device) {
      *device = (void*)(unsigned long)(i + 1); return i == 3 ? 4 : 0; }
    int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* mj) {
      static unsigned long long count = 1000; *mj = count += 500; return device == (void*)1 ? 0 : 3; }
    int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) { *mw = 250000; return device == (void*)2 ? 0 : 3; }
  )");
  const auto channels = open_nvml({"/nowhere/libnvidia-ml.so.1", library});
  REQUIRE(channels.size() == 4);
  const double before = channels[0].read().value();
  CHECK(channels[0].read().value() - before == Approx(0.5));
  CHECK(channels[1].kind == kPower);
  CHECK(channels[1].read().value() == Approx(250));
  CHECK_FALSE(channels[2].read);
  CHECK_THAT(channels[2].note, Contains("neither energy nor power"));
  CHECK_THAT(channels[3].note, Contains("does not give access"));
  const auto absent = open_nvml({"/nowhere/libnvidia-ml.so.1"});
  REQUIRE(absent.size() == 1);
  CHECK_FALSE(absent[0].read);
  CHECK_THAT(absent[0].note, Contains("/nowhere/libnvidia-ml.so.1"));
}

TEST_CASE("ROCm SMI: of an MI250X's two dies one counts for the package", "[energy]") {
  const test::TemporaryDirectory folder;
  const auto library = build_library(folder.path(), R"(
    int rsmi_init(unsigned long) { return 0; }
    int rsmi_shut_down() { return 0; }
    int rsmi_num_monitor_devices(unsigned* n) { *n = 2; return 0; }
    int rsmi_dev_id_get(unsigned, unsigned short* id) { *id = 0x7408; return 0; }
    int rsmi_dev_energy_count_get(unsigned i, unsigned long* count, float* microjoules, unsigned long* time) {
      static unsigned long counter = 0; *count = i == 0 ? counter += 1000000 : 0; *microjoules = 15.25f; *time = 0; return 0; }
  )");
  CHECK_THAT(open_rocm_smi(folder.path(), {library})[0].note, Contains("no driver of AMD's GPUs"));
  fs::create_directories(folder / "module/amdgpu");
  auto channels = open_rocm_smi(folder.path(), {library});
  REQUIRE(channels.size() == 2);
  CHECK(channels[0].covers == "package");
  CHECK(tallied(channels[0], 3).joules.value() == Approx(2 * 15.25));
  const auto other = tallied(channels[1], 3);
  CHECK_FALSE(other.joules);
  CHECK_THAT(other.note, Contains("one of the package's two dies counts for both"));
  CHECK_THAT(open_rocm_smi(folder.path(), {(folder / "none.so").string()})[0].note,
             Contains("none.so"));
}

TEST_CASE("Slurm: asked once, for a number, and 0 is no answer", "[energy]") {
  const test::TemporaryDirectory folder;
  const auto sacct = [&](const std::string& body) {
    const fs::path script = folder / "sacct";
    write(script, "#!/bin/sh\n" + body + "\n");
    fs::permissions(script, fs::perms::owner_all);
    return script.string();
  };
  const auto counted = ask_slurm("42", sacct("[ \"$2\" = 42 ] && printf '5000\\n1200\\n3800\\n'"));
  CHECK(counted.joules.value() == 5000);
  CHECK(counted.device == "job-42");
  CHECK_FALSE(ask_slurm("42", sacct("printf '0\\n\\n'")).joules);
  CHECK_THAT(ask_slurm("42", sacct("exit 1")).note, Contains("did not answer"));
  CHECK(ask_slurm("42", sacct("echo storage is disabled >&2; exit 1")).note ==
        "sacct did not answer: storage is disabled");
  CHECK_FALSE(ask_slurm("42", sacct("echo 5000 J; echo -3")).joules);
  CHECK_THAT(ask_slurm("1; echo 9", sacct("echo 9")).note, Contains("names no job"));
  CHECK_FALSE(ask_slurm(std::nullopt, sacct("echo 9")).joules);
}

TEST_CASE("a sensor that never answers holds up neither the training nor its end", "[energy]") {
  const test::TemporaryDirectory folder;
  write_zone(folder.path(), "intel-rapl:0", "package-0", "1000000");
  // A pipe into which nobody writes blocks whoever reads it, as a driver that hangs.
  const fs::path counter = folder / "class/powercap/intel-rapl:0/energy_uj";
  fs::remove(counter);
  REQUIRE(::mkfifo(counter.c_str(), 0644) == 0);
  const int pipe = ::open(counter.c_str(), O_RDWR | O_CLOEXEC);  // O_RDWR: does not wait
  REQUIRE(pipe >= 0);
  const auto threads = threads_now();
  {
    EnergyMeter meter({.sysfs = folder.path(),
                       .nvml = {"/nowhere/nvml"},
                       .rocm_smi = {"/nowhere/rocm"},
                       .sacct = "/nowhere/sacct",
                       .patience = std::chrono::milliseconds(20)});
    meter.take();
    meter.finish();  // returns, and so does the destructor
  }
  // The thread that was left behind goes on to its end, without its meter. Wherever it is: who
  // opens the counter from now on finds a number, and who waits at the pipe is told its end.
  write(counter, "7\n");
  ::close(pipe);
  CHECK(test::happens([&] { return threads_now() <= threads; }));
}

TEST_CASE("a meter records every source of an attempt, measured or not", "[energy]") {
  const test::TemporaryDirectory folder;
  write_zone(folder.path(), "intel-rapl:0", "package-0", "1000000");
  std::map<std::string, store::EnergyRecord> sums;  // by source, the last
  double watts = -1;
  const auto keep = [&](const EnergyReadings& readings) {
    for (const auto& row : readings.energy) sums[row.source] = row;
    for (const auto& row : readings.power) watts = row.watts;
  };
  {
    // The counter moves all the time, also while the meter opens it.
    const std::jthread counter([&](const std::stop_token& stop) {
      for (int joules = 2; !stop.stop_requested(); ++joules) {
        write(folder / "class/powercap/intel-rapl:0/energy_uj",
              std::to_string(joules) + "000000\n");
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    EnergyMeter meter({folder.path(), {"/nowhere/nvml"}, {"/nowhere/rocm"}, "/nowhere/sacct"});
    CHECK(test::happens([&] {
      keep(meter.take());
      return sums.contains("rapl") && sums.at("rapl").samples >= 3;
    }));
    keep(meter.finish());
  }
  std::vector<std::string> sources;
  for (const auto& [source, row] : sums) {
    sources.push_back(source);
    CHECK(row.joules.has_value() == (source == "rapl"));
    CHECK(row.joules.has_value() == row.seconds.has_value());
    if (row.joules) CHECK(*row.joules > 0);
    CHECK_FALSE(row.note.empty());
  }
  CHECK(sources == std::vector<std::string>{"nvml", "pm_counters", "rapl", "rocm_smi", "slurm"});
  CHECK(watts > 0);
}

}  // namespace olmo::energy
