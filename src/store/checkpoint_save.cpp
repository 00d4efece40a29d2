#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/output_file.h"
#include "core/process.h"
#include "core/terminal.h"
#include "store/checkpoint.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"
#include "store/checkpoint_manifest.h"
#include "store/raw_file.h"
#include "store/record_database.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kFailure, path.string() + ": " + what + ": " + std::strerror(errno));
}

std::int64_t step_of(const CheckpointContents& contents) {
  const Json step =
      contents.trainer->is_object() ? contents.trainer->value("step", Json()) : Json();
  if (!step.is_number_integer() || step.get<std::int64_t>() < 0) {
    throw Error(ErrorKind::kFailure,
                "checkpoint: trainer state must have a step >= 0, got " + step.dump());
  }
  return step.get<std::int64_t>();
}

Json make_summary(const CheckpointContents& contents, const SaveOptions& options,
                  std::uint64_t sequence) {
  Json summary = {{"format", kCheckpointFormat},
                  {"format_version", kCheckpointVersion},
                  {"kind", to_string(contents.kind)},
                  {"ephemeral", options.ephemeral},
                  {"step", static_cast<std::uint64_t>(step_of(contents))},
                  {"sequence", sequence},
                  {"git_revision", build_info().git_revision},
                  {"created_utc", utc_now(/*digits=*/6)}};
  for (const char* name : {"tokens_seen", "run_id"}) {
    if (contents.trainer->contains(name)) summary[name] = contents.trainer->at(name);
  }
  return summary;
}

/// step{N}-tmp, removed again unless it was published.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0777) != 0) fail(path_, "cannot be created");
  }
  ~TemporaryFolder() {
    if (published_) return;
    try {
      discard_folder(path_);
    } catch (const std::exception&) {  // no memory to list it: the next save removes it
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

  /// Renames to `target`; the caller syncs its folder. An existing target is exchanged where the
  /// file system can do that in one step.
  void publish(const fs::path& target, bool overwrite) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
      published_ = true;
    } else {
      const bool unsupported = errno == EINVAL || errno == ENOSYS;  // by this file system
      const bool exists = errno == EEXIST || (unsupported && fs::exists(target));
      if (exists && overwrite) {
        replace(target);
      } else if (unsupported && !exists && ::rename(path_.c_str(), target.c_str()) == 0) {
        published_ = true;
      } else {
        fail(path_, "cannot be renamed to " + target.string());
      }
    }
  }

 private:
  void replace(const fs::path& target) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      return;  // path_ is the old one now, and is discarded
    }
    // Two renames: a crash between them leaves step{N}-trash, which is the old checkpoint and is
    // named back by the next start.
    fs::path trash = target;
    trash += "-trash";
    if (::rename(target.c_str(), trash.c_str()) != 0 ||
        ::rename(path_.c_str(), target.c_str()) != 0) {
      fail(path_, "cannot take the place of " + target.string());
    }
    published_ = true;
    discard_folder(trash);
  }

  fs::path path_;
  bool published_ = false;
};

std::vector<CheckpointDataset> descriptions(const std::vector<PlannedDataset>& plan) {
  std::vector<CheckpointDataset> datasets;
  for (const auto& planned : plan) datasets.push_back(planned.dataset);
  return datasets;
}

/// Writes `image` where no dataset lies.
void write_structure(const fs::path& file, const StructureImage& image,
                     const std::vector<PlannedDataset>& plan) {
  const auto gaps = structure_gaps(image.size(), descriptions(plan));
  std::vector<std::vector<std::byte>> bytes;
  std::vector<RawRange> ranges;
  for (const auto& gap : gaps) {
    auto& content = bytes.emplace_back(gap.bytes);
    image.read(gap.offset, content);
    ranges.push_back({gap.offset, content});
  }
  write_and_hash(file, ranges, 1);
}

