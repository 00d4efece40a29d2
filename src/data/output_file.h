#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace olmo::data {

/// A file that grows under a temporary name beside its own and takes it only when it is whole:
/// publish() syncs and renames. An object that dies unpublished removes what it wrote.
class OutputFile {
 public:
  /// Throws Error(kFailure) naming the path, here and in every call below (a full disk included).
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;

  void append(std::string_view bytes);
  /// Writes out and syncs, without taking the name yet.
  void finish();
  /// finish(), then renames.
  void publish();
  /// Renames without syncing: for a cache, whose files can be made again and are verified when they
  /// are used.
  void publish_unsynced();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void flush();
  void rename_into_place();
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace olmo::data
