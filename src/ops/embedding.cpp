#include "ops/embedding.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/named_tensors.h"
#include "ops/dispatch.h"
#include "ops/kernels/pointwise.h"

namespace olmo::ops {

OLMO_ISA_TABLE(PointwiseKernels, pointwise_kernels)

namespace {

std::span<const std::int64_t> check(const char* op, const at::Tensor& ids, const at::Tensor& x,
                                    const at::Tensor& table) {
  require_matrix(op, "the table", table);
  const auto vocabulary = table.size(0), columns = table.size(1);
  require_fp32_or_bf16(op, "the table", table, {vocabulary, columns});
  require(op, "ids", ids, {ids.defined() ? ids.numel() : 0}, at::kLong);
  require(op, "x", x, {ids.numel(), columns});
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

template <typename Element>
void copy_rows(const Element* table, std::span<const std::int64_t> ids, std::int64_t columns,
               float* x) {
  at::parallel_for(0, static_cast<std::int64_t>(ids.size()), row_grain(columns),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto row = begin; row < end; ++row) {
                       const auto id = ids[static_cast<std::size_t>(row)];
                       std::copy_n(table + id * columns, columns, x + row * columns);
                     }
                   });
}

/// The tokens of a batch by (id, position); `starts` holds the first of each id and the end, so
/// that threads share out whole ids.
struct TokensById {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  std::vector<std::size_t> starts;
};

TokensById sort_by_id(std::span<const std::int64_t> ids) {
  TokensById tokens;
  auto& [order, starts] = tokens;
  order.reserve(ids.size());
  for (const auto id : ids) order.emplace_back(id, static_cast<std::int64_t>(order.size()));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order[i].first != order[i - 1].first) starts.push_back(i);
  }
  starts.push_back(order.size());
  return tokens;
}

void add_rows(const PointwiseKernels& kernels, const at::Tensor& dx_MD, const at::Tensor& dwte_VD,
              const TokensById& tokens) {
  // No structured binding: clang 14 cannot capture one in a lambda.
  const auto& order = tokens.order;
  const auto& starts = tokens.starts;
  const auto columns = dwte_VD.size(1);
  const auto* dx = kernel_input<float>(dx_MD);
  auto* dwte = kernel_output<float>(dwte_VD);
  at::parallel_for(0, static_cast<std::int64_t>(starts.size()) - 1, row_grain(columns),
                   [&](std::int64_t begin, std::int64_t end) {
                     const auto last = starts[static_cast<std::size_t>(end)];
                     for (auto i = starts[static_cast<std::size_t>(begin)]; i < last; ++i) {
                       float* row = dwte + order[i].first * columns;
                       kernels.add(row, dx + order[i].second * columns, row, 0, columns);
                     }
                   });
}

void add_rows_on_gpu(const Context& context, const at::Tensor& dx, const at::Tensor& dwte,
                     const TokensById& tokens) {
  const auto& [order, starts] = tokens;
  const auto ids = static_cast<std::int64_t>(starts.size()) - 1;
  const auto places = static_cast<std::int64_t>(order.size());
  const at::Tensor device_order = new_tensor({places, 2}, at::kLong);
  const at::Tensor device_starts = new_tensor({ids + 1}, at::kLong);
  auto* pairs = mutable_host_span<std::int64_t>(device_order).data();
  for (const auto& [id, position] : order) *pairs++ = id, *pairs++ = position;
  std::ranges::copy(starts, mutable_host_span<std::int64_t>(device_starts).begin());
  launch(context, gpu_kernels::kEmbeddingBackward, blocks_of_rows(ids), kernel_input<float>(dx),
         kernel_input<std::int64_t>(device_order), kernel_input<std::int64_t>(device_starts), ids,
         kernel_output<float>(dwte), dwte.size(1));
}

void embedding_on_gpu(const Context& context, const at::Tensor& ids_M, const at::Tensor& wte_VD,
                      const at::Tensor& x_MD) {
  const auto rows = ids_M.numel(), columns = wte_VD.size(1);
  const auto* ids = kernel_input<std::int64_t>(ids_M);
  auto* x = kernel_output<float>(x_MD);
  if (wte_VD.scalar_type() == at::kBFloat16) {
    launch(context, gpu_kernels::kEmbeddingBf16, blocks_of_rows(rows), kernel_input_bf16(wte_VD),
           ids, x, rows, columns);
  } else {
    launch(context, gpu_kernels::kEmbedding, blocks_of_rows(rows), kernel_input<float>(wte_VD), ids,
           x, rows, columns);
  }
}

}  // namespace

void embedding(const Context& context, const at::Tensor& ids_M, const at::Tensor& wte_VD,
               const at::Tensor& x_MD) {
  const auto ids = check("embedding", ids_M, x_MD, wte_VD);
  if (on_gpu(context, "embedding", {ids_M, wte_VD, x_MD})) {
    embedding_on_gpu(context, ids_M, wte_VD, x_MD);
  } else if (wte_VD.scalar_type() == at::kBFloat16) {
    copy_rows(kernel_input<at::BFloat16>(wte_VD), ids, wte_VD.size(1), kernel_output<float>(x_MD));
  } else {
    copy_rows(kernel_input<float>(wte_VD), ids, wte_VD.size(1), kernel_output<float>(x_MD));
  }
  context.traced(x_MD);
}

void embedding_backward(const Context& context, const at::Tensor& ids_M, const at::Tensor& dx_MD,
                        const at::Tensor& dwte_VD) {
  require_matrix("embedding_backward", "dwte", dwte_VD);
  require("embedding_backward", "dwte", dwte_VD, dwte_VD.sizes());
  const auto ids = check("embedding_backward", ids_M, dx_MD, dwte_VD);
  const TokensById tokens = sort_by_id(ids);
  if (on_gpu(context, "embedding_backward", {dx_MD, dwte_VD})) {
    add_rows_on_gpu(context, dx_MD, dwte_VD, tokens);
  } else {
    add_rows(pointwise_kernels_for(context.policy.isa), dx_MD, dwte_VD, tokens);
  }
  context.traced(dwte_VD);
}

}  // namespace olmo::ops
