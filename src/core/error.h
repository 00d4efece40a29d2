#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace olmo {

/// Why a command ends. The value is the exit code of the process; users and checks rely on these
/// numbers.
enum class ErrorKind : int {
  kFailure = 1,      ///< a failure of ours
  kUsage = 2,        ///< command line or config
  kInput = 3,        ///< an input file or data set is bad
  kDamaged = 4,      ///< a checkpoint or database is damaged
  kCheckFailed = 5,  ///< a check found a difference
  kDiverged = 6,     ///< the run's loss or gradient is not a number
  kStopped = 75,     ///< stopped on request, can be resumed
  kInterrupted = 130,
};

/// The one exception type of the harness, caught in main.cpp. The message is one sentence: where,
/// what, expected, received.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] inline void fail_check(const char* condition, std::string_view file, int line) {
  throw Error(ErrorKind::kFailure, "internal check failed: " + std::string(condition) + " at " +
                                       std::string(file.substr(file.rfind('/') + 1)) + ":" +
                                       std::to_string(line));
}

}  // namespace olmo

/// An invariant of our own code; on in release builds. Bad input throws Error with its own sentence
/// instead.
#define OLMO_CHECK(condition)                                           \
  do {                                                                  \
    if (!(condition)) olmo::fail_check(#condition, __FILE__, __LINE__); \
  } while (false)
