#include "ops/attention.h"

#include <cmath>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/flash_attention.h"
#include "ops/forest_tables.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PerElement<AttentionKernels>, attention_forward_kernels)
OLMO_ISA_TABLE(PerElement<AttentionKernels>, attention_backward_kernels)

namespace {

void check(const char* op, const AttentionShape& s, const at::Tensor& qkv, const at::Tensor& out,
           const at::Tensor& lse) {
  OLMO_CHECK(s.window >= 0);
  if (s.batch < 0 || s.length < 0 || s.n_heads <= 0 || s.n_kv_heads <= 0 || s.head_dim <= 0 ||
      s.n_heads % s.n_kv_heads != 0) {
    throw Error(ErrorKind::kFailure,
                std::string(op) +
                    ": n_kv_heads must divide n_heads and all sizes be positive, got " +
                    std::to_string(s.n_heads) + " heads, " + std::to_string(s.n_kv_heads) +
                    " kv heads of " + std::to_string(s.head_dim));
  }
  require_fp32_or_bf16(op, "qkv", qkv,
                       {s.batch * s.length, (s.n_heads + 2 * s.n_kv_heads) * s.head_dim});
  require(op, "out", out, {s.batch * s.length, s.n_heads * s.head_dim}, qkv.scalar_type());
  require(op, "lse", lse, {s.batch, s.n_heads, s.length});
  if (s.document_starts.defined())
    require(op, "document_starts", s.document_starts, {s.batch * s.length}, at::kInt);
}

/// Without its tensors.
template <class Element>
AttentionProblem<Element> problem_of(const AttentionShape& s) {
  AttentionProblem<Element> p{};
  p.batch = s.batch;
  p.length = s.length;
  p.n_heads = s.n_heads;
  p.n_kv_heads = s.n_kv_heads;
  p.head_dim = s.head_dim;
  p.window = s.is_sliding() ? s.window : kNoWindow;
  if (s.document_starts.defined())
    p.document_starts = kernel_input<std::int32_t>(s.document_starts);
  p.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  return p;
}

/// `dout` and `dqkv` are undefined in the forward pass.
template <class Element>
AttentionProblem<Element> problem_of(const AttentionShape& s, const at::Tensor& qkv,
                                     const at::Tensor& out, const at::Tensor& lse,
                                     const at::Tensor& dout = {}, const at::Tensor& dqkv = {}) {
  auto p = problem_of<Element>(s);
  p.qkv = kernel_input<Element>(qkv);
  p.out = kernel_output<Element>(out);
  p.lse = kernel_output<float>(lse);
  if (dout.defined()) p.dout = kernel_input<Element>(dout);
  if (dqkv.defined()) p.dqkv = kernel_output<Element>(dqkv);
  return p;
}

// How many pieces each (sequence, key/value head) is cut into: one where there are enough of those
// for the threads, for cutting repeats the packing of keys and, in the backward pass, the scores.
std::int64_t pieces_per_head(int threads, const AttentionShape& s) {
  const auto heads = std::max<std::int64_t>(s.batch * s.n_kv_heads, 1);
  const std::int64_t wanted = threads == 1 ? 1 : 2 * threads;
  const auto tiles = (s.length + kAttentionTile - 1) / kAttentionTile;
  return std::clamp<std::int64_t>((wanted + heads - 1) / heads, 1,
                                  std::max<std::int64_t>(tiles, 1));
}

// Calls add(sequence, kv_head, begin, end) for every piece, ranges of positions on tile borders,
// late ones first. Empty sequences have none, and maybe no memory that a kernel could point into.
template <class Add>
void for_pieces(const AttentionShape& s, std::int64_t pieces, const Add& add) {
  if (s.length == 0) return;
  const auto tiles = (s.length + kAttentionTile - 1) / kAttentionTile;
  for (auto piece = pieces - 1; piece >= 0; --piece) {
    const auto begin = tiles * piece / pieces * kAttentionTile;
    const auto end = std::min(s.length, tiles * (piece + 1) / pieces * kAttentionTile);
    for (std::int64_t sequence = 0; sequence < s.batch; ++sequence) {
      for (std::int64_t head = 0; head < s.n_kv_heads; ++head) add(sequence, head, begin, end);
    }
  }
}

std::vector<AttentionPart> forward_parts(int threads, const AttentionShape& s) {
  std::vector<AttentionPart> parts;
  for_pieces(s, pieces_per_head(threads, s), [&](auto sequence, auto head, auto begin, auto end) {
    parts.push_back({sequence, head, begin, end, 0, end, false, false});
  });
  return parts;
}

/// A head in one piece gives dq, dk and dv at once; in several, those of dq and those of dk and dv.
std::vector<AttentionPart> backward_parts(int threads, const AttentionShape& s) {
  const auto pieces = pieces_per_head(threads, s);
  std::vector<AttentionPart> parts;
  for_pieces(s, pieces, [&](auto sequence, auto head, auto begin, auto end) {
    if (pieces == 1) {
      parts.push_back({sequence, head, 0, end, 0, end, true, true});
      return;
    }
    parts.push_back({sequence, head, begin, end, 0, end, true, false});
    parts.push_back({sequence, head, begin, s.length, begin, end, false, true});
  });
  return parts;
}

/// Of the whole call; `products` of a query with a key there are: two forward, five backward.
int threads_for(const Context& context, const AttentionShape& s, std::int64_t products) {
  const auto hidden = s.is_sliding() ? s.length - s.window : 0;
  const auto pairs = s.batch * s.n_heads * (s.length * (s.length + 1) - hidden * (hidden + 1)) / 2;
  return useful_threads(context.policy, 2 * products * pairs * s.head_dim);
}

// Each output belongs to one part, so their order does not matter.
template <class Element>
void run_parts(const Context& context, int threads, const AttentionKernels<Element>& kernels,
               const AttentionProblem<Element>& problem, const std::vector<AttentionPart>& parts) {
  const auto floats = static_cast<std::size_t>(kernels.workspace(problem));
  CallWorkspace workspace(context);
  for_each_in_parallel(
      parts.size(),
      [&](std::size_t i) { kernels.run(problem, parts[i], workspace.reserve(floats)); }, threads);
}

/// How many times 128 columns a head has.
std::int64_t column_chunks(const AttentionShape& s) { return (s.head_dim + 127) / 128; }

/// A tile of queries (or keys) of a head and at most 128 of its output columns each.
std::int64_t gpu_blocks(const AttentionShape& s, std::int64_t heads) {
  const auto tiles = (s.length + kAttentionTile - 1) / kAttentionTile;
  return tiles * s.batch * heads * column_chunks(s);
}

bool is_fast(const Context& context, const AttentionShape& shape, const at::Tensor& qkv) {
  return context.policy.numerics == Numerics::kFast && has_flash_attention(shape, qkv);
}

/// lse gives the sizes of the row sums of dout * out, which both passes read.
template <class Element>
void backward_on_gpu(const Context& context, const AttentionShape& shape,
                     const AttentionProblem<Element>& problem, const at::Tensor& lse) {
  const at::Tensor deltas = lse.new_empty(lse.sizes());
  auto* delta = kernel_output<float>(deltas);
  launch(context, gpu_kernels::kAttentionDeltas<Element>, blocks_of_rows(lse.numel()), problem,
         delta, lse.numel());
  launch(context, gpu_kernels::kAttentionDq<Element>, gpu_blocks(shape, shape.n_heads), problem,
         delta);
  launch(context, gpu_kernels::kAttentionDkv<Element>, gpu_blocks(shape, shape.n_kv_heads), problem,
         delta);
}

}  // namespace

