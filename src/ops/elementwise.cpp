#include "ops/elementwise.h"

#include <ATen/Parallel.h>

#include "ops/arguments.h"
#include "ops/gpu/launch.h"
#include "ops/isa_table.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

namespace {

void run_unary(const char* op, const Context& context, PointwiseKernels::Unary kernel,
               const GpuKernel<const float*, float*, std::int64_t>& gpu_kernel, const at::Tensor& x,
               const at::Tensor& out) {
  require(op, "x", x, x.defined() ? x.sizes() : at::IntArrayRef{});
  require(op, "out", out, x.sizes());
  const auto* in = kernel_input<float>(x);
  auto* result = kernel_output<float>(out);
  if (on_gpu(context, op, {x, out})) {
    launch(context, gpu_kernel, blocks_of_elements(x.numel()), in, result, x.numel());
  } else {
    at::parallel_for(0, x.numel(), row_grain(1),
                     [&](std::int64_t begin, std::int64_t end) { kernel(in, result, begin, end); });
  }
  context.traced(out);
}

}  // namespace

void add(const Context& context, const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
  require("add", "x", x, x.defined() ? x.sizes() : at::IntArrayRef{});
  require("add", "y", y, x.sizes());
  require("add", "out", out, x.sizes());
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  const auto* a = kernel_input<float>(x);
  const auto* b = kernel_input<float>(y);
  auto* sum = kernel_output<float>(out);
  if (on_gpu(context, "add", {x, y, out})) {
    launch(context, gpu_kernels::kAdd, blocks_of_elements(x.numel()), a, b, sum, x.numel());
  } else {
    at::parallel_for(0, x.numel(), row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.add(a, b, sum, begin, end);
    });
  }
  context.traced(out);
}

void scale(const Context& context, const at::Tensor& x, float factor) {
  require("scale", "x", x, x.defined() ? x.sizes() : at::IntArrayRef{});
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  auto* data = kernel_output<float>(x);
  if (on_gpu(context, "scale", {x})) {
    launch(context, gpu_kernels::kScale, blocks_of_elements(x.numel()), data, factor, x.numel());
  } else {
    at::parallel_for(0, x.numel(), row_grain(1), [&](std::int64_t begin, std::int64_t end) {
      kernels.scale(data, factor, begin, end);
    });
  }
  context.traced(x);
}

void add_bias(const Context& context, const at::Tensor& x_MN, const at::Tensor& bias_N) {
  require_matrix("add_bias", "x", x_MN);
  const auto rows = x_MN.size(0), columns = x_MN.size(1);
  require("add_bias", "x", x_MN, {rows, columns});
  require("add_bias", "bias", bias_N, {columns});
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  auto* x = kernel_output<float>(x_MN);
  const auto* bias = kernel_input<float>(bias_N);
  if (on_gpu(context, "add_bias", {x_MN, bias_N})) {
    launch(context, gpu_kernels::kAddBias, blocks_of_rows(rows), x, bias, rows, columns);
  } else {
    at::parallel_for(0, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row)
        kernels.add(x + row * columns, bias, x + row * columns, 0, columns);
    });
  }
  context.traced(x_MN);
}

void add_bias_backward(const Context& context, const at::Tensor& dy_MN, const at::Tensor& dbias_N) {
  require_matrix("add_bias_backward", "dy", dy_MN);
  const auto rows = dy_MN.size(0), columns = dy_MN.size(1);
  require("add_bias_backward", "dy", dy_MN, {rows, columns});
  require("add_bias_backward", "dbias", dbias_N, {columns});
  const auto& kernels = pointwise_kernels_for(context.policy.isa);
  const auto* dy = kernel_input<float>(dy_MN);
  auto* dbias = kernel_output<float>(dbias_N);
  if (on_gpu(context, "add_bias_backward", {dy_MN, dbias_N})) {
    launch(context, gpu_kernels::kColumnSums, blocks_of_columns(columns), dy, rows, columns, dbias);
  } else {
    at::parallel_for(0, columns, std::max<std::int64_t>(64, row_grain(rows)),
                     [&](std::int64_t begin, std::int64_t end) {
                       kernels.column_sums(dy, rows, columns, dbias, begin, end);
                     });
  }
  context.traced(dbias_N);
}

void exp(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("exp", context, pointwise_kernels_for(context.policy.isa).exp, gpu_kernels::kExp, x,
            out);
}

void log(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("log", context, pointwise_kernels_for(context.policy.isa).log, gpu_kernels::kLog, x,
            out);
}

void sigmoid(const Context& context, const at::Tensor& x, const at::Tensor& out) {
  run_unary("sigmoid", context, pointwise_kernels_for(context.policy.isa).sigmoid,
            gpu_kernels::kSigmoid, x, out);
}

}  // namespace olmo::ops
