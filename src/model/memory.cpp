#include "model/memory.h"

#include <algorithm>

#include <c10/util/accumulate.h>

#include "core/compute/named_tensors.h"
#include "model/olmo.h"
#include "model/recomputation.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"

namespace olmo::model {
namespace {

constexpr std::int64_t kFloat = 4, kMask = 1;

std::int64_t size_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type));
}

/// Bytes per token of the buffers in block.h and olmo.h. The names are theirs.
struct TokenBytes {
  std::int64_t width, qkv, fused, activation, keys, stats;
  const ModelConfig& config;
  struct {
    std::int64_t stream, product, term;
  } element;

  TokenBytes(const ModelConfig& c, const Dtypes& dtypes)
      : width(c.d_model),
        qkv(c.qkv_size()),
        fused(c.fused_mlp_size()),
        activation(c.activation_size()),
        keys(c.kv_heads() * c.head_dim()),
        stats(c.layer_norm_type == "rms" ? 1 : 2),
        config(c),
        element{size_of(dtypes.stream), size_of(dtypes.product), size_of(dtypes.term)} {}

  /// A block's input.
  [[nodiscard]] std::int64_t stream() const { return element.stream * width; }
  /// BlockSaved::projected_MQ.
  [[nodiscard]] std::int64_t projected() const { return element.product * qkv; }

  /// AttentionSaved.
  [[nodiscard]] std::int64_t attention() const {
    std::int64_t bytes = element.product * (qkv + width) + kFloat * config.n_heads;
    if (config.attention_layer_norm) bytes += element.product * (width + keys) + 2 * kFloat * stats;
    return bytes;
  }
  /// BlockSaved without projected_MQ.
  [[nodiscard]] std::int64_t block() const {
    std::int64_t bytes = stream() + element.product * fused + 2 * kFloat * stats;
    if (config.clip_qkv) bytes += kMask * qkv;
    if (config.norm_after) bytes += 2 * element.product * width;
    return bytes;
  }
  /// BlockScratch, and the gradient of the residual stream.
  [[nodiscard]] std::int64_t scratch() const {
    const bool own_term = config.norm_after && element.term != element.product;
    return element.product * (2 * width + 2 * activation + qkv) + stream() +
           (own_term ? element.term * width : 0);
  }
  /// What grows with the rows of a forest: the residual stream before and after a block, the
  /// buffers of one block, what its forward pass uses of the scratch, and the head's input.
  [[nodiscard]] std::int64_t scoring() const {
    const bool own_term = config.norm_after && element.term != element.product;
    return 2 * stream() + attention() - kFloat * config.n_heads + block() +
           element.product * (2 * width + activation) + (own_term ? element.term * width : 0) +
           kFloat * stats + element.product * width;
  }
  /// ln_f's statistics, the head's input and its gradient.
  [[nodiscard]] std::int64_t head() const { return kFloat * stats + 2 * element.product * width; }
};

std::int64_t saved_per_token(const TokenBytes& token, const std::vector<Recomputed>& blocks) {
  std::int64_t bytes = token.stream();  // after the last block
  std::int64_t shared = 0;
  for (const Recomputed again : blocks) {
    bytes += token.stream();
    if (again == Recomputed::kNothing) bytes += token.attention() + token.block();
    if (again == Recomputed::kAttention) bytes += token.projected() + token.block();
    if (again != Recomputed::kNothing) shared = token.attention();
    if (again == Recomputed::kBlock) shared += token.block();
  }
  return bytes + shared;
}

/// Floats of workspace of the operation that takes most of a thread.
std::int64_t workspace_floats(const ModelConfig& config, const PassShape& shape,
                              std::int64_t head_rows, const Policy& policy) {
  const at::ScalarType type = dtypes_of(config, policy.mixed_precision).product;
  const std::int64_t tokens = shape.batch * shape.length, d = config.d_model;
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return ops::linear_workspace(policy, m, n, k, type);
  };
  return std::max({product(tokens, config.qkv_size(), d), product(tokens, d, d),
                   product(tokens, config.fused_mlp_size(), d),
                   product(tokens, d, config.activation_size()),
                   product(head_rows, config.embedding_rows(), d),
                   ops::attention_workspace(policy, {shape.batch, shape.length, config.n_heads,
                                                     config.kv_heads(), config.head_dim()})});
}