void attention(const Context& context, const AttentionShape& shape, const at::Tensor& qkv,
               at::Tensor& out, at::Tensor& lse) {
  check("attention", shape, qkv, out, lse);
  const bool gpu = on_gpu(context, "attention", {qkv, out, lse, shape.document_starts});
  if (is_fast(context, shape, qkv)) {
    flash_attention(context.policy, shape, qkv, out, lse);
  } else if (gpu) {
    for_element_type(qkv, [&]<class Element>() {
      launch(context, gpu_kernels::kAttention<Element>, gpu_blocks(shape, shape.n_heads),
             problem_of<Element>(shape, qkv, out, lse));
    });
  } else {
    const int threads = threads_for(context, shape, 2);
    for_element_type(qkv, [&]<class Element>() {
      run_parts(context, threads, attention_forward_kernels_for(context.policy.isa).of<Element>(),
                problem_of<Element>(shape, qkv, out, lse), forward_parts(threads, shape));
    });
  }
  context.traced(out);
}

void attention_backward(const Context& context, const AttentionShape& shape, const at::Tensor& dout,
                        const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                        at::Tensor& dqkv) {
  check("attention_backward", shape, qkv, out, lse);
  require("attention_backward", "dout", dout, out.sizes(), qkv.scalar_type());
  require("attention_backward", "dqkv", dqkv, qkv.sizes(), qkv.scalar_type());
  const bool gpu =
      on_gpu(context, "attention_backward", {dout, qkv, out, lse, dqkv, shape.document_starts});
  if (is_fast(context, shape, qkv)) {
    flash_attention_backward(context.policy, shape, dout, qkv, out, lse, dqkv);
  } else if (gpu) {
    for_element_type(qkv, [&]<class Element>() {
      backward_on_gpu(context, shape, problem_of<Element>(shape, qkv, out, lse, dout, dqkv), lse);
    });
  } else {
    const int threads = threads_for(context, shape, 5);
    for_element_type(qkv, [&]<class Element>() {
      run_parts(context, threads, attention_backward_kernels_for(context.policy.isa).of<Element>(),
                problem_of<Element>(shape, qkv, out, lse, dout, dqkv),
                backward_parts(threads, shape));
    });
  }
  context.traced(dqkv);
}