/// Writes and seals the data file of `plan`, filling in offsets and digests. Returns whether the
/// disk was written past the page cache.
bool write_data_file(const fs::path& file, const Json& summary, const CheckpointContents& contents,
                     std::vector<PlannedDataset>& plan, int hash_threads) {
  StructureImage image;
  lay_out_file(image, summary, contents, plan);
  check_space(file.parent_path(), image.size());
  reserve_space(file, image.size());
  std::vector<RawRange> ranges;
  for (const auto& [dataset, data] : plan) {
    ranges.push_back(
        {dataset.offset,
         {static_cast<const std::byte*>(data), static_cast<std::size_t>(dataset.bytes)}});
  }
  // First the tensors, whose digests are made while they are written; then the structure, which
  // holds these digests and `complete` = 1; then the sync. A file that is cut short anywhere lacks
  // what its manifest states.
  const RawWriteResult written = write_and_hash(file, ranges, hash_threads);
  for (std::size_t i = 0; i < plan.size(); ++i) plan[i].dataset.sha256 = written.digests[i];
  seal_file(image, plan);
  write_structure(file, image, plan);
  fsync_path(file);
  return written.direct;
}

Manifest make_manifest(const fs::path& file, Json summary,
                       const std::vector<PlannedDataset>& plan) {
  Manifest manifest;
  manifest.summary = std::move(summary);
  manifest.file_bytes = fs::file_size(file);
  manifest.datasets = descriptions(plan);
  manifest.structure = structure_digest(file, manifest.file_bytes, manifest.datasets);
  return manifest;
}

void prepare_folder(const fs::path& run_dir, const fs::path& target, bool overwrite) {
  make_folders(run_dir);
  if (fs::exists(fs::symlink_status(target)) && !overwrite) {
    throw Error(ErrorKind::kUsage,
                target.string() + ": exists already; it is replaced only with save_overwrite");
  }
  if (fs::exists(target) && !holds_only_ours(target)) {
    throw Error(ErrorKind::kUsage,
                target.string() + ": is not replaced, since it holds files that no checkpoint has");
  }
  remove_stale(run_dir);
}

}  // namespace

std::string to_string(CheckpointKind kind) {
  return kind == CheckpointKind::kFull ? "full" : "weights";
}

fs::path checkpoint_path(const fs::path& run_dir, std::int64_t step) {
  return run_dir / ("step" + std::to_string(step));
}

SavedCheckpoint save_checkpoint(const fs::path& run_dir, const CheckpointContents& contents,
                                const SaveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SavedCheckpoint saved;
  saved.step = step_of(contents);
  saved.path = checkpoint_path(run_dir, saved.step);
  std::vector<std::string> documents;
  std::vector<PlannedDataset> plan = plan_datasets(contents, documents);
  prepare_folder(run_dir, saved.path, options.overwrite);

  TemporaryFolder folder(saved.path.string() + "-tmp");
  const fs::path file = folder.path() / kDataFileName;
  const Json summary = make_summary(contents, options, next_sequence(run_dir));
  saved.direct = write_data_file(file, summary, contents, plan, options.hash_threads);
  // The order decides what a crash can leave. The manifest follows the synced data, so it never
  // vouches for bytes that are not on the disk; the rename makes the whole folder visible at once;
  // `latest` moves last, so it always leads to a whole checkpoint.
  const Manifest manifest = make_manifest(file, summary, plan);
  const std::string text = to_text(manifest);
  write_file_atomically(folder.path() / kManifestName, text);  // syncs the folder, too
  folder.publish(saved.path, options.overwrite);
  point_latest(run_dir, saved.path);  // syncs run_dir: both renames are durable now

  saved.manifest = sha256(text);
  saved.tensors = tensors_digest(manifest.datasets);
  saved.bytes = manifest.file_bytes + text.size();
  saved.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  saved.stall_seconds = saved.seconds;
  return saved;
}

}  // namespace olmo::store
