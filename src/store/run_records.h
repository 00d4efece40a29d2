// Typed rows of the run database (columns: store/schema.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace olmo::store {

struct RunRecord {
  std::string name;
  std::string config;  ///< JSON text, resolved
  std::string experiment_digest;
  std::uint64_t seed = 0;
  std::int64_t n_parameters = 0;
  std::int64_t max_steps = 0;
  std::int64_t chain_format = 1;  ///< core/hash_chain.h
};

struct AttemptRecord {
  std::int64_t start_step = 0;
  std::optional<std::string> resumed_from;
  std::string command_line;
  std::string policy;       ///< JSON text
  std::string build;        ///< JSON text
  std::string environment;  ///< JSON text
};

struct InputRecord {
  std::string kind;
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
};

struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t tokens = 0;
  double lr = 0;
  double ce_loss = 0;
  double ce_loss_per_label = 0;
  std::optional<double> z_loss;
  double loss = 0;
  double grad_norm = 0;
  std::optional<double> max_grad_norm;
  std::optional<double> clipping_rate;
  double param_norm = 0;
  std::int64_t masked_instances = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  std::optional<double> mfu;
  std::string batch_hash;
  std::string chain_hash;
  std::string loss_hash;  ///< `losses` of core/hash_chain.h; empty in format 1
};

struct StateHash {
  std::string part;
  std::string name;
  std::string sha256;
};

struct CheckpointRecord {
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
  double seconds = 0;
  double stall_seconds = 0;
};

/// What a sensor measured over the attempt so far.
struct EnergyRecord {
  std::string source;                  ///< nvml, rocm_smi, rapl, pm_counters, slurm
  std::string device;                  ///< e.g. gpu0, package-0, node
  std::string covers;                  ///< device, package, node, job
  std::optional<double> joules = {};   ///< nothing: not measured, `note` says why
  std::optional<double> seconds = {};  ///< that the joules span
  std::int64_t samples = 0;
  std::string note = {};
};

struct PowerSample {
  double seconds = 0;  ///< since the attempt began
  std::string source;
  std::string device;
  double watts = 0;  ///< mean since the sample before
};

}  // namespace olmo::store