std::int64_t attention_workspace(const Policy& policy, const AttentionShape& shape) {
  if (policy.device != Device::kCpu) return 0;
  std::int64_t floats = 0;
  const auto add = [&]<class Element>() {
    const auto problem = problem_of<Element>(shape);
    const auto& forward = attention_forward_kernels_for(policy.isa).of<Element>();
    const auto& backward = attention_backward_kernels_for(policy.isa).of<Element>();
    floats = std::max({floats, forward.workspace(problem), backward.workspace(problem)});
  };
  add.template operator()<float>();
  add.template operator()<Bf16>();
  return floats;
}

OLMO_ISA_TABLE(PerElement<ForestKernels>, forest_kernels)

namespace {

void check_segments(std::span<const TokenSegment> segments, std::int64_t rows) {
  std::int64_t next_row = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto& s = segments[i];
    OLMO_CHECK(s.begin == next_row && s.length > 0 && s.length <= rows - next_row);
    OLMO_CHECK(s.parent >= -1 && s.parent < static_cast<std::int64_t>(i));
    const auto* parent = s.parent < 0 ? nullptr : &segments[static_cast<std::size_t>(s.parent)];
    OLMO_CHECK(s.position == (parent == nullptr ? 0 : parent->position + parent->length));
    next_row += s.length;
  }
  OLMO_CHECK(next_row == rows);
}

/// Cuts the segments into pieces, and the pieces' queries into tiles: the first pieces of siblings
/// see the same keys before their own and share tiles, any other piece has one of its own.
class Planner {
 public:
  Planner(const ForestKernels<float>& kernels, std::span<const TokenSegment> segments,
          ForestPlan& plan)
      : kernels_(kernels), segments_(segments), plan_(plan) {}

