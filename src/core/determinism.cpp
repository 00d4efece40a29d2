#include "core/determinism.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <omp.h>

#include "core/tensor.h"

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

}  // namespace

std::span<const DeterminismSwitch> determinism_switches() { return kSwitches; }

void set_determinism_switches() {
  for (const auto& each : kSwitches) each.set();
}

std::string matrix_library() {
  if (at::hasMKL()) return at::get_mkl_version();
  const std::string name = configured("BLAS_INFO");
  return name.empty() ? "unknown" : name;
}

}  // namespace olmo
