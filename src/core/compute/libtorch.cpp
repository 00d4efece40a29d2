#include "core/compute/libtorch.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <omp.h>

#include "core/compute/machine.h"
#include "core/error.h"

namespace olmo {
namespace {

at::Context& context() { return at::globalContext(); }

// Not here: MKL_CBWR, since LibTorch aligns its memory and fixes MKL's thread count, which is all
// that run-to-run needs, and on other vendors' processors it would take the slowest kernels.
// Nor NCCL's and RCCL's: collectives only move our bytes.
constexpr DeterminismSwitch kSwitches[] = {
    {"deterministic_algorithms", "true",
     "operations whose fast form adds in the order in which threads arrive take another or stop",
     [] { context().setDeterministicAlgorithms(true, /*warn_only=*/false); }},
    {"fill_uninitialized_memory", "false",
     "a debugging aid that comes with the former; costs a pass over memory, changes no result",
     [] { context().setDeterministicFillUninitializedMemory(false); }},
    {"flush_denormal", "false", "the definitions keep subnormals, as IEEE 754 does",
     [] { context().setFlushDenormal(false); }},
    {"omp_dynamic", "false", "a library's sums are cut by threads: their number must not vary",
     [] { omp_set_dynamic(0); }},
    {"mkldnn_deterministic", "true", "oneDNN may otherwise share a sum out without an order",
     [] { context().setDeterministicMkldnn(true); }},
    {"cudnn_deterministic", "true", "cuDNN and MIOpen have kernels with atomic additions",
     [] { context().setDeterministicCuDNN(true); }},
    {"cudnn_benchmark", "false", "it times kernels and takes the winner, which may be another",
     [] { context().setBenchmarkCuDNN(false); }},
    {"float32_matmul_precision", "highest",
     "no TF32 (10 bits) or bf16 in products of fp32 by cuBLAS, rocBLAS or oneDNN",
     [] { context().setFloat32MatmulPrecision("highest"); }},
    {"cudnn_allow_tf32", "false", "the same in cuDNN, where TF32 is the default",
     [] { context().setAllowTF32CuDNN(false); }},
    {"fp16_reduced_precision_reduction", "false", "partial sums of fp16 products stay fp32",
     [] { context().setAllowFP16ReductionCuBLAS(false); }},
    {"bf16_reduced_precision_reduction", "false", "partial sums of bf16 products stay fp32",
     [] { context().setAllowBF16ReductionCuBLAS(false); }},
    {"fp16_reduced_precision_reduction_cpu", "false", "the same on ARM64 processors",
     [] { context().setAllowFP16ReductionCPU(false); }},
    {"CUBLAS_WORKSPACE_CONFIG", ":4096:8",
     "without a fixed workspace, cuBLAS picks kernels by the memory that happens to be free; "
     "another "
     "value that is set already is kept, and LibTorch refuses one that is not deterministic",
     [] { ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0); }},
    {"NVIDIA_TF32_OVERRIDE", "0", "cuBLAS and cuDNN obey this variable above every other setting",
     [] { ::setenv("NVIDIA_TF32_OVERRIDE", "0", /*overwrite=*/1); }},
};

/// The value of `key` in LibTorch's list "…, KEY=value, …"; empty if there is none.
std::string configured(const std::string& key) {
  const std::string config = at::show_config();
  const auto at = config.find(key + "=");
  if (at == std::string::npos) return "";
  const auto begin = at + key.size() + 1;
  return config.substr(begin, config.find_first_of(",\n", begin) - begin);
}

void set_device(Policy& policy, const std::string& name, const LocalRank& local) {
  const auto device = device_named(name);
  if (!device)
    throw Error(ErrorKind::kUsage, "`device` must be cpu, cuda or rocm, got '" + name + "'");
  if (device == Device::kCpu) return;
  policy.device = *device;
  policy.gpu = Gpu::open(policy.device, gpu_library_folder(), local);
}

}  // namespace

// Without AMX products of bf16 take twice as long as those of fp32 with AVX-512, and ten to a
// hundred times with AVX2; with AVX512_BF16 alone nobody has measured them on the processors of AMD
// that have it.
bool multiplies_bf16(Numerics numerics, Device device) {
  return numerics == Numerics::kFast && device == Device::kCpu && at::hasMKLDNN() &&
         processor_has("amx_bf16");
}

Policy resolve_policy(const std::string& numerics, const std::string& isa, int threads,
                      const std::string& device, const LocalRank& local) {
  Policy policy;
  if (numerics == "fast") {
    policy.numerics = Numerics::kFast;
  } else if (numerics != "portable") {
    throw Error(ErrorKind::kUsage, "`numerics` must be portable or fast, got '" + numerics + "'");
  }
  policy.isa = best_isa();
  if (isa != "auto") {
    const auto wanted = isa_named(isa);
    if (!wanted)
      throw Error(ErrorKind::kUsage,
                  "`isa` must be auto, plain, avx2 or avx512, got '" + isa + "'");
    policy.isa = *wanted;
    if (!machine_has(policy.isa)) {
      throw Error(ErrorKind::kUsage, "`isa` is " + isa +
                                         ", which this processor lacks; the widest here is " +
                                         to_string(best_isa()));
    }
  }
  policy.threads = resolve_threads(threads, local.sharers);
  set_device(policy, device, local);
  policy.multiplies_bf16 = multiplies_bf16(policy.numerics, policy.device);
  return policy;
}

void apply_policy(const Policy& policy) {
  require_threads(policy.threads);
  at::set_num_threads(policy.threads);
  omp_set_num_threads(policy.threads);  // our files' OpenMP may be another copy than LibTorch's
  for (const auto& each : kSwitches) each.set();
}

std::span<const DeterminismSwitch> determinism_switches() { return kSwitches; }

std::string matrix_library(const Policy& policy) {
  std::string name = at::hasMKL() ? at::get_mkl_version() : configured("BLAS_INFO");
  if (name.empty()) name = "unknown";
  return policy.has_bf16_products() ? at::get_mkldnn_version() + "; " + name : name;
}

std::string libtorch_version() {
  const std::string version = configured("TORCH_VERSION");
  return version.empty() ? "unknown" : version;
}

}  // namespace olmo
