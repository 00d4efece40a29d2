#include "store/runs/find_runs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include <sys/stat.h>

#include "core/files/input_file.h"
#include "core/text/text.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/database/schema.h"
#include "store/database/sqlite.h"
#include "store/run_files.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;

/// What a file or folder is, by whatever name: device and inode.
using Identity = std::pair<dev_t, ino_t>;

struct Status {
  Identity identity;
  bool folder = false;
  bool file = false;
};

/// Of what a link leads to.
std::optional<Status> status_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Status{.identity = {status.st_dev, status.st_ino},
                .folder = S_ISDIR(status.st_mode),
                .file = S_ISREG(status.st_mode)};
}

/// Whether a file `NAME.db` is a database of runs, by its first bytes. One that is being made may
/// have its mark in the journal still; one that nobody may read is for the reader to name.
bool may_hold_runs(const fs::path& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  constexpr std::size_t kMark = 68;  // four bytes, the highest first
  std::array<char, kMark + 4> header{};
  try {
    InputFile file(path);
    if (file.read(header) < header.size() ||
        std::string_view(header.data(), kMagic.size()) != kMagic)
      return false;
  } catch (const Error&) {
    return true;
  }
  std::uint32_t mark = 0;
  for (std::size_t i = 0; i < 4; ++i)
    mark = mark << 8 | static_cast<unsigned char>(header[kMark + i]);
  if (mark == kApplicationId) return true;
  fs::path journal = path;
  journal += "-wal";
  std::error_code none;
  if (mark != 0 || fs::file_size(journal, none) == 0 || none) return false;
  try {
    const Database db(path, OpenMode::kReadOnly);
    return std::get<std::int64_t>(db.value("PRAGMA application_id")) == kApplicationId;
  } catch (const Error&) {
    return true;
  }
}

class Search {
 public:
  explicit Search(const FindLimits& limits) : limits_(limits) {}

  void look_at(const fs::path& place) {
    const auto status = status_of(place);
    if (!status) {
      warn(place, "cannot be looked at: " + error_text());
    } else if (status->folder) {
      if (seen_.insert(status->identity).second) look_into(place, 0);
    } else {
      take(place, *status);
    }
  }

  /// To be called once every place was looked at. By then a file that a link leads to was found
  /// under its own name, whose key and place stay when the link is moved (`latest`).
  void follow_links() {
    while (!links_.empty()) {
      auto links = std::move(links_);
      links_.clear();
      std::ranges::sort(links, {}, &Link::path);
      for (const auto& [path, depth] : links) {
        std::vector<fs::path> folders;
        sort_out(path, folders);
        look_into_all(folders, depth);
      }
    }
  }

  FoundDatabases result() {
    if (too_deep_ > 0)
      warn(first_too_deep_, "lies " + std::to_string(limits_.depth + 1) +
                                " levels down, where no runs are looked for" + more(too_deep_));
    if (left_out_ > 0)
      warn(first_left_out_, "was not looked into, after " + std::to_string(limits_.folders) +
                                " folders" + more(left_out_));
    std::ranges::sort(found_.databases);
    std::ranges::sort(found_.warnings);
    return std::move(found_);
  }

 private:
  void look_into(const fs::path& folder, int depth) {
    if (folders_ == limits_.folders) return note(left_out_, first_left_out_, folder);
    ++folders_;
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_symlink(ignored))
        links_.push_back({entry->path(), depth});
      else
        sort_out(entry->path(), folders);
    }
    if (error) warn(folder, "cannot be read whole: " + error.message());
    look_into_all(folders, depth);
  }

  /// `depth`: of the folder that they lie in.
  void look_into_all(std::vector<fs::path>& folders, int depth) {
    std::sort(folders.begin(), folders.end());
    for (const auto& inner : folders) {
      if (depth == limits_.depth) {
        note(too_deep_, first_too_deep_, inner);
      } else {
        look_into(inner, depth + 1);
      }
    }
  }

  /// Takes a database; notes a folder that is to be looked into.
  void sort_out(const fs::path& path, std::vector<fs::path>& folders) {
    const std::string name = path.filename().string();
    const bool named_as_database = name.ends_with(".db");
    std::error_code ignored;  // what is gone by now is not there
    if (!named_as_database && !fs::is_directory(path, ignored)) return;
    const auto status = status_of(path);
    if (!status) {
      if (named_as_database) warn(path, "cannot be looked at: " + error_text());
    } else if (status->folder) {
      const bool passed_over = name.starts_with('.') || is_checkpoint(path, name);
      if (!passed_over && seen_.insert(status->identity).second) folders.push_back(path);
    } else if (named_as_database && status->file) {
      if (name == kRunDatabaseName || may_hold_runs(path)) take(path, *status);
    } else if (named_as_database) {
      warn(path, "is a pipe or a device and no database");
    }
  }

  static bool is_checkpoint(const fs::path& folder, const std::string& name) {
    std::error_code none;
    return name.starts_with("step") && fs::exists(folder / kManifestName, none);
  }

  void take(const fs::path& path, const Status& status) {
    if (seen_.insert(status.identity).second) found_.databases.push_back(path);
  }

  static std::string error_text() { return std::strerror(errno); }

  void warn(const fs::path& path, const std::string& what) {
    found_.warnings.push_back(path.string() + ": " + what);
  }

  static void note(std::int64_t& count, fs::path& first, const fs::path& path) {
    if (count++ == 0) first = path;
  }

  static std::string more(std::int64_t count) {
    return count == 1 ? "" : " (and " + counted(count - 1, "other folder") + ")";
  }

  struct Link {
    fs::path path;
    int depth = 0;  ///< of the folder that it lies in
  };

  FindLimits limits_;
  FoundDatabases found_;
  std::vector<Link> links_;  ///< that are still to be followed
  std::set<Identity> seen_;
  int folders_ = 0;
  std::int64_t too_deep_ = 0, left_out_ = 0;
  fs::path first_too_deep_, first_left_out_;
};

}  // namespace

FoundDatabases find_databases(const std::vector<fs::path>& places, const FindLimits& limits) {
  Search search(limits);
  for (const auto& place : places) search.look_at(place);
  search.follow_links();
  return search.result();
}

}  // namespace olmo::store
