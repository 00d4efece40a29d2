// The small trainings that the tests of this room make.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "config/train_config.h"
#include "support/temporary_directory.h"

namespace olmo::train {

/// 200 instances of 8 tokens below 128, the same each time; the file lies in `folder`.
inline std::filesystem::path write_tokens(const test::TemporaryDirectory& folder) {
  auto path = folder / "tokens.npy";
  std::mt19937 random(7);
  std::vector<std::uint16_t> ids(8 * 200);
  for (auto& id : ids) id = static_cast<std::uint16_t>(random() % 128);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  return path;
}

/// Four steps of a model whose tensors are cut anywhere: up to eight chunks each.
inline config::TrainConfig small_config(const std::filesystem::path& tokens,
                                        const std::vector<std::string>& settings) {
  std::vector<std::string> all = {"model.d_model=64",
                                  "model.n_heads=2",
                                  "model.n_layers=3",
                                  "model.vocab_size=128",
                                  "model.embedding_size=null",
                                  "model.max_sequence_length=8",
                                  "model.eos_token_id=1",
                                  "model.pad_token_id=1",
                                  "model.weight_tying=true",
                                  "optimizer.name=adamw",
                                  "optimizer.learning_rate=0.01",
                                  "max_duration=4",
                                  "threads=1",
                                  "data.paths=[" + tokens.string() + "]"};
  all.insert(all.end(), settings.begin(), settings.end());
  return config::parse_config("{}", "c.json", all).config;
}

}  // namespace olmo::train
