#include "core/compute/policy.h"

#include <algorithm>
#include <exception>
#include <latch>
#include <span>
#include <thread>
#include <vector>

#include "core/compute/machine.h"
#include "core/error.h"

namespace olmo {
namespace {

// The names of all values of an enum, in its order; nowhere else are they written.
constexpr std::string_view kIsas[] = {"plain", "avx2", "avx512"};
constexpr std::string_view kDevices[] = {"cpu", "cuda", "rocm"};
constexpr std::string_view kPrecisions[] = {"fp32", "amp_bf16", "amp_fp16", "pure_bf16"};
constexpr std::string_view kMixedPrecisions[] = {"none", "mixed", "autocast"};

template <class Enum>
std::string name_of(Enum value, std::span<const std::string_view> names) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

template <class Enum>
std::optional<Enum> named(std::string_view name, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string to_string(Numerics numerics) {
  return numerics == Numerics::kPortable ? "portable" : "fast";
}

std::string to_string(Isa isa) { return name_of(isa, kIsas); }
std::string to_string(Device device) { return name_of(device, kDevices); }
std::string to_string(Precision precision) { return name_of(precision, kPrecisions); }
std::string to_string(MixedPrecision mixed) { return name_of(mixed, kMixedPrecisions); }

Precision precision_of(MixedPrecision mixed) {
  return mixed == MixedPrecision::kNone ? Precision::kFp32 : Precision::kAmpBf16;
}

std::string precision_text(MixedPrecision mixed) {
  const std::string name = to_string(precision_of(mixed));
  return mixed == MixedPrecision::kNone ? name : name + " (" + to_string(mixed) + ")";
}

std::optional<Precision> precision_named(std::string_view name) {
  return named<Precision>(name, kPrecisions);
}

std::optional<Isa> isa_named(std::string_view name) { return named<Isa>(name, kIsas); }
std::optional<Device> device_named(std::string_view name) { return named<Device>(name, kDevices); }

std::string precision_names() {
  std::string list;
  for (const auto name : kPrecisions) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

bool machine_has(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kPlain:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return isa == Isa::kPlain;
}

Isa best_isa() {
  if (machine_has(Isa::kAvx512)) return Isa::kAvx512;
  return machine_has(Isa::kAvx2) ? Isa::kAvx2 : Isa::kPlain;
}

int resolve_threads(int threads, int sharers) {
  if (threads < 0 || threads > kMostThreads) {
    throw Error(ErrorKind::kUsage, "`threads` must lie in 0.." + std::to_string(kMostThreads) +
                                       " (0: all cores), got " + std::to_string(threads));
  }
  return threads == 0 ? default_threads(sharers).count : threads;
}

void require_threads(int threads) {
  std::latch counted(1);
  std::vector<std::jthread> begun;
  std::string why;
  try {
    while (std::ssize(begun) + 1 < threads) begun.emplace_back([&counted] { counted.wait(); });
  } catch (const std::exception& error) {  // memory may be what lacks: the others wait in any case
    why = error.what();
  }
  counted.count_down();
  if (why.empty()) return;
  throw Error(ErrorKind::kFailure,
              "the system gives this process " + std::to_string(begun.size() + 1) + " of " +
                  std::to_string(threads) + " threads (" + why +
                  "; `ulimit -u`, `ulimit -v` and a control group's pids.max limit them): ask for "
                  "fewer with `threads`, or OMP_NUM_THREADS");
}

}  // namespace olmo
