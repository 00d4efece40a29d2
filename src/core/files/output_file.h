// Files and folders that other processes see whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/unfinished_output.h"

namespace olmo {

/// A file that grows under a name of its own beside the one that was asked for, and takes that one
/// when it is whole: publish() syncs, renames and syncs the folder. An object that dies unpublished
/// removes what it wrote; so does a signal that ends the process (core/files/unfinished_output.h).
/// The temporary name cannot be foreseen, and nothing that lies there already is opened, be it a
/// file or a link.
///
/// Mode: an existing file's permission bits are kept; a new one gets what the umask leaves.
/// A symbolic link stays, and the file that it leads to is replaced. What is no regular file (a
/// terminal, a pipe, /dev/null) is written straight to, and so is an open descriptor (/dev/stdout,
/// /dev/fd/3).
class OutputFile {
 public:
  /// Throws Error(kUsage) for a place that cannot be written to: a folder, in a folder that is not
  /// there, not ours or read-only. Otherwise Error(kFailure) naming the path, here and in every
  /// call below (a full disk included).
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void append(std::string_view bytes);
  /// Writes out, syncs and closes, without taking the name yet.
  void finish();
  /// finish(), then takes the name.
  void publish();
  /// Takes the name without syncing: for a cache, whose files can be made again and are verified
  /// when they are used.
  void publish_unsynced();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void open_beside(const std::filesystem::path& target, std::optional<unsigned> mode);
  void flush();
  void write(std::string_view bytes);
  void close();
  void rename_into_place();

  std::optional<UnfinishedOutput> unfinished_;  ///< not if written straight to
  std::filesystem::path path_;                  ///< as it was asked for
  std::filesystem::path target_;     ///< the same without links; empty if written straight to
  std::filesystem::path temporary_;  ///< empty once it is published
  int fd_ = -1;
  std::string buffer_;
};

/// Folders that an output needs: those that were made for it go again if nothing lies in them in
/// the end.
class NewFolders {
 public:
  /// As make_folders.
  explicit NewFolders(const std::filesystem::path& path);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::filesystem::path> made_;  ///< from the outermost on
};

/// The same for a folder, which its owner fills and syncs.
class OutputFolder {
 public:
  enum class Existing { kRefused, kReplaced };
  /// Makes the folders above `target`, too. Throws Error(kUsage) if that cannot be done, and for a
  /// target that exists unless it is to be replaced.
  explicit OutputFolder(const std::filesystem::path& target,
                        Existing existing = Existing::kRefused);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Takes the name and syncs the folder above. Throws Error(kFailure).
  void publish();

 private:
  UnfinishedOutput unfinished_;
  std::filesystem::path target_;
  std::optional<NewFolders> above_;
  std::filesystem::path temporary_;
  Existing existing_;
  bool published_ = false;
};

/// Writes a whole OutputFile. Throws as it does.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Throws Error(kUsage) if something is at `path`: for commands that take --overwrite.
void require_absent(const std::filesystem::path& path);

/// fsync of a file or a directory (a rename is durable only after its directory is synced). Throws
/// Error(kFailure).
void fsync_path(const std::filesystem::path& path);

/// Makes the folder `path` and every level above it that is missing, and syncs the folder that each
/// new one lies in: after a power loss the whole path is there. True if `path` itself was missing.
/// Throws as OutputFile does, naming the level that cannot be made.
bool make_folders(const std::filesystem::path& path);

}  // namespace olmo
