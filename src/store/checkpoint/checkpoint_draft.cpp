#include "store/checkpoint/checkpoint_draft.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "core/process/process.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint/checkpoint_layout.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/checkpoint/raw_file.h"
#include "store/database/record_database.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kFailure, path.string() + ": " + what + ": " + std::strerror(errno));
}

std::int64_t step_of(const CheckpointOutline& outline) {
  const Json step = outline.trainer->is_object() ? outline.trainer->value("step", Json()) : Json();
  if (!step.is_number_integer() || step.get<std::int64_t>() < 0) {
    throw Error(ErrorKind::kFailure,
                "checkpoint: trainer state must have a step >= 0, got " + step.dump());
  }
  return step.get<std::int64_t>();
}

Json make_summary(const CheckpointOutline& outline, const SaveOptions& options,
                  std::uint64_t sequence) {
  Json summary = {{"format", kCheckpointFormat},
                  {"format_version", kCheckpointVersion},
                  {"kind", to_string(outline.kind)},
                  {"ephemeral", options.ephemeral},
                  {"step", static_cast<std::uint64_t>(step_of(outline))},
                  {"sequence", sequence},
                  {"git_revision", build_info().git_revision},
                  {"created_utc", utc_now(/*digits=*/6)}};
  for (const char* name : {"tokens_seen", "run_id"}) {
    if (outline.trainer->contains(name)) summary[name] = outline.trainer->at(name);
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

/// Writes the documents, and `image` where no dataset lies.
void write_structure(const fs::path& file, const StructureImage& image, const FilePlan& plan) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<RawRange> ranges;
  for (std::size_t i = 0; i < plan.documents.size(); ++i) {
    ranges.push_back(
        {plan.datasets[plan.tensors() + i].offset, std::as_bytes(std::span(plan.documents[i]))});
  }
  for (const auto& gap : structure_gaps(image.size(), plan.datasets)) {
    auto& content = bytes.emplace_back(gap.bytes);
    image.read(gap.offset, content);
    ranges.push_back({gap.offset, content});
  }
  write_and_hash(file, ranges, 1);
}

Manifest make_manifest(const fs::path& file, const Json& summary, const FilePlan& plan) {
  Manifest manifest;
  manifest.summary = summary;
  manifest.file_bytes = fs::file_size(file);
  manifest.datasets = plan.datasets;
  manifest.structure = structure_digest(file, manifest.file_bytes, manifest.datasets);
  return manifest;
}

std::vector<TensorOutline> outlines_of(const NamedTensors& tensors) {
  std::vector<TensorOutline> outlines;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.is_contiguous()) {
      throw Error(ErrorKind::kFailure,
                  "checkpoint: " + name + ": expected a contiguous tensor in the main memory");
    }
    outlines.push_back({name, tensor.sizes().vec(), tensor.scalar_type()});
  }
  return outlines;
}

}  // namespace

CheckpointOutline outline_of(const CheckpointContents& contents) {
  return {.kind = contents.kind,
          .trainer = contents.trainer,
          .config = contents.config,
          .model = outlines_of(contents.model),
          .optim = outlines_of(contents.optim),
          .optim_state = contents.optim_state};
}

struct CheckpointDraft::State {
  State(const fs::path& folder_of_run, const CheckpointOutline& outline, const SaveOptions& how)
      : run_dir(folder_of_run),
        step(step_of(outline)),
        target(checkpoint_path(run_dir, step)),
        overwrite(how.overwrite),
        plan(plan_file(outline)) {
    prepare_folder(run_dir, target, overwrite);
    folder.emplace(target.string() + "-tmp");
    file = folder->path() / kDataFileName;
    summary = make_summary(outline, how, next_sequence(run_dir));
    lay_out_file(image, *summary, outline, plan);
    check_space(folder->path(), image.size());
    reserve_space(file, image.size());
  }

  Clock::time_point start = Clock::now();
  fs::path run_dir;
  std::int64_t step;
  fs::path target;
  bool overwrite;
  FilePlan plan;
  JsonValue summary;
  StructureImage image;
  std::optional<TemporaryFolder> folder;
  fs::path file;
};

CheckpointDraft::CheckpointDraft(const fs::path& run_dir, const CheckpointOutline& outline,
                                 const SaveOptions& options)
    : state_(std::make_unique<State>(run_dir, outline, options)) {}

CheckpointDraft::~CheckpointDraft() = default;

const fs::path& CheckpointDraft::file() const { return state_->file; }

std::span<const CheckpointDataset> CheckpointDraft::tensors() const {
  return std::span(state_->plan.datasets).first(state_->plan.tensors());
}

SavedCheckpoint CheckpointDraft::publish(std::span<const Digest> digests) {
  State& state = *state_;
  FilePlan& plan = state.plan;
  OLMO_CHECK(digests.size() == plan.tensors());
  for (std::size_t i = 0; i < plan.datasets.size(); ++i) {
    plan.datasets[i].sha256 =
        i < plan.tensors() ? digests[i] : sha256(plan.documents[i - plan.tensors()]);
  }
  // The structure holds the digests and `complete` = 1, and follows the tensors. A file that is cut
  // short anywhere lacks what its manifest states.
  seal_file(state.image, plan.datasets);
  write_structure(state.file, state.image, plan);
  fsync_path(state.file);
  // The order decides what a crash can leave. The manifest follows the synced data, so it never
  // vouches for bytes that are not on the disk; the rename makes the whole folder visible at once;
  // `latest` moves last, so it always leads to a whole checkpoint.
  const Manifest manifest = make_manifest(state.file, *state.summary, plan);
  const std::string text = to_text(manifest);
  write_file_atomically(state.folder->path() / kManifestName, text);  // syncs the folder, too
  state.folder->publish(state.target, state.overwrite);
  point_latest(state.run_dir, state.target);  // syncs run_dir: both renames are durable now

  SavedCheckpoint saved;
  saved.path = state.target;
  saved.step = state.step;
  saved.manifest = sha256(text);
  saved.tensors = tensors_digest(manifest.datasets);
  saved.bytes = manifest.file_bytes + text.size();
  saved.seconds = seconds_since(state.start);
  saved.stall_seconds = saved.seconds;
  return saved;
}

}  // namespace olmo::store
