#include "ops/linear.h"

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/kernels/gemm.h"

namespace olmo::ops {

OLMO_ISA_TABLE(GemmKernels, gemm_kernels)

namespace {

// How many threads share the rows, and how many the columns, of one product.
struct Grid {
  std::int64_t rows, columns;
};

std::int64_t tiles(std::int64_t extent, std::int64_t unit) { return (extent + unit - 1) / unit; }

// The grid whose largest piece takes the least time: its multiplications plus the packing of its
// own operands.
Grid choose_grid(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t threads) {
  constexpr std::int64_t kPackCost = 12;  // packing one element, in multiplications
  const auto row_tiles = tiles(m, kernels.tile_rows), column_tiles = tiles(n, kernels.tile_columns);
  Grid best{1, 1};
  std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t rows = 1; rows <= threads; ++rows) {
    const auto columns = std::min(threads / rows, column_tiles);
    const auto piece_m = tiles(row_tiles, rows) * kernels.tile_rows;
    const auto piece_n = tiles(column_tiles, columns) * kernels.tile_columns;
    const auto cost = piece_m * piece_n + kPackCost * (piece_m + piece_n);
    if (cost < best_cost) {
      best_cost = cost;
      best = {std::min(rows, row_tiles), columns};
    }
  }
  return best;
}

Grid grid_of(const Policy& policy, const GemmKernels& kernels, const GemmProblem& problem) {
  const auto threads = useful_threads(policy, 2 * problem.m * problem.n * problem.k);
  return choose_grid(kernels, problem.m, problem.n, threads);
}

std::int64_t l2_bytes() {
  constexpr std::int64_t kUnknown = 512 << 10;
  static const std::int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : kUnknown;
}

// A rectangle of a product: its first row and column, and its extents.
struct Piece {
  std::int64_t row, column, m, n;
};

// The pieces of a product, one for each thread of a grid: whole tiles, shared in proportion to the
// threads' speeds. Rows of the grid take rows of the product, and the threads of each its columns.
class Pieces {
 public:
  Pieces(const GemmProblem& whole, const GemmKernels& kernels, const Grid& grid,
         const ThreadSpeeds& speeds)
      : whole_(whole), kernels_(kernels), columns_(grid.columns) {
    for (std::int64_t i = 0; i < grid.rows * grid.columns; ++i) of_thread_.push_back(speeds[i]);
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      const auto of_row = threads_of(row);
      of_row_.push_back(std::accumulate(of_row.begin(), of_row.end(), 0.0));
    }
  }

  [[nodiscard]] std::size_t count() const { return of_thread_.size(); }

  [[nodiscard]] Piece operator[](std::int64_t thread) const {
    const auto row = thread / columns_, column = thread % columns_;
    const auto i0 = begin(whole_.m, kernels_.tile_rows, of_row_, row);
    const auto i1 = begin(whole_.m, kernels_.tile_rows, of_row_, row + 1);
    const auto j0 = begin(whole_.n, kernels_.tile_columns, threads_of(row), column);
    const auto j1 = begin(whole_.n, kernels_.tile_columns, threads_of(row), column + 1);
    return {i0, j0, i1 - i0, j1 - j0};
  }

 private:
  [[nodiscard]] std::span<const double> threads_of(std::int64_t row) const {
    return std::span(of_thread_).subspan(row * columns_, columns_);
  }
  static std::int64_t begin(std::int64_t extent, std::int64_t unit, std::span<const double> weights,
                            std::int64_t index) {
    return std::min(extent, begin_of_part(tiles(extent, unit), weights, index) * unit);
  }

  const GemmProblem& whole_;
  const GemmKernels& kernels_;
  std::int64_t columns_;
  std::vector<double> of_thread_, of_row_;
};

