#include "core/policy.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <omp.h>

#include "core/determinism.h"
#include "core/error.h"
#include "core/gpu.h"
#include "core/machine.h"
#include "core/tensor.h"

namespace olmo {
namespace {

/// The names of all precisions; nowhere else are they written.
constexpr std::pair<Precision, std::string_view> kPrecisions[] = {
    {Precision::kFp32, "fp32"},
    {Precision::kAmpBf16, "amp_bf16"},
    {Precision::kAmpFp16, "amp_fp16"},
    {Precision::kPureBf16, "pure_bf16"},
};

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

void set_device(Policy& policy, const std::string& name) {
  if (name == to_string(Device::kCpu)) return;
  for (const Device device : {Device::kCuda, Device::kRocm}) {
    if (name == to_string(device)) policy.device = device;
  }
  if (policy.device == Device::kCpu)
    throw Error(ErrorKind::kUsage, "`device` must be cpu, cuda or rocm, got '" + name + "'");
  if (policy.numerics != Numerics::kPortable) {
    throw Error(ErrorKind::kUsage, "`device` " + name +
                                       " runs the portable kernels only: take numerics=portable, "
                                       "or device=cpu");
  }
  policy.gpu = Gpu::open(policy.device, gpu_library_folder());
}

}  // namespace

std::string to_string(Numerics numerics) {
  return numerics == Numerics::kPortable ? "portable" : "fast";
}

std::string to_string(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kPlain:
      break;
  }
  return "plain";
}

Isa best_isa() {
  if (machine_has(Isa::kAvx512)) return Isa::kAvx512;
  return machine_has(Isa::kAvx2) ? Isa::kAvx2 : Isa::kPlain;
}

std::string to_string(Device device) {
  switch (device) {
    case Device::kCuda:
      return "cuda";
    case Device::kRocm:
      return "rocm";
    case Device::kCpu:
      break;
  }
  return "cpu";
}

std::string to_string(Precision precision) {
  return std::string(kPrecisions[static_cast<std::size_t>(precision)].second);
}

std::optional<Precision> precision_named(std::string_view name) {
  for (const auto& [precision, known] : kPrecisions) {
    if (name == known) return precision;
  }
  return std::nullopt;
}

std::string precision_names() {
  std::string list;
  for (const auto& [precision, name] : kPrecisions)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

Policy resolve_policy(const std::string& numerics, const std::string& isa, int threads,
                      const std::string& device) {
  Policy policy;
  if (numerics == "fast") {
    policy.numerics = Numerics::kFast;
  } else if (numerics != "portable") {
    throw Error(ErrorKind::kUsage, "`numerics` must be portable or fast, got '" + numerics + "'");
  }
  policy.isa = best_isa();
  if (isa != "auto") {
    bool known = false;
    for (const Isa candidate : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512}) {
      if (isa == to_string(candidate)) policy.isa = candidate, known = true;
    }
    if (!known)
      throw Error(ErrorKind::kUsage,
                  "`isa` must be auto, plain, avx2 or avx512, got '" + isa + "'");
    if (!machine_has(policy.isa)) {
      throw Error(ErrorKind::kUsage, "`isa` is " + isa +
                                         ", which this processor lacks; the widest here is " +
                                         to_string(best_isa()));
    }
  }
  if (threads < 0 || threads > 4096) {
    throw Error(ErrorKind::kUsage,
                "`threads` must lie in 0..4096 (0: all cores), got " + std::to_string(threads));
  }
  policy.threads = threads == 0 ? usable_cores().usable : threads;
  set_device(policy, device);
  return policy;
}

void apply_policy(const Policy& policy) {
  at::set_num_threads(policy.threads);
  omp_set_num_threads(policy.threads);  // our files' OpenMP may be another copy than LibTorch's
  set_determinism_switches();
  c10::SetCPUAllocator(policy.gpu != nullptr ? policy.gpu.get() : c10::GetDefaultCPUAllocator(),
                       /*priority=*/1);
}

}  // namespace olmo
