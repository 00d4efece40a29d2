// What may be read as a file: never a hang, and one sentence for a folder, a pipe, a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace olmo {

/// A file that is open for reading.
class InputFile {
 public:
  /// Pipes are for what is read once, from front to back.
  enum class Pipes { kRefused, kRead };

  /// Throws Error(kInput) naming the path, here and below: it is not there, or it is not a regular
  /// file. Opening waits for nobody.
  explicit InputFile(const std::filesystem::path& path, Pipes pipes = Pipes::kRefused);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The next bytes, at most out.size(); 0 at the end. Says so when a pipe keeps it waiting, and
  /// refuses one that never gave a byte.
  std::size_t read(std::span<char> out);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// Bytes of a regular file; 0 for a pipe.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  void wait_for_writer() const;
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  bool pipe_ = false;
  bool gave_bytes_ = false;
};

/// For libraries that open a file by its name. Throws as InputFile does.
void check_regular_file(const std::filesystem::path& path);

}  // namespace olmo