  void run() {
    std::vector<std::vector<std::int64_t>> siblings(segments_.size() + 1);  // by parent + 1
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      first_piece_.push_back(static_cast<std::int64_t>(plan_.pieces.size()));
      add_pieces(segments_[i]);
      siblings[static_cast<std::size_t>(segments_[i].parent + 1)].push_back(
          static_cast<std::int64_t>(i));
    }
    first_piece_.push_back(static_cast<std::int64_t>(plan_.pieces.size()));
    for (const auto& children : siblings) {
      share_tiles(children);
      for (const auto child : children) tile_later_pieces(child);
    }
  }

 private:
  [[nodiscard]] std::int64_t first_piece(std::int64_t segment) const {
    return first_piece_[static_cast<std::size_t>(segment)];
  }
  [[nodiscard]] std::int64_t rows_of(std::int64_t piece) const {
    return plan_.pieces[static_cast<std::size_t>(piece)].rows;
  }

  void add_pieces(const TokenSegment& segment) {
    for (std::int64_t offset = 0; offset < segment.length; offset += kAttentionTile) {
      const auto rows = std::min(kAttentionTile, segment.length - offset);
      plan_.pieces.push_back({segment.begin + offset, rows, plan_.panel_floats});
      plan_.panel_floats += kernels_.panel_floats(rows, plan_.shape.head_dim);
    }
  }

  /// The path up to `segment`: pieces from its root on.
  void add_path(std::int64_t segment) {
    const auto begin = static_cast<std::ptrdiff_t>(plan_.path.size());
    for (; segment >= 0; segment = segments_[static_cast<std::size_t>(segment)].parent) {
      for (auto piece = first_piece(segment + 1); piece-- > first_piece(segment);)
        plan_.path.push_back(piece);
    }
    std::reverse(plan_.path.begin() + begin, plan_.path.end());
  }

  void begin_tile(std::int64_t path_begin, std::int64_t keys) {
    const auto runs = static_cast<std::int64_t>(plan_.runs.size());
    plan_.tiles.push_back(
        {path_begin, static_cast<std::int64_t>(plan_.path.size()), keys, runs, runs, 0});
  }

  void add_run(std::int64_t piece) {
    ForestTile& tile = plan_.tiles.back();
    plan_.runs.push_back({piece, tile.queries});
    ++tile.run_end;
    tile.queries += rows_of(piece);
  }

  void share_tiles(const std::vector<std::int64_t>& children) {
    if (children.empty()) return;
    const auto& first = segments_[static_cast<std::size_t>(children.front())];
    const auto path_begin = static_cast<std::int64_t>(plan_.path.size());
    add_path(first.parent);
    bool begun = false;
    for (const auto child : children) {
      const auto piece = first_piece(child);
      if (!begun || plan_.tiles.back().queries + rows_of(piece) > kAttentionTile) {
        begin_tile(path_begin, first.position);
        begun = true;
      }
      add_run(piece);
    }
  }

  void tile_later_pieces(std::int64_t segment) {
    const auto begin = first_piece(segment), end = first_piece(segment + 1);
    if (end - begin < 2) return;
    const auto& s = segments_[static_cast<std::size_t>(segment)];
    const auto path_begin = static_cast<std::int64_t>(plan_.path.size());
    add_path(s.parent);
    for (auto piece = begin + 1; piece < end; ++piece) {
      plan_.path.push_back(piece - 1);
      begin_tile(path_begin, s.position + (piece - begin) * kAttentionTile);
      add_run(piece);
    }
  }

  const ForestKernels<float>& kernels_;
  std::span<const TokenSegment> segments_;
  ForestPlan& plan_;
  std::vector<std::int64_t> first_piece_;  ///< of each segment, and the end
};

template <class Element>
ForestProblem<Element> problem_of(const ForestPlan& plan, const at::Tensor& qkv,
                                  const at::Tensor& out, std::int64_t window) {
  const auto& s = plan.shape;
  std::int64_t most_keys = 0;
  for (const auto& tile : plan.tiles) most_keys = std::max(most_keys, tile.keys);
  auto* packed = kernel_output<float>(plan.packed);
  return {.rows = s.length,
          .n_heads = s.n_heads,
          .n_kv_heads = s.n_kv_heads,
          .head_dim = s.head_dim,
          .window = window > 0 ? window : kNoWindow,
          .scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim)),
          .qkv = kernel_input<Element>(qkv),
          .out = kernel_output<Element>(out),
          .pieces = plan.pieces.data(),
          .path = plan.path.data(),
          .runs = plan.runs.data(),
          .tiles = plan.tiles.data(),
          .most_keys = most_keys,
          .panels = packed,
          .values = packed + s.n_kv_heads * plan.panel_floats,
          .panel_floats = plan.panel_floats,
          .value_floats = plan.value_floats};
}

