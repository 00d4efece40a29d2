#pragma once

#include "core/named_tensors.h"
#include "model/model_config.h"

namespace olmo::model {

/// True if the names are Hugging Face's (`model.layers…`, `model.embed_tokens…`), not OLMo's.
bool has_hf_names(const NamedTensors& tensors);

/// OLMo's names → those of OlmoForCausalLM, or of Olmo2ForCausalLM for configs with norm_after
/// (OLMo's scripts/convert_olmo_to_hf_new.py): att_proj is split into q, k, v, ff_proj into up and
/// gate. Tensors are views. `lm_head.weight` is written for untied models only. Throws
/// Error(kUsage) for a config that neither class can express.
NamedTensors to_hf_names(const ModelConfig& config, const NamedTensors& tensors);

/// The way back, in OLMo's order. A tied model may carry `lm_head.weight` if it equals the
/// embedding. Throws Error(kInput) naming tensors that are missing, unknown or of another shape.
NamedTensors from_hf_names(const ModelConfig& config, const NamedTensors& tensors);

/// Drops the prefixes that other savers of OLMo add: `model.` (hf_olmo), `_fsdp_wrapped_module.`
/// and `_orig_mod.`.
NamedTensors strip_wrapper_prefixes(const NamedTensors& tensors);

}  // namespace olmo::model
