// Runs as the files of tools that people look at curves with. Names of runs, metrics and settings
// come from outside: none leads out of the folder.
//
// - tensorboard: DIR/NAME-RUN/events.out.tfevents.…; numbers are fp32, as there
// - wandb: DIR/offline-run-DATE-RUN/run-RUN.wandb, for `wandb sync`
// - trackio: DIR/PROJECT.db, one database for all runs; DIR is $TRACKIO_DIR
// - mlflow: DIR/EXPERIMENT/RUN/…, MLflow's file store; DIR is its tracking URI
//
// A run appears whole or not at all, and takes the place of an earlier export of the same run.
#pragma once

#include <filesystem>

#include "exports/points.h"

namespace olmo::exports {

/// What is exported, and whoever gives its points in the order of their steps.
struct Source {
  RunFacts facts;
  std::function<void(const OnPoint&)> points;
};

struct Exported {
  std::filesystem::path path;
  std::int64_t steps = 0;    ///< with numbers
  std::int64_t numbers = 0;  ///< of all steps
};

/// The tools by name.
std::vector<std::string> tools();

/// Writes the run for `tool`, one of tools(). `project`: the name that W&B, trackio and MLflow know
/// runs of one kind by. Throws Error(kUsage) for a folder that cannot be written to,
/// Error(kFailure) for a full disk and the like.
Exported export_run(const Source& source, const std::string& tool,
                    const std::filesystem::path& folder, const std::string& project);

// One tool each.
Exported write_tensorboard(const Source& source, const std::filesystem::path& folder);
Exported write_wandb(const Source& source, const std::filesystem::path& folder,
                     const std::string& project);
Exported write_trackio(const Source& source, const std::filesystem::path& folder,
                       const std::string& project);
Exported write_mlflow(const Source& source, const std::filesystem::path& folder,
                      const std::string& project);

/// `text` as part of a file's name: letters, digits, `.`, `_` and `-`, others as `_`, at most 80,
/// the first no dot; "run" if nothing is left.
std::string file_name_of(const std::string& text);

/// Shortest text that gives the number back; `nan`, `inf`, `-inf`.
std::string exact_number(double value);

}  // namespace olmo::exports