/// What LibTorch's flash attention takes while it runs on a GPU: its outputs, which are copied, and
/// in its deterministic backward pass sums of queries' gradients in fp32, as often as it takes to
/// give each multiprocessor work; where query heads share keys and values, the gradients of these
/// for each of them, too.
std::int64_t flash_workspace(const ModelConfig& config, const PassShape& shape,
                             std::int64_t element) {
  constexpr std::int64_t kMultiprocessors = 132;  // of an H100; others have fewer
  const std::int64_t tokens = shape.batch * shape.length, heads = shape.batch * config.n_heads;
  const std::int64_t splits = (kMultiprocessors + heads - 1) / heads;
  const std::int64_t expanded = config.kv_heads() < config.n_heads ? 2 * config.d_model : 0;
  return tokens * (element * (config.qkv_size() + expanded) +
                   kFloat * config.n_heads * (splits * config.head_dim() + 1));
}

/// What LibTorch's operations take for a while on a CPU: bf16 is widened, and so is the result
/// (ops/linear.cpp); attention has outputs of its own (ops/flash_attention.cpp). Where bf16 is
/// multiplied as it is, that is so only of the head's gradient from its second chunk on; those of
/// others exist in bf16 before they are widened.
std::int64_t fast_cpu_workspace(const ModelConfig& config, std::int64_t tokens,
                                std::int64_t head_rows, const Policy& policy) {
  const bool bf16 = dtypes_of(config, policy.mixed_precision).product == at::kBFloat16;
  const std::int64_t d = config.d_model, qkv = config.qkv_size(), words = config.embedding_rows();
  const auto widened = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return kFloat * (m * n + m * k + n * k);
  };
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    if (!bf16) return std::int64_t{0};
    return policy.multiplies_bf16 ? size_of(at::kBFloat16) * n * k : widened(m, n, k);
  };
  const bool adds = bf16 && head_rows < tokens;
  return std::max({product(tokens, qkv, d), product(tokens, config.fused_mlp_size(), d),
                   product(tokens, d, config.activation_size()), product(head_rows, words, d),
                   adds ? kFloat * head_rows * (words + d) : 0,
                   kFloat * tokens * (bf16 ? 2 * qkv + 2 * d : qkv)});
}

/// The gradient of the largest matrix before it is widened (ops::linear_backward_weight): the
/// head's among them, if no other is added to it.
std::int64_t gradient_workspace(const ModelConfig& config, bool head, std::int64_t element) {
  return element * config.d_model *
         std::max({config.qkv_size(), config.fused_mlp_size(), head ? config.embedding_rows() : 0});
}

std::int64_t workspace_bytes(const ModelConfig& config, const PassShape& shape,
                             std::int64_t head_rows, const Policy& policy) {
  const Dtypes dtypes = dtypes_of(config, policy.mixed_precision);
  const bool fast = policy.numerics == Numerics::kFast;
  if (policy.device == Device::kCpu && fast)
    return fast_cpu_workspace(config, shape.batch * shape.length, head_rows, policy);
  if (fast && dtypes.product == at::kBFloat16)
    return std::max(flash_workspace(config, shape, size_of(dtypes.product)),
                    gradient_workspace(config, head_rows == shape.batch * shape.length,
                                       size_of(dtypes.product)));
  const auto floats = workspace_floats(config, shape, head_rows, policy);
  return policy.threads *
         static_cast<std::int64_t>(ops::Workspace::bytes_for(static_cast<std::size_t>(floats)));
}

std::int64_t sum(std::initializer_list<const Buffer*> buffers) {
  std::int64_t bytes = 0;
  for (const Buffer* buffer : buffers) bytes += buffer->bytes();
  return bytes;
}

