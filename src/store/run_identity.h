#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace olmo::store {

inline constexpr char kRunIdentityName[] = "run.json";

/// Which run a folder holds: RUN_DIR/run.json, written when the run begins. A database may hold
/// many runs, a folder has one.
struct RunIdentity {
  std::string run_id;
  std::filesystem::path folder;    ///< absolute, when this was written: another place now is a move
                                   ///< or a copy
  std::filesystem::path database;  ///< absolute, when this was written
};

/// Nothing if the folder has none (it is new, or its run is of an older olmo-harness). Throws
/// Error(kDamaged) if it cannot be understood.
std::optional<RunIdentity> read_identity(const std::filesystem::path& run_dir);

/// Throws Error(kFailure).
void write_identity(const std::filesystem::path& run_dir, const std::string& run_id,
                    const std::filesystem::path& database);

/// Whether two paths lead to one file or folder, which need not exist.
bool same_place(const std::filesystem::path& a, const std::filesystem::path& b);

/// True if another folder says that it holds the same run and was where this one says that it was:
/// this one is a copy.
bool is_copy(const std::filesystem::path& run_dir, const RunIdentity& identity);

}  // namespace olmo::store
