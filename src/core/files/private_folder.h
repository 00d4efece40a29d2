#pragma once

#include <filesystem>
#include <string>

namespace olmo {

/// A new folder that only this user can read. It goes with the object, and all in it.
class PrivateFolder {
 public:
  /// Its name begins with `name`, and it lies in `where`. Throws Error(kFailure) if it cannot be
  /// made.
  explicit PrivateFolder(const std::string& name, const std::filesystem::path& where =
                                                      std::filesystem::temp_directory_path());
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  ~PrivateFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;  ///< empty: moved from
};

}  // namespace olmo
