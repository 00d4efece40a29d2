#include "core/program.h"

#include <cstdlib>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace olmo {

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path; !rest.empty();) {
    const auto end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (!folder.starts_with('/')) continue;
    std::string candidate = folder + "/" + name;
    struct stat status {};
    if (::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
  }
  return std::nullopt;
}

}  // namespace olmo
