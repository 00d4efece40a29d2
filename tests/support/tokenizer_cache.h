// A cache folder as `data fetch` leaves it, with one tokenizer.
#pragma once

#include <filesystem>
#include <fstream>

#include "data/public/fetch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// A cache of its own with one fetched tokenizer in it.
class TokenizerCache {
 public:
  TokenizerCache() {
    const auto tokenizers =
        data::evaluation_data_folder(data::default_data_folder()) / "tokenizers";
    std::filesystem::create_directories(tokenizers);
    tokenizer_ = tokenizers / "allenai_gpt-neox-olmo-dolma-v1_5.json";
    std::ofstream(tokenizer_) << "{}";
  }
  [[nodiscard]] const TemporaryDirectory& folder() const { return folder_; }
  [[nodiscard]] const std::filesystem::path& tokenizer() const { return tokenizer_; }

 private:
  TemporaryDirectory folder_;
  Environment variable_{"OLMO_HARNESS_CACHE", folder_.path().string()};
  std::filesystem::path tokenizer_;
};

}  // namespace olmo::test
