#include "eval/embedded_samples.h"

#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "core/process/process.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& file, std::string_view text) {
  std::error_code ignored;
  return fs::file_size(file, ignored) == text.size() && !ignored && read_file(file) == text;
}

}  // namespace

fs::path unpacked_samples() {
  Sha256 hash;
  for (const auto& [path, text] : embedded_samples()) {
    hash.update_u64(path.size());
    hash.update(path);
    hash.update_u64(text.size());
    hash.update(text);
  }
  fs::path folder = cache_directory() / ("samples-" + hash.finish().hex().substr(0, 16));
  for (const auto& [path, text] : embedded_samples()) {
    const fs::path file = folder / path;
    if (holds(file, text)) continue;
    make_folders(file.parent_path());
    write_file_atomically(file, text);
  }
  return folder;
}

}  // namespace olmo::eval