GemmProblem part_of(const GemmProblem& whole, const Piece& piece) {
  GemmProblem part = whole;
  part.m = piece.m;
  part.n = piece.n;
  if (part.a_bf16 == nullptr) {
    part.a += piece.row * whole.a_row;
  } else {
    part.a_bf16 += piece.row * whole.a_row;
  }
  if (part.b_bf16 == nullptr) {
    part.b += piece.column * whole.b_column;
  } else {
    part.b_bf16 += piece.column * whole.b_column;
  }
  if (part.c_bf16 == nullptr) {
    part.c += piece.row * whole.c_row + piece.column;
  } else {
    part.c_bf16 += piece.row * whole.c_row + piece.column;
  }
  return part;
}

// The three products of a linear layer, without their pointers.
GemmProblem forward_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .a_row = k, .a_k = 1, .b_k = 1, .b_column = k, .c_row = n};
}
GemmProblem input_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = k, .k = n, .a_row = n, .a_k = 1, .b_k = k, .b_column = 1, .c_row = k};
}
GemmProblem weight_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = n, .n = k, .k = m, .a_row = 1, .a_k = n, .b_k = k, .b_column = 1, .c_row = k};
}

/// The extents that a piece may have of one that is cut into `parts`, however unlike the threads'
/// speeds are.
std::vector<std::int64_t> possible_extents(std::int64_t extent, std::int64_t unit,
                                           std::int64_t parts) {
  if (parts == 1) return {extent};
  constexpr double kLeast = ThreadSpeeds::kSlowest, kMost = ThreadSpeeds::kFastest;
  const auto all = tiles(extent, unit);
  const double share = kMost / (kMost + kLeast * static_cast<double>(parts - 1));
  const auto most = std::min(all, std::lround(static_cast<double>(all) * share) + 1);
  std::vector<std::int64_t> extents;
  for (std::int64_t part = 1; part <= most; ++part) {
    extents.push_back(part * unit);
    if (extent % unit != 0)
      extents.push_back(part * unit - unit + extent % unit);  // the last piece
  }
  return extents;
}

/// Floats of workspace of the piece that takes most.
std::int64_t largest_workspace(const Policy& policy, const GemmProblem& problem) {
  const auto& kernels = gemm_kernels_for(policy.isa);
  const auto grid = grid_of(policy, kernels, problem);
  GemmProblem part = problem;
  std::int64_t floats = 0;
  for (const auto m : possible_extents(problem.m, kernels.tile_rows, grid.rows)) {
    for (const auto n : possible_extents(problem.n, kernels.tile_columns, grid.columns)) {
      part.m = m;
      part.n = n;
      floats = std::max(floats, kernels.workspace(part, kernels.blocking(part, l2_bytes())));
    }
  }
  return floats;
}

/// With tiles of 128 where they fill a large GPU, else of 64.
void multiply_on_gpu(const Context& context, const char* op, const GemmProblem& g) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (g.m > kMost || g.n > kMost || g.k > kMost) {
    throw Error(ErrorKind::kFailure, std::string(op) +
                                         ": the kernels for GPUs take extents below 2^31, got " +
                                         shape_text(std::array{g.m, g.n, g.k}));
  }
  constexpr std::int64_t kEnough = 264;  // two for each of the 132 multiprocessors of an H100
  const bool large = tiles(g.m, 128) * tiles(g.n, 128) >= kEnough;
  const std::int64_t side = large ? 128 : 64;
  const auto& kernels = large ? gpu_kernels::kGemm128 : gpu_kernels::kGemm64;
  launch(context, kernels[g.a_bf16 != nullptr][g.b_bf16 != nullptr],
         tiles(g.m, side) * tiles(g.n, side), g);
}

