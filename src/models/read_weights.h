// Weights from any container, and the digest that is the same for all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/compute/named_tensors.h"
#include "core/hash.h"
#include "model/model_config.h"

namespace olmo::models {

/// Weights under OLMo's names, in fp32, from whatever holds them: a checkpoint or run directory of
/// ours, or what store::open_weights takes, with OLMo's or Hugging Face's names. Throws
/// Error(kInput) or Error(kDamaged) naming the file.
NamedTensors read_weights(const std::filesystem::path& path, const model::ModelConfig& config);

/// Values [begin, begin + size) of a flattened tensor.
struct WeightSlice {
  std::int64_t begin = 0, size = 0;
};

/// As read_weights() of other software's files, but of each parameter (in the order of
/// parameter_specs) only its slice, flat: what a rank needs of a model that is larger than its
/// memory. Of a tied model's head only the slice is compared with the embedding.
NamedTensors read_foreign_slices(const std::filesystem::path& path,
                                 const model::ModelConfig& config,
                                 std::span<const WeightSlice> slices);

/// Throws Error(kInput) if nothing is there.
void require_weights(const std::filesystem::path& path);

/// A tensor's name, shape and digest: the SHA-256 of its values as little-endian fp32.
struct TensorDigest {
  std::string name;  ///< OLMo's
  std::vector<std::int64_t> shape;
  Digest values;
};

/// SHA-256 over the tensors sorted by name: of each its name, a zero byte, its shape in decimal
/// digits joined by `,`, a zero byte, and the 32 bytes of its digest. The same for every container
/// of equal values.
Digest weights_digest(std::vector<TensorDigest> tensors);

/// The same of weights in memory: contiguous fp32 under OLMo's names, e.g. those of a model in
/// training.
Digest weights_digest(const NamedTensors& tensors);

/// The weights of a model, in the order of its parameter_specs.
struct ModelWeights {
  NamedTensors tensors;
  Digest digest;
};

/// Reads what store::open_weights takes, with OLMo's or Hugging Face's names, as the weights of a
/// model of `config`: tensor by tensor through memory maps whose pages are given back,
/// in parallel. fp32; with `keep_bf16`, matrices that are stored in bf16 stay so.
///
/// Throws as store::open_weights; Error(kInput) naming tensors that are missing, unknown, or of
/// another shape or dtype than the config asks for. A tied model may carry its head twice, if it
/// equals the embedding.
ModelWeights read_foreign_weights(const std::filesystem::path& path,
                                  const model::ModelConfig& config, bool keep_bf16);

}  // namespace olmo::models
