#include "store/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/process/terminal.h"
#include "core/text/number.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/run_files.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

constexpr char kTrash[] = "-trash";
constexpr char kTemporary[] = "-tmp";

/// True for step{N} followed by `suffix`.
bool is_step_name(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kStep = "step";
  if (!name.starts_with(kStep) || !name.ends_with(suffix)) return false;
  name.remove_prefix(kStep.size());
  if (name.size() <= suffix.size()) return false;
  name.remove_suffix(suffix.size());
  return std::ranges::all_of(name, is_digit);
}

bool is_our_file(const fs::path& file) {
  const std::string name = file.filename().string();
  return name == kDataFileName || name == kManifestName ||
         name.starts_with(std::string(kManifestName) + ".tmp-");
}

/// Folders below `run_dir` with such a name; links are not followed.
std::vector<fs::path> step_folders(const fs::path& run_dir, std::string_view suffix) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (auto entry = fs::directory_iterator(run_dir, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const bool folder = fs::is_directory(entry->symlink_status());
    if (folder && is_step_name(entry->path().filename().string(), suffix))
      folders.push_back(entry->path());
  }
  if (error)
    throw Error(ErrorKind::kInput, run_dir.string() + ": cannot be listed: " + error.message());
  return folders;
}

/// What the manifest says of a complete checkpoint, or why it is none.
struct Inspection {
  std::optional<CheckpointEntry> entry;
  std::string why_not;
};

Inspection inspect(const fs::path& folder) {
  try {
    const fs::path file = folder / kManifestName;
    const Manifest manifest = parse_manifest(read_file(file), file.string());
    const fs::path data = folder / kDataFileName;
    std::error_code error;
    const auto size = fs::file_size(data, error);
    if (error) return {std::nullopt, data.string() + ": " + error.message()};
    if (size != manifest.file_bytes) {
      return {std::nullopt, data.string() + ": has " + std::to_string(size) + " bytes, expected " +
                                std::to_string(manifest.file_bytes)};
    }
    const Json& summary = *manifest.summary;
    const Json run_id = summary.value("run_id", Json());
    const Json sequence = summary.value("sequence", Json());
    return {CheckpointEntry{
                .path = folder,
                .step = summary.at("step").get<std::int64_t>(),
                .run_id = run_id.is_null() ? "" : run_id.dump(),
                .sequence = sequence.is_number_unsigned() ? sequence.get<std::uint64_t>() : 0,
                .created_utc = summary.at("created_utc").get<std::string>(),
                .ephemeral = summary.at("ephemeral").get<bool>()},
            ""};
  } catch (const Error& error) {  // absent or damaged: the caller decides what that means
    return {std::nullopt, error.what()};
  }
}

std::int64_t step_of_name(const fs::path& folder) {
  return std::strtoll(folder.filename().c_str() + 4, nullptr, 10);  // after "step"
}

/// Complete checkpoints, oldest first; `broken` receives the other step folders.
std::vector<CheckpointEntry> scan(const fs::path& run_dir, std::vector<BrokenCheckpoint>& broken) {
  std::vector<CheckpointEntry> entries;
  for (const auto& folder : step_folders(run_dir, "")) {
    auto inspection = inspect(folder);
    if (inspection.entry) {
      entries.push_back(std::move(*inspection.entry));
    } else {
      broken.push_back({step_of_name(folder), std::move(inspection.why_not)});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const CheckpointEntry& a, const CheckpointEntry& b) {
    return std::tie(a.sequence, a.created_utc, a.step) <
           std::tie(b.sequence, b.created_utc, b.step);
  });
  return entries;
}

fs::path latest_target(const fs::path& run_dir) {
  std::error_code error;
  const fs::path target = fs::read_symlink(run_dir / kLatestName, error);
  if (error) return {};
  return target.is_absolute() ? target : run_dir / target;
}

/// Removes a whole checkpoint such that a crash leaves either all of it or a folder that
/// remove_stale() takes away.
void remove_checkpoint(const fs::path& folder) {
  fs::path trash = folder;
  trash += kTrash;
  if (::rename(folder.c_str(), trash.c_str()) != 0) {
    throw Error(ErrorKind::kFailure,
                folder.string() + ": cannot be removed: " + std::strerror(errno));
  }
  fsync_path(folder.parent_path());
  discard_folder(trash);
}

