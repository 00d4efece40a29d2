#include "core/compute/machine.h"

#include <fstream>
#include <map>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("without a control group the affinity decides", "[core]") {
  const TemporaryDirectory root;
  const UsableCores cores = usable_cores(root / "");
  CHECK_FALSE(cores.granted);
  CHECK(cores.usable == cores.bound_to);
  CHECK(cores.usable >= 1);
}

TEST_CASE("threads that share a core count as one physical core", "[core]") {
  const TemporaryDirectory root;
  CHECK(usable_cores(root / "").physical == usable_cores(root / "").bound_to);  // not known
  for (int i = 0; i < 1024; ++i)
    write(root /
              ("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list"),
          "0-1023\n");
  CHECK(usable_cores(root / "").physical == 1);
}

TEST_CASE("a control group of version 2 grants what it and those above it allow", "[core]") {
  const TemporaryDirectory root;
  write(root / "proc/self/cgroup", "0::/jobs/mine\n");
  write(root / "sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  CHECK_FALSE(usable_cores(root / "").granted);
  write(root / "sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  CHECK(usable_cores(root / "").granted.value() == 0.5);
  CHECK(usable_cores(root / "").usable == 1);
}

TEST_CASE("a container sees its group's limit at the root of the mount", "[core]") {
  const TemporaryDirectory root;
  write(root / "proc/self/cgroup", "0::/../../elsewhere\n");
  write(root / "sys/fs/cgroup/cpu.max", "9000000 100000\n");
  const UsableCores cores = usable_cores(root / "");
  CHECK(cores.granted.value() == 90);
  CHECK(cores.usable == std::min(cores.bound_to, 90));
}

TEST_CASE("a control group of version 1 grants its quota", "[core]") {
  const TemporaryDirectory root;
  write(root / "proc/self/cgroup", "7:memory:/job\n4:cpu,cpuacct:/job\n");
  write(root / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write(root / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(usable_cores(root / "").granted);
  write(root / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  CHECK(usable_cores(root / "").granted.value() == 1.5);
}

TEST_CASE("the default number of threads says what decided it", "[core]") {
  std::map<std::string, std::string> set;
  const auto threads = [&](const UsableCores& cores) {
    const auto [count, by] = default_threads(cores, [&](const char* name) {
      const auto found = set.find(name);
      return found == set.end() ? nullptr : found->second.c_str();
    });
    return std::to_string(count) + ", " + by;
  };
  const UsableCores all = {.bound_to = 8, .physical = 4, .granted = {}, .usable = 8};
  const UsableCores quota = {.bound_to = 8, .physical = 4, .granted = 2.5, .usable = 3};
  CHECK(threads(all) == "8, processor affinity");
  CHECK(threads(quota) == "3, control group");
  set["SLURM_CPUS_PER_TASK"] = "6";
  CHECK(threads(all) == "6, SLURM_CPUS_PER_TASK");
  CHECK(threads(quota) == "3, control group");
  set["OLMO_HARNESS_WORLD_SIZE"] = "3";
  CHECK(threads(all) == "2, --nproc");
  CHECK(threads(quota) == "1, --nproc");
  set["OMP_NUM_THREADS"] = "5,2";
  CHECK(threads(quota) == "5, OMP_NUM_THREADS");
}

TEST_CASE("ranks that share processors share them out", "[core]") {
  const UsableCores cores = {.bound_to = 8, .physical = 4, .granted = {}, .usable = 8};
  const auto none = [](const char*) -> const char* { return nullptr; };
  CHECK(default_threads(cores, none, 3).count == 2);
  CHECK(default_threads(cores, none, 3).by == "ranks of this machine");
  CHECK(default_threads(cores, none, 20).count == 1);
  const auto chosen = [](const char* name) {
    return std::string(name) == "OMP_NUM_THREADS" ? "7" : nullptr;
  };
  CHECK(default_threads(cores, chosen, 3).count == 7);
}

TEST_CASE("the processors of a process are told as ranges", "[core]") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const auto bound = usable_cores();
  ::sched_setaffinity(0, sizeof before, &before);
  CHECK(bound.processors == std::to_string(first));
  CHECK(bound.bound_to == 1);
}

TEST_CASE("variables that hold no number of threads are passed over", "[core]") {
  const UsableCores cores = {.bound_to = 8, .physical = 8, .granted = {}, .usable = 8};
  for (const char* text : {"", "many", "0", "-1", "4x", "99999999999", " 4"}) {
    INFO(text);
    CHECK(default_threads(cores, [&](const char*) { return text; }).count == 8);
  }
}

TEST_CASE("damaged files of a control group grant nothing and stop nothing", "[core]") {
  const TemporaryDirectory root;
  write(root / "proc/self/cgroup", "0\n:\n0::\n0::/a\n");
  write(root / "sys/fs/cgroup/a/cpu.max", "many\n");
  write(root / "sys/fs/cgroup/cpu.max", "100000 0\n");
  CHECK_FALSE(usable_cores(root / "").granted);
}

TEST_CASE("the narrowest control group limits the memory, in either version", "[core]") {
  const TemporaryDirectory root;
  CHECK_FALSE(machine_memory(root / "").usable());
  write(root / "proc/meminfo", "MemTotal:       8 kB\nMemAvailable:   3 kB\n");
  CHECK(machine_memory(root / "").usable().value() == 8192);
  CHECK(machine_memory(root / "").available.value() == 3072);
  write(root / "proc/self/cgroup", "0::/jobs/mine\n7:cpu,memory:/job\n");
  write(root / "sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  write(root / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(machine_memory(root / "").limit);
  write(root / "sys/fs/cgroup/jobs/memory.max", "5000\n");
  write(root / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "6000\n");
  CHECK(machine_memory(root / "").usable().value() == 5000);
}

TEST_CASE("a feature of the processor is a whole word of the system's list", "[core]") {
  const TemporaryDirectory root;
  CHECK_FALSE(processor_has("fma", root / ""));
  write(root / "proc/cpuinfo", "processor\t: 0\nmodel name\t: amx_bf16\nflags\t\t: sse fma4 avx\n");
  CHECK(processor_has("sse", root / ""));
  CHECK(processor_has("avx", root / ""));
  CHECK_FALSE(processor_has("fma", root / ""));
  CHECK_FALSE(processor_has("amx_bf16", root / ""));
}

TEST_CASE("of a file's lines the first is read, and of none nothing", "[core]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "two") << "one\ntwo\n";
  CHECK(first_line(folder / "two") == "one");
  CHECK(first_line(folder / "none").empty());
}

}  // namespace olmo::test
