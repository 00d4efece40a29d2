#include "ops/linear.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/isa_table.h"
#include "ops/kernels/gemm.h"

namespace olmo::ops {
namespace {

OLMO_ISA_TABLE(GemmKernels, gemm_kernels)

std::string shape_text(const at::Tensor& t) {
  std::string text = "(";
  for (const auto size : t.sizes()) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

void check(const char* op, const char* name, const at::Tensor& t, std::int64_t rows,
           std::int64_t columns) {
  if (t.defined() && t.dim() == 2 && t.size(0) == rows && t.size(1) == columns &&
      t.is_contiguous() && t.scalar_type() == at::kFloat && t.is_cpu()) {
    return;
  }
  throw Error(ErrorKind::kFailure, std::string(op) + ": " + name +
                                       " must be a contiguous fp32 CPU tensor (" +
                                       std::to_string(rows) + ", " + std::to_string(columns) +
                                       "), got " + (t.defined() ? shape_text(t) : "none"));
}

void check_2d(const char* op, const char* name, const at::Tensor& t) {
  if (!t.defined() || t.dim() != 2) {
    throw Error(ErrorKind::kFailure, std::string(op) + ": " + name +
                                         " must have 2 dimensions, got " +
                                         (t.defined() ? std::to_string(t.dim()) : "none"));
  }
}

void multiply(const Policy& policy, const GemmProblem& whole) {
  const auto& kernels = gemm_kernels_for(policy.isa);
  at::parallel_for(0, whole.m, 1, [&](std::int64_t begin, std::int64_t end) {
    GemmProblem part = whole;
    part.m = end - begin;
    part.a += begin * whole.a_row;
    part.c += begin * whole.c_row;
    kernels.gemm(part);
  });
}

}  // namespace

void linear(const Policy& policy, const at::Tensor& x_MK, const at::Tensor& w_NK,
            at::Tensor& y_MN) {
  check_2d("linear", "x", x_MK);
  check_2d("linear", "w", w_NK);
  const auto m = x_MK.size(0), k = x_MK.size(1), n = w_NK.size(0);
  check("linear", "x", x_MK, m, k);
  check("linear", "w", w_NK, n, k);
  check("linear", "y", y_MN, m, n);
  if (policy.numerics == Numerics::kFast) {
    at::mm_out(y_MN, x_MK, w_NK.t());
    return;
  }
  multiply(policy, {m, n, k, x_MK.const_data_ptr<float>(), k, 1, w_NK.const_data_ptr<float>(), 1, k,
                    y_MN.mutable_data_ptr<float>(), n, false});
}

void linear_backward_input(const Policy& policy, const at::Tensor& dy_MN, const at::Tensor& w_NK,
                           at::Tensor& dx_MK) {
  check_2d("linear_backward_input", "dy", dy_MN);
  check_2d("linear_backward_input", "w", w_NK);
  const auto m = dy_MN.size(0), n = dy_MN.size(1), k = w_NK.size(1);
  check("linear_backward_input", "dy", dy_MN, m, n);
  check("linear_backward_input", "w", w_NK, n, k);
  check("linear_backward_input", "dx", dx_MK, m, k);
  if (policy.numerics == Numerics::kFast) {
    at::mm_out(dx_MK, dy_MN, w_NK);
    return;
  }
  multiply(policy, {m, k, n, dy_MN.const_data_ptr<float>(), n, 1, w_NK.const_data_ptr<float>(), k,
                    1, dx_MK.mutable_data_ptr<float>(), k, false});
}

void linear_backward_weight(const Policy& policy, const at::Tensor& dy_MN, const at::Tensor& x_MK,
                            at::Tensor& dw_NK, bool accumulate) {
  check_2d("linear_backward_weight", "dy", dy_MN);
  check_2d("linear_backward_weight", "x", x_MK);
  const auto m = dy_MN.size(0), n = dy_MN.size(1), k = x_MK.size(1);
  check("linear_backward_weight", "dy", dy_MN, m, n);
  check("linear_backward_weight", "x", x_MK, m, k);
  check("linear_backward_weight", "dw", dw_NK, n, k);
  if (policy.numerics == Numerics::kFast) {
    if (accumulate) {
      at::addmm_out(dw_NK, dw_NK, dy_MN.t(), x_MK);
    } else {
      at::mm_out(dw_NK, dy_MN.t(), x_MK);
    }
    return;
  }
  multiply(policy, {n, k, m, dy_MN.const_data_ptr<float>(), 1, n, x_MK.const_data_ptr<float>(), k,
                    1, dw_NK.mutable_data_ptr<float>(), k, accumulate});
}

}  // namespace olmo::ops