/// `problem` with its pointers; `left` and `right` are its A and B.
void multiply(const Context& context, const char* op, GemmProblem problem, const at::Tensor& left,
              const at::Tensor& right, const at::Tensor& out) {
  if (problem.m == 0 || problem.n == 0) return;
  if (is_bf16(left)) {
    problem.a_bf16 = kernel_input_bf16(left);
  } else {
    problem.a = kernel_input<float>(left);
  }
  if (is_bf16(right)) {
    problem.b_bf16 = kernel_input_bf16(right);
  } else {
    problem.b = kernel_input<float>(right);
  }
  if (is_bf16(out)) {
    problem.c_bf16 = kernel_output<Bf16>(out);
  } else {
    problem.c = kernel_output<float>(out);
  }
  if (on_gpu(context, op, {left, right, out})) {
    multiply_on_gpu(context, op, problem);
    return;
  }
  const auto& kernels = gemm_kernels_for(context.policy.isa);
  const auto grid = grid_of(context.policy, kernels, problem);
  CallWorkspace workspace(context);
  const Pieces pieces(problem, kernels, grid, workspace.speeds());
  std::vector<ThreadSpeeds::Share> shares(pieces.count());
  parallel_for(0, std::ssize(shares), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto index = begin; index < end; ++index) {
      const auto start = std::chrono::steady_clock::now();
      const auto piece = part_of(problem, pieces[index]);
      if (piece.m == 0 || piece.n == 0) continue;
      const auto blocking = kernels.blocking(piece, l2_bytes());
      const auto floats = kernels.workspace(piece, blocking);
      kernels.gemm(piece, blocking, workspace.reserve(static_cast<std::size_t>(floats)));
      shares[index] = {static_cast<double>(piece.m * piece.n), seconds_since(start)};
    }
  });
  workspace.speeds().learn(shares);
}

/// Whether LibTorch adds a product of bf16 to fp32. Before 2.11, which c10::Stream tells, it may
/// refuse: 2.8 wants the sum in bf16, too.
template <class Stream>
constexpr bool adds_bf16_to_fp32() {
  return requires(const Stream& stream) { stream.native_handle(); };
}

/// A GPU's product of bf16 into fp32. False: this LibTorch is older than 2.8 and has none.
template <class Tensor>
bool multiply_bf16_into_fp32(Tensor& out, const Tensor& left, const Tensor& right,
                             bool accumulate) {
  if constexpr (requires { at::mm_out(out, left, right, at::kFloat); }) {
    if (!accumulate) {
      at::mm_out(out, left, right, at::kFloat);
    } else if constexpr (adds_bf16_to_fp32<c10::Stream>()) {
      at::addmm_out(out, out, left, right, at::kFloat);
    } else {
      out.add_(at::mm(left, right, at::kFloat));
    }
    return true;
  }
  return false;
}

/// Whether LibTorch multiplies these as they are.
bool multiplies_bf16(const Policy& policy, const at::Tensor& left, const at::Tensor& right) {
  return is_bf16(left) && is_bf16(right) && (left.is_cuda() || policy.multiplies_bf16);
}

/// LibTorch's product, with nothing read on the host. bf16 is multiplied as it is, into bf16 (on a
/// GPU into fp32, too), or it is widened and the end of each sum rounded.
void multiply_fast(const Policy& policy, const at::Tensor& left, const at::Tensor& right,
                   at::Tensor out, bool accumulate = false) {
  if (multiplies_bf16(policy, left, right)) {
    if (is_bf16(out) && !accumulate) {
      at::mm_out(out, left, right);
      return;
    }
    if (out.is_cuda() && multiply_bf16_into_fp32(out, left, right, accumulate)) return;
  }
  const auto a = left.to(at::kFloat), b = right.to(at::kFloat);
  if (accumulate) {
    at::addmm_out(out, out, a, b);
  } else if (is_bf16(out)) {
    out.copy_(at::mm(a, b));
  } else {
    at::mm_out(out, a, b);
  }
}

/// multiply_fast, and the result rounded to bf16. A product in bf16 is rounded as it is stored and
/// then widened: on a GPU that moves two thirds of the bytes of one in fp32 that is read and stored
/// once more.
void multiply_fast_rounded(const Context& context, const at::Tensor& left, const at::Tensor& right,
                           const at::Tensor& out, bool accumulate) {
  if (!accumulate && multiplies_bf16(context.policy, left, right)) {
    out.copy_(at::mm(left, right));
  } else {
    multiply_fast(context.policy, left, right, out, accumulate);
    round_to_bf16(context.named({}), out);
  }
}

/// Checks an input of a product: a matrix in fp32 or bf16.
void require_input(const char* op, const char* name, const at::Tensor& t) {
  require_matrix(op, name, t);
  require_fp32_or_bf16(op, name, t, t.sizes());
}

