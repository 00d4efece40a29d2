#include "store/database/database_file.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/files/input_file.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

fs::path beside(const fs::path& path, const char* suffix) {
  fs::path name = path;
  name += suffix;
  return name;
}

DatabaseState::File file_state(const fs::path& path) {
  const auto found = status_of(path);
  if (!found) return {};
  return {.device = found->st_dev,
          .inode = found->st_ino,
          .bytes = found->st_size,
          .changed = static_cast<std::int64_t>(found->st_mtim.tv_sec) * 1'000'000'000 +
                     found->st_mtim.tv_nsec};
}

}  // namespace

std::vector<fs::path> journals_of(const fs::path& path) {
  std::vector<fs::path> found;
  for (const char* suffix : {"-wal", "-journal"}) {
    fs::path journal = beside(path, suffix);
    if (file_state(journal).bytes > 0) found.push_back(std::move(journal));
  }
  return found;
}

DatabaseHeader::DatabaseHeader(const fs::path& path) : path_(path) {
  InputFile file(path);
  file_bytes_ = file.size();
  is_whole_ = file.read(bytes_) == bytes_.size();
}

std::uint64_t DatabaseHeader::number(std::size_t at, std::size_t width) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
  return value;
}

/// No control character but those of lines, as a binary file soon has one.
bool DatabaseHeader::is_text() const {
  const auto read = std::min<std::uint64_t>(bytes_.size(), file_bytes_);
  return std::all_of(
      bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(read), [](char c) {
        return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t';
      });
}

void DatabaseHeader::require_whole() const {
  if (file_bytes_ == 0) {
    throw Error(ErrorKind::kDamaged,
                path_.string() +
                    ": is empty: it was made and nothing was ever written to it, "
                    "or it was cut");
  }
  if (is_text())
    throw Error(ErrorKind::kDamaged,
                path_.string() +
                    ": is a text and no run database; of another trainer's log "
                    "`olmo-harness runs import` makes one");
  // With a journal, pages that the file lacks may be there.
  if (!is_whole_ || !journals_of(path_).empty()) return;  // SQLite says what is wrong, if anything
  const std::uint64_t page = number(16, 2) == 1 ? 65536 : number(16, 2);
  const bool counted = number(24, 4) == number(92, 4);  // else an old SQLite wrote it
  const std::uint64_t expected = number(28, 4) * page;
  if (!counted || file_bytes_ >= expected) return;
  throw Error(ErrorKind::kDamaged,
              path_.string() + ": is cut: it has " + std::to_string(file_bytes_) + " bytes of " +
                  std::to_string(expected) + " (`sqlite3 FILE .recover` may save rows)");
}

bool DatabaseHeader::has_log() const {
  constexpr std::size_t kFormatOfWriter = 18;
  return is_whole_ && number(kFormatOfWriter, 1) == 2;
}

DatabaseState state_of(const fs::path& path) {
  DatabaseState state{.file = file_state(path), .log = file_state(beside(path, "-wal"))};
  if (state.log.bytes == 0) state.log = {};
  return state;
}

}  // namespace olmo::store
