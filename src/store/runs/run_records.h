// Rows of the run database as structs. Which column a member is says store/runs/run_tables.h; what
// a column means says store/database/schema.cpp. A text that is empty is NULL where the column may
// be.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olmo::store {

struct RunRecord {
  std::string run_id = {};
  std::string name;
  std::string created_utc = {};
  std::string status = {};        ///< running, finished, stopped, diverged, failed
  std::string config;             ///< JSON text, resolved
  std::string experiment_digest;  ///< empty: imported
  std::uint64_t seed = 0;
  std::int64_t n_parameters = 0;  ///< 0: an import that does not tell
  std::int64_t max_steps = 0;     ///< likewise
  std::int64_t chain_format = 1;  ///< core/hash.h
};

struct AttemptRecord {
  std::int64_t attempt = 0;
  std::string started_utc = {};
  std::string ended_utc = {};  ///< empty while it runs and after a crash, as is the outcome
  std::string outcome = {};
  std::int64_t start_step = 0;
  std::string resumed_from = {};  ///< a checkpoint; empty: none
  std::string start_link = {};    ///< hash chain of the state after start_step; empty: not known
  std::optional<std::int64_t> start_epoch = {};     ///< where in the data it began: before this
  std::optional<std::int64_t> start_instance = {};  ///< instance of its order; nothing: not known
  std::string command_line;
  std::string policy;                           ///< JSON text
  std::string build;                            ///< JSON text
  std::string environment;                      ///< JSON text
  std::optional<std::int64_t> world_size = {};  ///< ranks; nothing: not known, see schema.cpp
  std::string strategy = {};                    ///< single, ddp, FULL_SHARD, …; empty: not known
  std::string launch = {};                      ///< alone, nproc, torchrun, …; empty: not known
};

/// A process of an attempt, and what it did so far (store/database/schema.cpp). Seconds and bytes
/// are sums.
struct RankRecord {
  std::int64_t rank = 0;
  std::string host = {};
  std::int64_t local_rank = 0;
  std::int64_t pid = 0;
  std::string device = {};
  std::string processor = {};
  std::int64_t threads = 0;
  std::int64_t steps = 0;
  double data_seconds = 0, compute_seconds = 0, gather_seconds = 0, exchange_seconds = 0;
  double save_seconds = 0, wait_seconds = 0;
  std::int64_t gathered_bytes = 0, exchanged_bytes = 0;
  std::int64_t slowest_steps = 0;
  std::int64_t attempt = 0;
};

/// The phases of a step, in their order. What each is says train/phases.h.
inline constexpr std::array<std::string_view, 6> kPhaseNames = {"data",     "compute", "gather",
                                                                "exchange", "save",    "wait"};

/// Seconds of a step that a phase took, over the ranks, as a mean over the steps.
struct PhaseRecord {
  std::int64_t first_step = 0, last_step = 0;
  std::string phase = {};
  double mean = 0, least = 0, most = 0;
  std::int64_t rank = 0;  ///< that had the most
  std::int64_t attempt = 0;
};

struct InputRecord {
  std::string kind;
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;
};

struct StepRecord {
  std::int64_t attempt = 0;
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
  std::string loss_hash;  ///< `losses` of core/hash.h; empty in format 1
  std::string chain_hash;
};

/// A step that another trainer's log tells of; what is absent is unknown or not finite.
struct ImportedStepRecord {
  std::int64_t position = 0;           ///< the step; where no step is known, the tokens
  std::optional<std::int64_t> step;    ///< of the optimizer
  std::optional<std::int64_t> tokens;  ///< seen so far
  std::optional<double> loss;          ///< nats
  std::optional<double> grad_norm, lr, seconds;
  std::optional<double> tokens_per_second;             ///< of the whole run
  std::optional<double> tokens_per_second_per_device;  ///< never taken for the run's
};

struct MetricRecord {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  std::string name;
  double value = 0;
};

/// A tensor of a state.
struct StateHash {
  std::string part;
  std::string name;
  std::string sha256;
  std::int64_t step = 0;
  std::int64_t attempt = 0;
};

/// Over the chain and all hashes of a state (store/runs/verify_record.h).
struct StateSeal {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  std::string sha256;
};

struct CheckpointRecord {
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  std::string sha256;  ///< of its manifest
  double seconds = 0;
  double stall_seconds = 0;
  std::int64_t attempt = 0;
  std::string created_utc = {};
  std::string deleted_utc = {};  ///< empty: it should be there
};

struct EventRecord {
  std::int64_t attempt = 0;
  std::int64_t step = 0;
  std::string utc;
  std::string kind;
  std::string message;
};

struct TagRecord {
  std::string run_id;
  std::string tag;
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
  std::int64_t attempt = 0;
  std::string host = {};  ///< whose sensor it is; empty: the attempt's only one
};

struct PowerSample {
  double seconds = 0;  ///< since the attempt began
  std::string source;
  std::string device;
  double watts = 0;  ///< mean since the sample before
  std::int64_t attempt = 0;
  std::string host = {};
};

}  // namespace olmo::store