/// Checks an output: fp32, or bf16 where both inputs are.
void require_output(const char* op, const char* name, const at::Tensor& t, at::IntArrayRef sizes,
                    const at::Tensor& left, const at::Tensor& right) {
  if (is_bf16(left) && is_bf16(right)) {
    require_fp32_or_bf16(op, name, t, sizes);
  } else {
    require(op, name, t, sizes);
  }
}

}  // namespace

void linear(const Context& context, const at::Tensor& x_MK, const at::Tensor& w_NK,
            at::Tensor& y_MN) {
  require_input("linear", "x", x_MK);
  require_matrix("linear", "w", w_NK);
  const auto m = x_MK.size(0), k = x_MK.size(1), n = w_NK.size(0);
  require_fp32_or_bf16("linear", "w", w_NK, {n, k});
  require_output("linear", "y", y_MN, {m, n}, x_MK, w_NK);
  if (context.policy.numerics == Numerics::kFast) {
    multiply_fast(context.policy, x_MK, w_NK.t(), y_MN);
  } else {
    multiply(context, "linear", forward_problem(m, n, k), x_MK, w_NK, y_MN);
  }
  context.traced(y_MN);
}

void linear_backward_input(const Context& context, const at::Tensor& dy_MN, const at::Tensor& w_NK,
                           at::Tensor& dx_MK) {
  require_input("linear_backward_input", "dy", dy_MN);
  require_matrix("linear_backward_input", "w", w_NK);
  const auto m = dy_MN.size(0), n = dy_MN.size(1), k = w_NK.size(1);
  require_fp32_or_bf16("linear_backward_input", "w", w_NK, {n, k});
  require_output("linear_backward_input", "dx", dx_MK, {m, k}, dy_MN, w_NK);
  if (context.policy.numerics == Numerics::kFast) {
    multiply_fast(context.policy, dy_MN, w_NK, dx_MK);
  } else {
    multiply(context, "linear_backward_input", input_problem(m, n, k), dy_MN, w_NK, dx_MK);
  }
  context.traced(dx_MK);
}

void linear_backward_weight(const Context& context, const at::Tensor& dy_MN, const at::Tensor& x_MK,
                            const at::Tensor& dw_NK, bool accumulate, Rounding rounding) {
  require_input("linear_backward_weight", "dy", dy_MN);
  require_matrix("linear_backward_weight", "x", x_MK);
  const auto m = dy_MN.size(0), n = dy_MN.size(1), k = x_MK.size(1);
  require_fp32_or_bf16("linear_backward_weight", "x", x_MK, {m, k});
  require("linear_backward_weight", "dw", dw_NK, {n, k});
  if (context.policy.numerics == Numerics::kFast) {
    if (rounding == Rounding::kBf16) {
      multiply_fast_rounded(context, dy_MN.t(), x_MK, dw_NK, accumulate);
    } else {
      multiply_fast(context.policy, dy_MN.t(), x_MK, dw_NK, accumulate);
    }
  } else {
    GemmProblem problem = weight_problem(m, n, k);
    problem.accumulate = accumulate;
    problem.rounds_c = rounding == Rounding::kBf16;
    multiply(context, "linear_backward_weight", problem, dy_MN, x_MK, dw_NK);
  }
  context.traced(dw_NK);
}

std::int64_t linear_workspace(const Policy& policy, std::int64_t m, std::int64_t n, std::int64_t k,
                              at::ScalarType type) {
  if (policy.numerics == Numerics::kFast || policy.device != Device::kCpu) return 0;
  Bf16 any{};
  GemmProblem forward = forward_problem(m, n, k), input = input_problem(m, n, k),
              weight = weight_problem(m, n, k);
  if (type == at::kBFloat16) {
    for (auto* problem : {&forward, &input, &weight}) problem->a_bf16 = problem->b_bf16 = &any;
    forward.c_bf16 = input.c_bf16 = &any;
  }
  return std::max({largest_workspace(policy, forward), largest_workspace(policy, input),
                   largest_workspace(policy, weight)});
}

}  // namespace olmo::ops
