// Which tensors of the network are bf16.
#pragma once

#include "core/compute/policy.h"
#include "core/compute/tensor.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/context.h"

namespace olmo::model {

// OLMo's `amp_bf16` is one of two computations (core/compute/policy.h, MixedPrecision). Read from
// ai2-olmo 0.6.0 (olmo/model.py, olmo/train.py, olmo/config.py) and torch's autocast, which runs
// `linear` and attention in bf16, `layer_norm`, `log_softmax`, `nll_loss` and `logsumexp` in fp32,
// and leaves other operations to the dtypes of their inputs. A table entry of two dtypes: what is
// computed in / what it is rounded to on store.
//
// |                                           | mixed                | autocast                  |
// |-------------------------------------------|----------------------|---------------------------|
// | matrices used by linear layers and head   | bf16 of the masters  | bf16 of the masters       |
// | embedding table used                      | bf16 (shared if tied)| fp32                      |
// | weights of norms used                     | bf16                 | fp32; low_precision bf16  |
// | residual stream, its gradient             | bf16                 | fp32                      |
// | linear layers, attention, activation,     | bf16                 | bf16                      |
// |   logits, their gradients                 |                      |                           |
// | norm before a linear layer, QK-norm       | fp32 / bf16          | fp32 / bf16; low_precision|
// |                                           |                      |   rounds its input first  |
// | norm added to the stream (norm_after)     | rms, low_precision:  | default, rms: fp32;       |
// |                                           |   bf16; default: none| low_precision: bf16       |
// | attention's log-sum-exp, norms' statistics| fp32                 | fp32                      |
// | losses                                    | fp32, of bf16 logits | fp32, of bf16 logits      |
// | gradient of a matrix, of one micro-batch  | rounded to bf16      | rounded to bf16           |
// | gradient of the embedding                 | rounded to bf16      | fp32                      |
// | gradient of a norm's weight               | rounded to bf16      | fp32; low_precision bf16  |
// | sum over micro-batches, norms, clipping,  | fp32                 | fp32                      |
// |   masters, moments                        |                      |                           |
//
// `mixed` with norm_after and the default norm is refused: fp32 outputs of the norm would make the
// bf16 stream fp32 within the first block, and no OLMo is made so. `scale_logits` is refused: OLMo
// rounds the logits, scales them and rounds again, where this network scales the head's input.
//
// The gradient of a tied matrix is the sum of its two parts: in `mixed` each is rounded, then their
// sum; in `autocast` the head's is rounded and the embedding's is not.

/// The dtypes of a network.
struct Dtypes {
  at::ScalarType stream = at::kFloat;   ///< residual stream and its gradient
  at::ScalarType product = at::kFloat;  ///< what linear layers read and write, and their gradients
  at::ScalarType term = at::kFloat;     ///< a norm's output that is added to the stream
  at::ScalarType matrix = at::kFloat;   ///< weights of linear layers and head
  at::ScalarType embedding = at::kFloat;
  at::ScalarType norm = at::kFloat;  ///< weights of norms
  bool norm_rounds_input = false;    ///< norms round to bf16 what they read of an fp32 stream

  /// Of the weights that are computed with.
  [[nodiscard]] at::ScalarType of(ParameterRole role) const;
  /// Gradients are fp32 tensors; those of a bf16 copy have values of bf16.
  [[nodiscard]] static ops::Rounding rounding_of(at::ScalarType weight) {
    return weight == at::kBFloat16 ? ops::Rounding::kBf16 : ops::Rounding::kNone;
  }
};

Dtypes dtypes_of(const ModelConfig& config, MixedPrecision mixed);

/// Of a network's buffers: whose memory they are in, and their dtypes.
struct BufferOptions {
  at::TensorOptions fp32 = at::kFloat;
  Dtypes dtypes = {};

  [[nodiscard]] at::TensorOptions stream() const { return fp32.dtype(dtypes.stream); }
  [[nodiscard]] at::TensorOptions product() const { return fp32.dtype(dtypes.product); }
  [[nodiscard]] at::TensorOptions term() const { return fp32.dtype(dtypes.term); }
};

/// What a network, or a unit of it (units.h), computes with: its parameters themselves, or copies
/// of them where their dtypes are others. Who has rounded parameters already, as they are gathered,
/// may give those that are bf16: they are copied no more.
class ComputeWeights {
 public:
  /// `parameters`: all of the config's, or some, in their order; the places of others stay
  /// undefined. The copies' contents are undefined until update().
  ComputeWeights(const ModelConfig& config, const Dtypes& dtypes, const NamedTensors& parameters);

  [[nodiscard]] const ModelTensors& tensors() const { return tensors_; }
  /// Rounds the parameters again: they have changed.
  void update() const;
  /// Bytes of the copies.
  [[nodiscard]] std::int64_t bytes() const;

 private:
  struct Copy {
    at::Tensor parameter, copy;
  };
  at::Tensor copy_of(const at::Tensor& parameter, at::ScalarType dtype);

  ModelTensors tensors_;
  std::vector<Copy> copies_;
};

}  // namespace olmo::model