// The bindings name every member: a new one does not compile before it is counted.
std::int64_t bytes_of(const AttentionSaved& saved) {
  const auto& [options, qkv, q, k, heads, lse, q_stats, k_stats] = saved;
  return sum({&qkv, &q, &k, &heads, &lse, &q_stats, &k_stats});
}
std::int64_t bytes_of(const BlockSaved& saved) {
  const auto& [options, projected, clip, att, mid, u, mlp, attn_stats, ff_stats] = saved;
  return sum({&projected, &clip, &att, &mid, &u, &mlp, &attn_stats, &ff_stats});
}
std::int64_t bytes_of(const BlockScratch& scratch) {
  const auto& [options, h, g, term, act, dact, dqkv] = scratch;
  return sum({&h, &g, &term, &act, &dact, &dqkv});
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

std::int64_t plan_working_weights(const ModelConfig& config, MixedPrecision mixed) {
  const Dtypes dtypes = dtypes_of(config, mixed);
  std::int64_t bytes = 0;
  for (const auto& spec : parameter_specs(config)) {
    const at::ScalarType type = dtypes.of(spec.role);
    if (type != at::kFloat) bytes += size_of(type) * c10::multiply_integers(spec.shape);
  }
  if (config.weight_tying && dtypes.matrix != dtypes.embedding)
    bytes += size_of(dtypes.matrix) * config.embedding_rows() * config.d_model;
  return bytes;
}

BufferBytes plan_buffers(const ModelConfig& config, const PassShape& shape, const Policy& policy) {
  const TokenBytes token(config, dtypes_of(config, policy.mixed_precision));
  const std::int64_t tokens = shape.batch * shape.length, vocabulary = config.embedding_rows();
  const std::int64_t chunk = std::min(tokens, ops::head_chunk(policy, vocabulary));
  const auto blocks = recomputed_blocks(shape.activation_checkpointing, config.n_layers);
  BufferBytes bytes;
  bytes.saved_activations = tokens * saved_per_token(token, blocks);
  const std::int64_t rope_tables = config.rope_scaling ? 2 : 1;
  bytes.scratch =
      tokens * token.scratch() + rope_tables * kFloat * config.head_dim() * shape.length;
  bytes.head = tokens * token.head() +
               ops::head_workspace_bytes(policy, tokens, vocabulary,
                                         dtypes_of(config, policy.mixed_precision).product);
  bytes.workspace = workspace_bytes(config, shape, chunk, policy);
  return bytes;
}

std::int64_t plan_scoring(const ModelConfig& config, const PassShape& shape, std::int64_t rows,
                          const Policy& policy) {
  if (rows == 0) return 0;
  const Dtypes dtypes = dtypes_of(config, policy.mixed_precision);
  const TokenBytes token(config, dtypes);
  const std::int64_t tokens = shape.batch * shape.length, vocabulary = config.embedding_rows();
  const auto beyond = [&](const auto& bytes_for) {
    return std::max<std::int64_t>(bytes_for(rows) - bytes_for(tokens), 0);
  };
  const bool on_cpu = policy.device == Device::kCpu;
  // Packed keys and values (ops::ForestPlan), and the rows that are wanted of the last block.
  const std::int64_t packed = on_cpu ? 2 * kFloat * token.keys : 0;
  const std::int64_t wanted = token.stream() + token.element.product * token.width;
  return beyond([&](std::int64_t m) { return m * token.scoring(); }) + rows * (packed + wanted) +
         beyond([&](std::int64_t m) {
           return ops::head_workspace_bytes(policy, m, vocabulary, dtypes.product);
         }) +
         beyond([&](std::int64_t m) {
           const std::int64_t chunk = std::min(m, ops::head_chunk(policy, vocabulary));
           return on_cpu ? workspace_bytes(config, {.batch = 1, .length = m}, chunk, policy) : 0;
         });
}

BufferBytes Olmo::held_bytes() const {
  BufferBytes held;
  for (const Buffer& input : inputs_MD_) held.saved_activations += input.bytes();
  for (const BlockSaved& saved : saved_) held.saved_activations += bytes_of(saved);
  for (const AttentionSaved& saved : attention_) held.saved_activations += bytes_of(saved);
  held.saved_activations += last_MD_.bytes();
  held.scratch = bytes_of(scratch_) + dx_MD_.bytes();
  for (const auto* table : {&rope_, &scaled_rope_})
    held.scratch += bytes_of(table->cos) + bytes_of(table->sin);
  held.head = ln_f_stats_.bytes() + final_MD_.bytes() + dfinal_MD_.bytes() + bytes_of(head_.logits);
  held.workspace = static_cast<std::int64_t>(workspace_.bytes());
  return held;
}

std::vector<std::span<std::byte>> Olmo::reserve(std::int64_t tokens) {
  std::vector<std::span<std::byte>> memory;
  const auto take = [&](Buffer& buffer, std::int64_t width) {
    memory.push_back(mutable_host_bytes(buffer.shaped({tokens, width})));
  };
  for (std::size_t layer = 0; layer < recomputed_.size(); ++layer) {
    take(inputs_MD_[layer], config_.d_model);
    if (recomputed_[layer] != Recomputed::kNothing) continue;  // blocks share what is not kept
    take(attention_[layer].qkv_MQ, config_.qkv_size());
    take(attention_[layer].heads_MD, config_.d_model);
    take(saved_[layer].mid_MD, config_.d_model);
    take(saved_[layer].u_MP, config_.fused_mlp_size());
  }
  return memory;
}

}  // namespace olmo::model
