#include "core/error.h"

#include <filesystem>

namespace olmo {

void fail_check(const char* condition, const char* file, int line) {
  throw Error(ErrorKind::kFailure, "internal check failed: " + std::string(condition) + " at " +
                                       std::filesystem::path(file).filename().string() + ":" +
                                       std::to_string(line));
}

}  // namespace olmo
