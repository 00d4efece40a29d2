#include "core/libraries/loaded_libraries.h"

#include <link.h>

namespace olmo {
namespace {

constexpr std::size_t kHashDigits = 8;  // of auditwheel, which makes wheels self-contained

/// "zip-1a2b3c4d" without its hash.
std::string without_hash(const std::string& name) {
  const auto dash = name.rfind('-');
  if (dash == std::string::npos || name.size() - dash - 1 != kHashDigits) return name;
  const bool is_hash = name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
  return is_hash ? name.substr(0, dash) : name;
}

}  // namespace

LoadedLibrary library_named(const std::filesystem::path& path) {
  LoadedLibrary library{.name = path.filename().string(), .version = {}, .path = path};
  const auto so = library.name.find(".so");
  if (so == std::string::npos) return library;
  if (library.name.size() > so + 4) library.version = library.name.substr(so + 4);
  library.name.erase(so);
  if (library.name.starts_with("lib")) library.name.erase(0, 3);
  library.name = without_hash(library.name);
  return library;
}

std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (path.empty() || path.front() != '/') return 0;  // the program itself, the kernel's own
    std::error_code ignored;
    auto real = std::filesystem::canonical(path, ignored);
    static_cast<std::vector<LoadedLibrary>*>(to)->push_back(
        library_named(ignored ? std::filesystem::path(path) : real));
    return 0;
  };
  ::dl_iterate_phdr(add, &libraries);
  return libraries;
}

}  // namespace olmo
