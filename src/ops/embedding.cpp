#include "ops/embedding.h"

#include <array>
#include <bit>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "ops/dispatch.h"
#include "ops/shared_kernels.h"

namespace olmo::ops {

namespace {

std::span<const std::int64_t> check(const char* op, const at::Tensor& ids, const at::Tensor& x,
                                    const at::Tensor& table) {
  require_matrix(op, "the table", table);
  const auto vocabulary = table.size(0), columns = table.size(1);
  require_fp32_or_bf16(op, "the table", table, {vocabulary, columns});
  require(op, "ids", ids, {ids.defined() ? ids.numel() : 0}, at::kLong);
  require_fp32_or_bf16(op, "x", x, {ids.numel(), columns});
  const auto values = host_span<std::int64_t>(ids);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < vocabulary) continue;
    throw Error(ErrorKind::kInput, std::string(op) + ": the token id at position " +
                                       std::to_string(i) + " must lie in 0.." +
                                       std::to_string(vocabulary - 1) + ", got " +
                                       std::to_string(values[i]));
  }
  return values;
}

float widen(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

template <class Table, class Element>
void copy_rows(const Table* table, std::span<const std::int64_t> ids, std::int64_t columns,
               Element* x) {
  parallel_for(0, static_cast<std::int64_t>(ids.size()), row_grain(columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto row = begin; row < end; ++row) {
                   const Table* from = table + ids[static_cast<std::size_t>(row)] * columns;
                   if constexpr (std::is_same_v<Table, Element>) {
                     std::copy_n(from, columns, x + row * columns);
                   } else {
                     std::transform(from, from + columns, x + row * columns, widen);
                   }
                 }
               });
}

/// The tokens of a batch by (id, position); `starts` holds the first of each id and the end, so
/// that threads share out whole ids.
struct TokensById {
  std::vector<std::array<std::int64_t, 2>> order;
  std::vector<std::int64_t> starts;

  [[nodiscard]] std::int64_t ids() const { return static_cast<std::int64_t>(starts.size()) - 1; }
};

TokensById sort_by_id(std::span<const std::int64_t> ids) {
  TokensById tokens;
  auto& [order, starts] = tokens;
  order.reserve(ids.size());
  for (const auto id : ids) order.push_back({id, static_cast<std::int64_t>(order.size())});
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order[i][0] != order[i - 1][0]) starts.push_back(static_cast<std::int64_t>(i));
  }
  starts.push_back(static_cast<std::int64_t>(order.size()));
  return tokens;
}

template <class Element>
void add_rows(const Context& context, EmbeddingGradient<Element> gradient,
              const TokensById& tokens) {
  if (tokens.order.empty()) return;
  gradient.order = tokens.order.front().data();
  gradient.starts = tokens.starts.data();
  const auto& kernels = pointwise_kernels_for(context.policy.isa).elements.of<Element>();
  parallel_for(0, tokens.ids(), row_grain(gradient.columns),
               [&](std::int64_t begin, std::int64_t end) {
                 kernels.embedding_backward(gradient, begin, end);
               });
}

template <class Element>
void add_rows_on_gpu(const Context& context, EmbeddingGradient<Element> gradient,
                     const TokensById& tokens) {
  const auto places = static_cast<std::int64_t>(tokens.order.size());
  const at::Tensor host_order = new_tensor({places, 2}, at::kLong);
  const at::Tensor host_starts = new_tensor({tokens.ids() + 1}, at::kLong);
  auto* pairs = mutable_host_span<std::int64_t>(host_order).data();
  for (const auto& [id, position] : tokens.order) *pairs++ = id, *pairs++ = position;
  std::ranges::copy(tokens.starts, mutable_host_span<std::int64_t>(host_starts).begin());
  const at::Tensor device_order = to_device(context.policy, host_order);
  const at::Tensor device_starts = to_device(context.policy, host_starts);
  gradient.order = kernel_input<std::int64_t>(device_order);
  gradient.starts = kernel_input<std::int64_t>(device_starts);
  launch(context, gpu_kernels::kEmbeddingBackward<Element>,
         blocks_of_pieces(tokens.ids(), gradient.columns, kEmbeddingPiece), gradient, tokens.ids());
}

}  // namespace

void embedding(const Context& context, const at::Tensor& ids_M, const at::Tensor& wte_VD,
               const at::Tensor& x_MD) {
  const auto ids = check("embedding", ids_M, x_MD, wte_VD);
  if (!is_bf16(wte_VD)) require("embedding", "x", x_MD, x_MD.sizes());
  const auto columns = wte_VD.size(1);
  const auto rows = static_cast<std::int64_t>(ids.size());
  using Index = std::int64_t;
  const auto look_up =
      [&]<class Table, class Element>(
          const GpuKernel<const Table*, const Index*, Element*, Index, Index>& gpu_kernel) {
        const auto* table = kernel_input<Table>(wte_VD);
        auto* x = kernel_output<Element>(x_MD);
        if (on_gpu(context, "embedding", {wte_VD, x_MD})) {
          const at::Tensor there = to_device(context.policy, ids_M);
          launch(context, gpu_kernel, blocks_of_rows(rows), table, kernel_input<Index>(there), x,
                 rows, columns);
        } else {
          copy_rows(table, ids, columns, x);
        }
      };
  if (is_bf16(x_MD)) {
    look_up(gpu_kernels::kEmbeddingBf16);
  } else if (is_bf16(wte_VD)) {
    look_up(gpu_kernels::kEmbeddingWidened);
  } else {
    look_up(gpu_kernels::kEmbedding);
  }
  context.traced(x_MD);
}

void embedding_backward(const Context& context, const at::Tensor& ids_M, const at::Tensor& dx_MD,
                        const at::Tensor& dwte_VD, Rounding rounding) {
  require_matrix("embedding_backward", "dwte", dwte_VD);
  require("embedding_backward", "dwte", dwte_VD, dwte_VD.sizes());
  const auto ids = check("embedding_backward", ids_M, dx_MD, dwte_VD);
  const TokensById tokens = sort_by_id(ids);
  for_element_type(dx_MD, [&]<class Element>() {
    const EmbeddingGradient<Element> gradient{.dx = kernel_input<Element>(dx_MD),
                                              .order = nullptr,
                                              .starts = nullptr,
                                              .dtable = kernel_output<float>(dwte_VD),
                                              .columns = dwte_VD.size(1),
                                              .rounds = rounding == Rounding::kBf16};
    if (on_gpu(context, "embedding_backward", {dx_MD, dwte_VD})) {
      add_rows_on_gpu(context, gradient, tokens);
    } else {
      add_rows(context, gradient, tokens);
    }
  });
  context.traced(dwte_VD);
}

}  // namespace olmo::ops
