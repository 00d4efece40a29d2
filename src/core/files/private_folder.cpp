#include "core/files/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "core/error.h"

namespace olmo {

PrivateFolder::PrivateFolder(const std::string& name, const std::filesystem::path& where) {
  std::string path = (where / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    throw Error(ErrorKind::kFailure,
                path + ": this folder for temporary files cannot be made: " + std::strerror(errno));
  path_ = path;
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept { path_.swap(other.path_); }

PrivateFolder& PrivateFolder::operator=(PrivateFolder&& other) noexcept {
  path_.swap(other.path_);
  return *this;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace olmo
