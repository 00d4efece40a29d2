// Opening files for reading. Opening never blocks, and a folder, pipe or device is refused in one
// sentence.
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
  /// file. Opening does not wait for a pipe's writer.
  explicit InputFile(const std::filesystem::path& path, Pipes pipes = Pipes::kRefused);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Reads the next bytes, at most out.size(), and returns how many; 0 at the end. Tells the user
  /// when it waits for a pipe, and refuses a pipe that ends without a byte.
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
