// What Olmo computes in a pass, unit by unit (units.h).
#pragma once

#include <functional>

#include "model/olmo.h"

namespace olmo::model {

/// The forward pass over a batch, up to the head's input.
class Olmo::Work : public PassWork {
 public:
  Work(Olmo& model, const BlockContext& context, const at::Tensor& ids_BL, bool training,
       Observer observe);

  void embedding(const ModelTensors& root) override;
  void block(std::size_t layer, const BlockTensors& weights) override;

 protected:
  [[nodiscard]] OpTrace* trace() const { return context_.compute.trace; }
  /// The head's input: ln_f of the last residual stream, scaled if scale_logits; (M, D), or (R, D)
  /// for the targets of a forest.
  at::Tensor head_input(const ModelTensors& root);

  Olmo& model_;
  const BlockContext& context_;
  at::Tensor ids_M_;

 private:
  bool training_;
  Observer observe_;
  at::Tensor x_MD_;
};

/// A forward pass whose result `use` takes from the head's input and the head.
class Olmo::Evaluation : public Olmo::Work {
 public:
  using Use = std::function<void(const at::Tensor& final_MD, const at::Tensor& head_VD)>;

  Evaluation(Olmo& model, const BlockContext& context, const at::Tensor& ids_BL, Observer observe,
             Use use);

  void head(const ModelTensors& root) override;

 private:
  Use use_;
};

/// Forward and backward.
class Olmo::Training : public Olmo::Work {
 public:
  Training(Olmo& model, const BlockContext& context, const TokenBatch& batch,
           const LossWeights& weights, bool accumulate);

  [[nodiscard]] const ops::TokenLosses& losses() const { return losses_; }

  void head_and_backward(const ModelTensors& root, const ModelTensors& gradients) override;
  void block_backward(std::size_t layer, const BlockTensors& weights,
                      const BlockTensors& gradients) override;
  void embedding_backward(const ModelTensors& root, const ModelTensors& gradients) override;

 private:
  at::Tensor labels_M_;
  LossWeights weights_;
  bool accumulate_;
  ops::TokenLosses losses_;
  at::Tensor dx_MD_;
  bool is_there_ = true;  ///< the last block that shared buffers has left its values there
};

}  // namespace olmo::model
