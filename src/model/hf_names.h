#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model_config.h"

namespace olmo::model {

/// One tensor of OLMo's, and the tensors of Hugging Face's that its rows are, from the first row
/// on.
struct HfMapping {
  struct Part {
    std::string name;
    std::int64_t rows;
  };
  std::string olmo;
  std::vector<Part> parts;
};

/// Whether a model has what OLMo 3 has beyond OLMo 2: sliding attention, or scaled rotations. Of
/// Hugging Face's classes Olmo3ForCausalLM alone has them, and OLMo's own config has neither.
bool has_olmo3_attention(const ModelConfig& config);

/// How the names of OLMo stand to those of OlmoForCausalLM, or of Olmo2ForCausalLM for configs with
/// norm_after (OLMo's scripts/convert_olmo_to_hf_new.py): att_proj is q, k and v, ff_proj is up and
/// gate. In the order of parameter_specs(); `lm_head.weight` is there for untied models only.
/// Throws Error(kUsage) for a config that neither class can express.
std::vector<HfMapping> hf_name_map(const ModelConfig& config);

/// The same of tensors with OLMo's own names: each is one part.
std::vector<HfMapping> own_name_map(const ModelConfig& config);

/// True for a name of Hugging Face's (`model.layers…`, `model.embed_tokens…`).
bool is_hf_name(std::string_view name);

/// OLMo-core's name of a tensor of OLMo 2 or 3 as Hugging Face's (olmo_core/nn/hf/convert.py, from
/// version 2.0 on); any other name as it is.
std::string hf_name_of_olmo_core(const std::string& name);

/// All names of a saved OLMo's tensors, as parameter_specs() has them and in their order: without
/// the prefixes that savers add (`model.` of hf_olmo, `module.` of DDP, `_fsdp_wrapped_module.`,
/// `_orig_mod.`), and with the blocks of block groups (`transformer.block_groups.GROUP.BLOCK.…`)
/// counted through, as OLMo itself does (OLMo._make_state_dict_compatible). Other names stay as
/// they are.
std::vector<std::string> plain_names(std::vector<std::string> names);

}  // namespace olmo::model