/// Those that OLMo's rule lets go; `entries` are oldest first.
std::vector<CheckpointEntry> surplus(const std::vector<CheckpointEntry>& entries, int keep,
                                     std::optional<std::int64_t> keep_every) {
  std::vector<CheckpointEntry> out;
  std::int64_t permanent = 0;
  bool newer = false;  // whether a checkpoint that makes an ephemeral one superfluous has been seen
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const bool for_good = keep_every && !entry->ephemeral && entry->step % *keep_every == 0;
    if (for_good) {
      newer = true;
      continue;
    }
    if (entry->ephemeral ? newer : (keep >= 1 && permanent >= keep)) out.push_back(*entry);
    if (!entry->ephemeral) ++permanent;
    newer = true;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

bool holds_only_ours(const fs::path& folder) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!fs::is_regular_file(entry->symlink_status()) || !is_our_file(entry->path())) return false;
  }
  return !error;
}

void discard_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_our_file(entry->path())) files.push_back(entry->path());
  }
  for (const auto& file : files) fs::remove(file, error);
  ::rmdir(folder.c_str());
}

void remove_stale(const fs::path& run_dir) {
  for (const auto& trash : step_folders(run_dir, kTrash)) {
    const std::string name = trash.filename().string();
    const fs::path target = run_dir / name.substr(0, name.size() - std::strlen(kTrash));
    // Whole, and nothing in its place: the process died while it put a newer one there.
    const bool only_copy = !fs::exists(fs::symlink_status(target)) && inspect(trash).entry;
    if (only_copy && ::rename(trash.c_str(), target.c_str()) == 0) {
      fsync_path(run_dir);
    } else if (holds_only_ours(trash)) {
      discard_folder(trash);
    }
  }
  for (const auto& folder : step_folders(run_dir, kTemporary)) {
    if (holds_only_ours(folder)) discard_folder(folder);
  }
}

void point_latest(const fs::path& run_dir, const fs::path& checkpoint) {
  const fs::path link = run_dir / kLatestName;
  const fs::path temporary = run_dir / (std::string(kLatestName) + kTemporary);
  ::unlink(temporary.c_str());
  if (::symlink(checkpoint.filename().c_str(), temporary.c_str()) != 0 ||
      ::rename(temporary.c_str(), link.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    ::unlink(temporary.c_str());
    throw Error(ErrorKind::kFailure, link.string() + ": cannot be pointed at " +
                                         checkpoint.filename().string() + ": " + why);
  }
  fsync_path(run_dir);
}

StepFolders list_step_folders(const fs::path& run_dir) {
  StepFolders folders;
  if (!fs::exists(run_dir)) return folders;
  auto& entries = folders.whole = scan(run_dir, folders.broken);
  std::sort(folders.broken.begin(), folders.broken.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  if (entries.empty()) return folders;
  const std::string linked = latest_target(run_dir).filename().string();
  auto best = std::find_if(entries.begin(), entries.end(), [&](const CheckpointEntry& entry) {
    return !linked.empty() && entry.path.filename() == linked;
  });
  if (best == entries.end()) best = std::prev(entries.end());
  for (auto entry = best; entry != entries.end(); ++entry) {  // those written after it
    if (entry->run_id == best->run_id && entry->step > best->step) best = entry;
  }
  std::iter_swap(entries.begin(), best);
  std::sort(entries.begin() + 1, entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step > b.step; });
  return folders;
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& run_dir) {
  std::vector<BrokenCheckpoint> broken;
  return scan(run_dir, broken);
}

std::uint64_t next_sequence(const fs::path& run_dir) {
  const auto entries = list_checkpoints(run_dir);
  return entries.empty() ? 1 : entries.back().sequence + 1;
}

fs::path resolve_checkpoint(const fs::path& path) {
  if (is_there(path / kManifestName)) {
    return fs::is_symlink(path) ? path.parent_path() / fs::read_symlink(path) : path;
  }
  if (!fs::is_directory(path)) {
    throw Error(ErrorKind::kInput,
                path.string() + ": is no checkpoint and no folder of checkpoints");
  }
  const StepFolders folders = list_step_folders(path);
  for (const auto& each : folders.broken) log_warning("passing over a checkpoint: " + each.why);
  if (folders.whole.empty()) {
    throw Error(ErrorKind::kInput,
                path.string() + ": holds no complete checkpoint (step{N} with a manifest.json)");
  }
  return folders.whole.front().path;
}

std::vector<fs::path> apply_retention(const fs::path& run_dir, int keep,
                                      std::optional<std::int64_t> keep_every) {
  const auto entries = list_checkpoints(run_dir);
  const fs::path latest = latest_target(run_dir).filename();
  std::vector<fs::path> removed;
  for (const auto& entry : surplus(entries, keep, keep_every)) {
    if (entry.path.filename() == latest) continue;
    if (!holds_only_ours(entry.path)) {
      log_warning(entry.path.string() +
                  ": is kept beyond its time, since it holds files that no checkpoint has");
      continue;
    }
    remove_checkpoint(entry.path);
    removed.push_back(entry.path);
  }
  return removed;
}

}  // namespace olmo::store
