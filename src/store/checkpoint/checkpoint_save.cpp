#include "core/compute/named_tensors.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/checkpoint/raw_file.h"

namespace olmo::store {

namespace fs = std::filesystem;

std::string to_string(CheckpointKind kind) {
  return kind == CheckpointKind::kFull ? "full" : "weights";
}

fs::path checkpoint_path(const fs::path& run_dir, std::int64_t step) {
  return run_dir / ("step" + std::to_string(step));
}

SavedCheckpoint save_checkpoint(const fs::path& run_dir, const CheckpointContents& contents,
                                const SaveOptions& options) {
  CheckpointDraft draft(run_dir, outline_of(contents), options);
  std::vector<RawRange> ranges;
  for (const auto* tensors : {&contents.model, &contents.optim}) {
    for (const auto& entry : *tensors)
      ranges.push_back({draft.tensors()[ranges.size()].offset, host_bytes(entry.tensor)});
  }
  const RawWriteResult written = write_and_hash(draft.file(), ranges, options.hash_threads);
  SavedCheckpoint saved = draft.publish(written.digests);
  saved.direct = written.direct;
  return saved;
}

}  // namespace olmo::store
