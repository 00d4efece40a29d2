// The file of an SQLite database and its journals, as they lie in their folder: what can be told
// before SQLite opens them, and whether they have changed since.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace olmo::store {

/// Journals beside a database in which something lies: changes that are not, or only half, in the
/// file itself. A process that writes has one, and so has one that was killed.
std::vector<std::filesystem::path> journals_of(const std::filesystem::path& path);

/// The start of a database: what SQLite's file format says of the whole file.
class DatabaseHeader {
 public:
  explicit DatabaseHeader(const std::filesystem::path& path);

  /// SQLite tells an empty file from a database only by its lack of tables, and a cut one only once
  /// it meets a page that is not there. Throws Error(kDamaged) for such files and for a text.
  void require_whole() const;
  /// Whether its changes go to a write-ahead log, for which SQLite wants two files beside it
  /// (`-wal`, `-shm`), also to read it.
  [[nodiscard]] bool has_log() const;

 private:
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t width) const;
  [[nodiscard]] bool is_text() const;

  std::filesystem::path path_;
  std::array<char, 100> bytes_{};
  bool is_whole_ = false;  ///< else the file is shorter
  std::uint64_t file_bytes_ = 0;
};

/// Another value once somebody has written to a database, or put another file in its place.
struct DatabaseState {
  struct File {
    std::uint64_t device = 0, inode = 0;
    std::int64_t bytes = 0, changed = 0;  ///< changed: nanoseconds
    bool operator==(const File&) const = default;
  };
  File file = {};
  File log = {};  ///< all zero: there is none, or nothing lies in it
  bool operator==(const DatabaseState&) const = default;
};
DatabaseState state_of(const std::filesystem::path& path);

}  // namespace olmo::store
