#include "exports/tools.h"

#include <cctype>
#include <cmath>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::exports {

std::vector<std::string> tools() { return {"tensorboard", "wandb", "trackio", "mlflow"}; }

Exported export_run(const Source& source, const std::string& tool,
                    const std::filesystem::path& folder, const std::string& project) {
  if (tool == "tensorboard") return write_tensorboard(source, folder);
  if (tool == "wandb") return write_wandb(source, folder, project);
  if (tool == "trackio") return write_trackio(source, folder, project);
  OLMO_CHECK(tool == "mlflow");
  return write_mlflow(source, folder, project);
}

std::string file_name_of(const std::string& text) {
  constexpr std::size_t kLongest = 80;
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       (c == '.' && !name.empty());
    if (name.size() < kLongest) name += plain ? c : '_';
  }
  return name.empty() ? "run" : name;
}

std::string exact_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return number_text(value);
}

}  // namespace olmo::exports
