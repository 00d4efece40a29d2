#include "ops/layer_norm.h"

#include "core/compute/parallel.h"
#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

namespace {

using Forward = void (*)(const NormForwardArgs&, std::int64_t, std::int64_t);
using Backward = void (*)(const NormBackwardArgs&, std::int64_t, std::int64_t);

/// The kernels of one kind of norm, for the CPU and for GPUs.
struct ForwardKernels {
  Forward cpu;
  GpuKernel<NormForwardArgs, std::int64_t> gpu;
};
struct BackwardKernels {
  Backward input, parameters;
  GpuKernel<NormBackwardArgs> gpu_input, gpu_parameters;
};

Numbers numbers_of(const at::Tensor& t) {
  if (!t.defined()) return {nullptr, false};
  if (is_bf16(t)) return {kernel_output<Bf16>(t), true};
  return {kernel_output<float>(t), false};
}
Rows rows_of(const at::Tensor& t) { return {numbers_of(t), t.stride(0)}; }

float* mutable_data_or_null(const at::Tensor& t) {
  return t.defined() ? kernel_output<float>(t) : nullptr;
}

void run_forward(const char* op, const Context& context, const ForwardKernels& kernels,
                 std::int64_t stats_columns, const at::Tensor& x, const NormParameters& parameters,
                 float eps, const at::Tensor& y, const at::Tensor& stats) {
  require_matrix(op, "x", x);
  const auto rows = x.size(0), columns = x.size(1);
  require_rows(op, "x", x, rows, columns);
  require_rows(op, "y", y, rows, columns);
  require(op, "stats", stats, {rows, stats_columns});
  if (parameters.weight.defined() || parameters.bias.defined())
    require_fp32_or_bf16(op, "weight", parameters.weight, {columns});
  if (parameters.bias.defined()) require_fp32_or_bf16(op, "bias", parameters.bias, {columns});
  const NormForwardArgs args{.x = rows_of(x),
                             .y = rows_of(y),
                             .columns = columns,
                             .weight = numbers_of(parameters.weight),
                             .bias = numbers_of(parameters.bias),
                             .eps = eps,
                             .stats = kernel_output<float>(stats)};
  if (on_gpu(context, op, {x, parameters.weight, parameters.bias, y, stats})) {
    launch(context, kernels.gpu, blocks_of_rows(rows), args, rows);
  } else {
    parallel_for(0, rows, row_grain(columns),
                 [&](std::int64_t begin, std::int64_t end) { kernels.cpu(args, begin, end); });
  }
  context.traced(y);
}

void run_backward(const char* op, const Context& context, const BackwardKernels& kernels,
                  std::int64_t stats_columns, const NormBackward& args) {
  require_matrix(op, "x", args.x_MD);
  const auto rows = args.x_MD.size(0), columns = args.x_MD.size(1);
  require_rows(op, "x", args.x_MD, rows, columns);
  require_rows(op, "dy", args.dy_MD, rows, columns);
  require_rows(op, "dx", args.dx_MD, rows, columns);
  require(op, "stats", args.stats, {rows, stats_columns});
  if (args.weight_D.defined()) require_fp32_or_bf16(op, "weight", args.weight_D, {columns});
  if (args.dweight_D.defined()) require(op, "dweight", args.dweight_D, {columns});
  if (args.dbias_D.defined()) require(op, "dbias", args.dbias_D, {columns});
  const NormBackwardArgs raw{.dy = rows_of(args.dy_MD),
                             .x = rows_of(args.x_MD),
                             .dx = rows_of(args.dx_MD),
                             .rows = rows,
                             .columns = columns,
                             .weight = numbers_of(args.weight_D),
                             .stats = kernel_input<float>(args.stats),
                             .dweight = mutable_data_or_null(args.dweight_D),
                             .dbias = mutable_data_or_null(args.dbias_D),
                             .accumulate_dx = args.accumulate_dx,
                             .round_parameters = args.rounding == Rounding::kBf16};
  const bool has_parameters = raw.dweight != nullptr || raw.dbias != nullptr;
  // The parameters before dx, which may overwrite dy.
  if (on_gpu(context, op,
             {args.dy_MD, args.x_MD, args.stats, args.weight_D, args.dx_MD, args.dweight_D,
              args.dbias_D})) {
    if (has_parameters) launch(context, kernels.gpu_parameters, blocks_of_columns(columns), raw);
    launch(context, kernels.gpu_input, blocks_of_rows(rows), raw);
  } else {
    if (has_parameters) {
      parallel_for(
          0, columns, std::max<std::int64_t>(64, row_grain(rows)),
          [&](std::int64_t begin, std::int64_t end) { kernels.parameters(raw, begin, end); });
    }
    parallel_for(0, rows, row_grain(columns),
                 [&](std::int64_t begin, std::int64_t end) { kernels.input(raw, begin, end); });
  }
  context.traced(args.dx_MD);
}

}  // namespace

void layer_norm(const Context& context, const at::Tensor& x_MD, const NormParameters& parameters,
                float eps, const at::Tensor& y_MD, const at::Tensor& stats_M2) {
  run_forward("layer_norm", context,
              {norm_kernels_for(context.policy.isa).layer_norm, gpu_kernels::kLayerNorm}, 2, x_MD,
              parameters, eps, y_MD, stats_M2);
}

void rms_norm(const Context& context, const at::Tensor& x_MD, const NormParameters& parameters,
              float eps, const at::Tensor& y_MD, const at::Tensor& stats_M1) {
  run_forward("rms_norm", context,
              {norm_kernels_for(context.policy.isa).rms_norm, gpu_kernels::kRmsNorm}, 1, x_MD,
              parameters, eps, y_MD, stats_M1);
}

void layer_norm_backward(const Context& context, const NormBackward& args) {
  const auto& kernels = norm_kernels_for(context.policy.isa);
  run_backward("layer_norm_backward", context,
               {kernels.layer_norm_input, kernels.layer_norm_parameters,
                gpu_kernels::kLayerNormInput, gpu_kernels::kLayerNormParameters},
               2, args);
}

void rms_norm_backward(const Context& context, const NormBackward& args) {
  const auto& kernels = norm_kernels_for(context.policy.isa);
  run_backward("rms_norm_backward", context,
               {kernels.rms_norm_input, kernels.rms_norm_parameters, gpu_kernels::kRmsNormInput,
                gpu_kernels::kRmsNormParameters},
               1, args);
}

}  // namespace olmo::ops
