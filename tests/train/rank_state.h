// The state of a small training, whole and in the parts that ranks hold, for tests of checkpoints.
#pragma once

#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "dist/thread_ranks.h"
#include "sharding/layout.h"
#include "store/checkpoint_fixture.h"
#include "train/rank_checkpoint.h"

namespace olmo::train {

/// Of two units, a root and a block; one tensor is of several chunks, the others of odd sizes.
inline const std::vector<std::vector<model::ParameterSpec>>& units() {
  using model::ParameterRole;
  static const std::vector<std::vector<model::ParameterSpec>> all = {
      {{"transformer.wte.weight", {301, 97}, ParameterRole::kEmbedding, -1},
       {"transformer.ln_f.weight", {97}, ParameterRole::kNormWeight, -1}},
      {{"transformer.blocks.0.att_proj.weight", {24, 80}, ParameterRole::kAttProj, 0},
       {"transformer.blocks.0.ff_proj.weight", {160, 129}, ParameterRole::kFfProj, 0},
       {"transformer.blocks.0.attn_norm.weight", {10}, ParameterRole::kNormWeight, 0}}};
  return all;
}

inline const std::string& experiment() {
  static const std::string digest(64, 'e');
  return digest;
}

/// What one process would save.
inline store::CheckpointContents whole_state(std::int64_t step, std::uint32_t seed = 1) {
  store::CheckpointContents contents;
  contents.trainer = Json{{"step", step},
                          {"tokens_seen", step * 64},
                          {"run_id", "run"},
                          {"experiment_digest", experiment()},
                          {"chain_hash", std::string(64, 'a')},
                          {"data", {{"seed", 6198}, {"epoch", 0}, {"start_index", step * 4}}}};
  contents.config = Json{{"model", {{"d_model", 97}}}};
  contents.optim_state = Json{{"max_grad_norm", 1.0}};
  const auto add = [&](const std::string& key, std::uint32_t salt) {
    for (const auto& unit : units()) {
      for (const auto& spec : unit) {
        auto tensor = store::test::patterned(spec.shape, seed + salt);
        (key.empty() ? contents.model : contents.optim).push_back({key + spec.name, tensor});
      }
    }
  };
  add("", 0);
  add("exp_avg/", 7);
  add("exp_avg_sq/", 8);
  for (const auto& [name, tensor] : contents.model)
    contents.optim.push_back({"step/" + name, new_tensor({}, at::kLong).fill_(step)});
  return contents;
}

inline ParameterParts parts_of(int rank, int world) {
  ParameterParts parts;
  for (const auto& unit : units()) {
    const sharding::UnitLayout layout(unit, world);
    const std::size_t first = parts.size();
    for (const auto& place : layout.places()) parts.push_back({place.name, place.shape, 0, 0});
    for (const auto& part : layout.parts(rank)) {
      parts[first + part.tensor].begin = part.begin;
      parts[first + part.tensor].size = part.size;
    }
  }
  return parts;
}

/// A rank's parts of `whole`.
inline store::CheckpointContents held_by(int rank, int world,
                                         const store::CheckpointContents& whole) {
  std::map<std::string, ParameterPart> parts;
  for (const auto& part : parts_of(rank, world)) parts[part.name] = part;
  store::CheckpointContents held = whole;
  for (auto* tensors : {&held.model, &held.optim}) {
    for (auto& [name, tensor] : *tensors) {
      if (tensor.dim() == 0 || world == 1) continue;
      const auto& part = parts.at(name.substr(name.find('/') + 1));
      tensor = tensor.view({-1}).narrow(0, part.begin, part.size).clone();
    }
  }
  return held;
}

/// The RankCheckpoints of a rank.
inline RankCheckpoints checkpoints_of(dist::Communicator& ranks,
                                      const std::filesystem::path& run_dir) {
  return {ranks.split(0), run_dir, parts_of(ranks.rank(), ranks.size())};
}

/// Saves `whole` on `world` ranks.
inline store::SavedCheckpoint save_on(int world, const std::filesystem::path& run_dir,
                                      const store::CheckpointContents& whole,
                                      const store::SaveOptions& options = {}) {
  store::SavedCheckpoint saved;
  dist::run_ranks(world, [&](dist::Communicator& ranks) {
    auto checkpoints = checkpoints_of(ranks, run_dir);
    const auto mine = checkpoints.save({held_by(ranks.rank(), world, whole), nullptr}, options);
    if (ranks.rank() == world - 1) saved = mine;
  });
  return saved;
}

/// What each rank throws; by rank, empty where it throws nothing. Ranks stay in step.
inline std::vector<std::string> errors_on(int world,
                                          const std::function<void(dist::Communicator&)>& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(world));
  dist::run_ranks(world, [&](dist::Communicator& ranks) {
    try {
      work(ranks);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
    ranks.barrier();
  });
  return errors;
}

}  // namespace olmo::train
