// Two configs may tell one model, or one optimizer, in other keys: the MLP by its ratio or its
// width.
#pragma once

#include "report/comparability/settings.h"

namespace olmo::report {

/// Writes what several keys of OLMo's tell together under one of them, as OLMo's model and
/// optimizer take it (olmo/config.py, olmo/model.py), and leaves out what nothing reads beside the
/// others:
///   mlp_ratio, mlp_hidden_size              -> mlp_hidden_size
///   n_kv_heads, multi_query_attention       -> n_kv_heads
///   vocab_size, embedding_size              -> embedding_size; vocab_size stays
///   include_bias, bias_for_layer_norm       -> bias_for_layer_norm, if a norm has weights
///   no_decay_norm_and_bias                  -> decay_norm_and_bias, decay_embeddings
///   two words for one value                 -> the usual one (config/other_words.h)
///   init_cutoff_factor                      -> 3 where init_fn takes that
///   attention_layer_norm_with_affine, full_attention_every, init_std, eps, the weight of the
///   z-loss, and alpha_f, t_max, t_warmup, warmup_min_lr and units of the schedule: only where they
///   are read
/// What is not known stays as it is stated.
void tell_model_alike(Settings& settings);

}  // namespace olmo::report
