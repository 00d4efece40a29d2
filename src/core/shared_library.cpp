#include "core/shared_library.h"

#include <dlfcn.h>

namespace olmo {

SharedLibrary SharedLibrary::open(const std::vector<std::string>& names, std::string* problem) {
  SharedLibrary library;
  for (const auto& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      library.handle_ = {handle, [](void* open) { ::dlclose(open); }};
      return library;
    }
    const char* said = ::dlerror();
    *problem = said != nullptr ? said : name + ": cannot be loaded";
  }
  return library;
}

void* SharedLibrary::address_of(const char* name) const { return ::dlsym(handle_.get(), name); }

}  // namespace olmo
