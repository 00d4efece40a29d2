// What commands do that need LibTorch. The whole program has these functions in the files beside
// this one. The program that a user starts has no LibTorch, and becomes the whole one in their
// place (src/front.cpp). Each returns the exit code, and throws Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/interface/command.h"
#include "cli/rank_options.h"
#include "core/compute/policy.h"
#include "eval/sequence_queue.h"

namespace olmo::cli {

struct TrainOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::string run_dir;
  std::string database;
  std::string resume;
  std::string branch_from;
  bool dry_run = false;
  std::int64_t world_size = 0;  ///< of --dry-run: ranks to plan for; 0: this process
  std::string cluster;
  bool json = false;
  bool print_schema = false;  ///< see config_reference
  RankOptions ranks;
  std::string command_line;
};

struct EvalOptions {
  std::string checkpoint;
  std::vector<std::string> suites;
  std::vector<std::string> tasks;
  std::vector<std::string> perplexity;
  std::string convention = "olmo";
  std::string document_convention;
  std::string split = "val";
  std::string missing;
  std::int64_t limit = 0;
  std::int64_t max_length = 0;
  std::int64_t batch_tokens = eval::QueueOptions{}.forest_rows;
  bool no_prefix_sharing = false;
  bool no_unconditional = false;
  std::string instances;
  std::string database;
  std::string run;
  std::optional<std::int64_t> step;
  std::string tokenizer;
  std::string data;
  std::string definitions;
  PolicyOptions policy;
  std::string precision = to_string(Precision::kFp32);
  bool json = false;
  bool list = false;
  std::string rescore;
  RankOptions ranks;
  std::string command_line;
};

struct AuditOptions {
  std::string run;
  std::vector<std::string> overrides;
  std::string steps;
  std::int64_t sample = 0;
  std::int64_t length = 5;
  std::optional<std::uint64_t> seed;
  std::string checkpoints;
  std::string data;
  PolicyOptions policy;  ///< but for `numerics`, which are the record's
  bool trace = false;
  bool record = false;
  std::string against;
  bool json = false;
  std::string command_line;
};

struct CheckpointOptions {
  std::string path;
  std::string other;
  bool json = false;
  bool tensors = false;
  bool config = false;
  bool weights_only = false;
};

struct ConvertOptions {
  std::string source;
  std::string to;
  std::string format = "hf";
  std::string dtype;  ///< of an export; its command has the words
  bool json = false;
};

struct InspectOptions {
  std::string input;              ///< token file, config or run
  std::vector<std::string> more;  ///< more token files, or key.path=value
  std::uint64_t step = 0;
  std::optional<std::int64_t> sequence_length;
  std::optional<std::int64_t> global_batch_size;
  std::optional<std::uint64_t> seed;
  bool no_shuffle = false;
  std::string dtype;
  std::string tokenizer;
  std::optional<std::uint32_t> eos_token_id;
  bool json = false;
};

namespace compute {

int train(const TrainOptions& options);
int evaluate(const EvalOptions& options);
int audit(const AuditOptions& options);
int doctor(bool json);
int inspect_checkpoint(const CheckpointOptions& options);
int verify_checkpoint(const CheckpointOptions& options);
int diff_checkpoints(const CheckpointOptions& options);
int import_checkpoint(const ConvertOptions& options);
int export_checkpoint(const ConvertOptions& options);
int inspect_data(const InspectOptions& options);
/// False in the program without LibTorch, which says what is to be said once.
bool is_whole();
/// The version of the LibTorch that is loaded; nothing where there is none on this machine.
std::optional<std::string> libtorch();

}  // namespace compute
}  // namespace olmo::cli
