// What a path on the command line is, so that one kind taken for another is told by name.
#pragma once

#include <filesystem>
#include <string>

namespace olmo::cli {

// Each throws Error(kUsage) if the path is known to be something else than what the command takes:
// the sentence says what it is, what is expected, and which commands take it. What is not there, or
// nothing that we know, is left to whoever reads it.

/// How a RUN is named.
inline constexpr char kRunForms[] = "FILE.db, FILE.db:RUN_ID or a run folder";
/// A RUN. `command`: "report run".
void require_run(const std::string& command, const std::string& path);
/// A CHECKPOINT: a checkpoint or run folder, or a folder with weights of others.
void require_checkpoint(const std::string& command, const std::string& path);
/// A CHECKPOINT that this program made, where weights of others will not do.
void require_own_checkpoint(const std::string& command, const std::string& path);
/// A config: JSON or YAML.
void require_config(const std::string& command, const std::string& path);

/// Whether a folder is a checkpoint.
bool is_checkpoint(const std::filesystem::path& folder);

/// Whether a file begins as SQLite's do.
bool is_database(const std::filesystem::path& path);

}  // namespace olmo::cli