/// Calls work(i, kv_head) for i < count and every head, a head's one after the other.
template <class Work>
void share_out(const Context& context, std::size_t count, std::int64_t kv_heads, const Work& work) {
  for_each_in_parallel(
      count * static_cast<std::size_t>(kv_heads),
      [&](std::size_t i) {
        work(static_cast<std::int64_t>(i % count), static_cast<std::int64_t>(i / count));
      },
      context.policy.threads);
}

template <class Element>
void run_forest(const Context& context, const ForestPlan& plan, const at::Tensor& qkv,
                const at::Tensor& out, std::int64_t window) {
  const auto problem = problem_of<Element>(plan, qkv, out, window);
  const auto& kernels = forest_kernels_for(context.policy.isa).of<Element>();
  share_out(context, plan.pieces.size(), problem.n_kv_heads,
            [&](std::int64_t piece, std::int64_t head) { kernels.pack(problem, piece, head); });
  const auto floats = static_cast<std::size_t>(kernels.workspace(problem));
  CallWorkspace workspace(context);
  share_out(context, plan.tiles.size(), problem.n_kv_heads,
            [&](std::int64_t tile, std::int64_t head) {
              kernels.run(problem, tile, head, workspace.reserve(floats));
            });
}

template <class Element>
void run_forest_on_gpu(const Context& context, const ForestPlan& plan, const at::Tensor& qkv,
                       const at::Tensor& out, std::int64_t window) {
  const auto& s = plan.shape;
  const ForestGpuProblem<Element> problem{
      .n_heads = s.n_heads,
      .n_kv_heads = s.n_kv_heads,
      .head_dim = s.head_dim,
      .window = window > 0 ? window : kNoWindow,
      .scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim)),
      .qkv = kernel_input<Element>(qkv),
      .out = kernel_output<Element>(out),
      .tiles = kernel_array<ForestGpuTile>(plan.gpu_tiles),
      .key_rows = kernel_array<std::int32_t>(plan.gpu_key_rows)};
  launch(context, gpu_kernels::kAttentionForest<Element>,
         static_cast<std::int64_t>(plan.tiles.size()) * s.n_heads * column_chunks(s), problem);
}

}  // namespace

ForestPlan plan_forest(const Context& context, const AttentionShape& shape,
                       std::span<const TokenSegment> segments) {
  OLMO_CHECK(shape.n_kv_heads > 0 && shape.n_heads > 0 && shape.n_heads % shape.n_kv_heads == 0);
  OLMO_CHECK(shape.batch == 1 && shape.head_dim > 0 && !shape.document_starts.defined());
  check_segments(segments, shape.length);
  // Packed keys and values are fp32, so that one plan serves inputs of either type.
  const auto& kernels = forest_kernels_for(context.policy.isa).fp32;
  ForestPlan plan;
  plan.shape = shape;
  Planner(kernels, segments, plan).run();
  plan.value_floats = kernels.value_floats(shape.length, shape.head_dim);
  if (context.policy.gpu != nullptr) {
    const auto tables = forest_tables(plan);
    plan.gpu_tiles = device_copy(context, std::as_bytes(std::span(tables.tiles)));
    plan.gpu_key_rows = device_copy(context, std::as_bytes(std::span(tables.key_rows)));
  } else {
    plan.packed =
        new_tensor({shape.n_kv_heads * (plan.panel_floats + plan.value_floats)}, at::kFloat);
  }
  return plan;
}

void attention_forest(const Context& context, ForestPlan& plan, const at::Tensor& qkv,
                      at::Tensor& out, std::int64_t window) {
  OLMO_CHECK(window >= 0);
  const auto& s = plan.shape;
  require_fp32_or_bf16("attention_forest", "qkv", qkv,
                       {s.length, (s.n_heads + 2 * s.n_kv_heads) * s.head_dim});
  require("attention_forest", "out", out, {s.length, s.n_heads * s.head_dim}, qkv.scalar_type());
  const bool gpu = on_gpu(context, "attention_forest", {qkv, out});
  for_element_type(qkv, [&]<class Element>() {
    if (gpu) {
      run_forest_on_gpu<Element>(context, plan, qkv, out, window);
    } else {
      run_forest<Element>(context, plan, qkv, out, window);
    }
  });
  context.traced(out);
}

}  // namespace olmo::ops
