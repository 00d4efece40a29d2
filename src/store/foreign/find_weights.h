// Where other software keeps the tensors of a model, by the names of its files.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>

namespace olmo::store {

/// The first that a folder has is read. Safetensors come first, as in OLMo and transformers.
inline constexpr std::array<const char*, 5> kWeightNames = {
    "model.safetensors", "model.safetensors.index.json", "model.pt", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};

/// That of a folder, if it has one.
std::optional<std::filesystem::path> weights_in(const std::filesystem::path& folder);

/// Whether a file's name is one that torch.save is given.
bool is_torch_file(const std::filesystem::path& file);

/// How OLMo's trainer wrote a checkpoint in shards: its ShardedCheckpointerType
/// (olmo/checkpoint.py).
enum class ShardFormat {
  kTorchNew,     ///< model_and_optim/, of torch.distributed.checkpoint
  kTorchLegacy,  ///< rank0.pt, …, of ShardedTensors
  kLocal,        ///< model/rank0.pt, … and optim/rank0.pt, …, of FSDP's flat parameters
  kOlmoCore,     ///< model/ and optim/, of olmo_core 0.1
};

inline constexpr char kBothFolder[] = "model_and_optim", kModelFolder[] = "model",
                      kOptimizerFolder[] = "optim";

/// rankN.pt of the folder.
std::filesystem::path rank_file(const std::filesystem::path& folder, std::size_t rank);

/// Nothing: the folder has none of these files.
std::optional<ShardFormat> shard_format_of(const std::filesystem::path& folder);

/// True for a file whose name says that it holds tensors of other software (*.safetensors; *.pt,
/// *.pth and *.bin of torch.save), and for a folder with such a file of a whole model, with the
/// index of its shards, or with a checkpoint that OLMo's trainer wrote in shards.
bool holds_weights(const std::filesystem::path& path);

}  // namespace olmo::store
