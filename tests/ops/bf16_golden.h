// Operations in bf16 as the reference defines them: tests/data/ops/bf16.safetensors, made by
// tests/goldens/make_bf16_ops.py.
#pragma once

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"
#include "support/golden_tensors.h"

namespace olmo::ops::reference {

/// Relative rms of a - b: of their difference, over that of b. In double.
inline double relative_rms(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.to(at::kDouble), y = b.to(at::kDouble);
  const double size = y.square().sum().item<double>();
  const double error = (x - y).square().sum().item<double>();
  return error == 0 ? 0.0 : std::sqrt(error / size);
}

class Bf16Golden {
 public:
  Bf16Golden()
      : file_(test::read_golden_tensors(std::filesystem::path(OLMO_TEST_DATA) / "ops" /
                                        "bf16.safetensors")),
        figures_(Json::parse(file_.metadata.at("figures"))) {}

  /// An input, e.g. "linear.x".
  [[nodiscard]] const at::Tensor& in(const std::string& name) const {
    return file_.at("in." + name);
  }
  /// An input of dimensions (B, H, L, head_dim) as packed rows (B·L, H·head_dim).
  [[nodiscard]] at::Tensor rows_of_heads(const std::string& name) const {
    return as_rows(in(name));
  }
  [[nodiscard]] const at::Tensor& out(const std::string& name) const {
    return file_.at("out." + name);
  }
  [[nodiscard]] at::Tensor out_rows_of_heads(const std::string& name) const {
    return as_rows(out(name));
  }

  /// Compares a tensor with the output `name` (or `expected`, the same in another layout): as many
  /// elements equal in bf16, and as near, as the reference is to itself with the same roundings and
  /// other orders of its fp32 sums.
  void check(const std::string& name, const at::Tensor& found) const {
    check(name, found, out(name));
  }
  void check(const std::string& name, const at::Tensor& found, const at::Tensor& expected) const {
    INFO(name);
    REQUIRE(found.sizes() == expected.sizes());
    const Json& figures = figures_.at(name);
    const double equal = found.to(at::kBFloat16)
                             .eq(expected.to(at::kBFloat16))
                             .to(at::kDouble)
                             .mean()
                             .item<double>();
    CHECK(equal >= figures.at("equal_at_least").get<double>());
    CHECK(test::max_abs_difference(found, expected) <= figures.at("max_abs").get<double>());
    CHECK(relative_rms(found, expected) <= figures.at("rms_rel").get<double>());
  }

  /// The error of `found` to the same operation in double without any rounding is at most 1.05
  /// times that of torch.
  void check_error(const std::string& name, const at::Tensor& found,
                   const at::Tensor& exact) const {
    INFO(name);
    const double torch = figures_.at(name).at("torch_error").get<double>();
    CHECK(relative_rms(found, exact) <= 1.05 * torch);
  }

 private:
  static at::Tensor as_rows(const at::Tensor& t) {
    return t.transpose(1, 2).reshape({t.size(0) * t.size(2), t.size(1) * t.size(3)}).contiguous();
  }

  test::GoldenTensors file_;
  Json figures_;
};

}  // namespace olmo::ops::reference
