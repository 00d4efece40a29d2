#include "store/evaluations/evaluation_labels.h"

#include <filesystem>

#include "store/run_files.h"

namespace olmo::store {

std::string model_of(const EvaluationEntry& entry) {
  const std::filesystem::path path = entry.record.checkpoint;
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  const std::string last = clean.filename().string();
  if (last.empty()) return entry.evaluation_id;
  // A checkpoint's own name says nothing without the run's.
  const std::string folder = clean.parent_path().filename().string();
  const bool of_run = last.starts_with("step") || last == kLatestName;
  return of_run && !folder.empty() ? folder + "/" + last : last;
}

std::string status_text(const std::string& status) {
  return status == "running" ? "running by its record" : status;
}

}  // namespace olmo::store
