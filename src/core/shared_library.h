#pragma once

#include <memory>
#include <string>
#include <vector>

namespace olmo {

/// A library that is opened at run time, if this machine has it. Closed with its last copy.
class SharedLibrary {
 public:
  /// The first of `names` that can be loaded; else `problem` is what the loader said of the last.
  static SharedLibrary open(const std::vector<std::string>& names, std::string* problem);

  [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }
  /// A function of the library as a pointer of type F; nullptr if it has none of that name.
  template <typename F>
  [[nodiscard]] F* function(const char* name) const {
    return reinterpret_cast<F*>(address_of(name));
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;
  std::shared_ptr<void> handle_;
};

}  // namespace olmo
