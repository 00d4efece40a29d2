#include "core/process_identity.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <sstream>

#include <sys/utsname.h>
#include <unistd.h>

#include "core/compute/machine.h"

namespace olmo {
namespace {

struct Status {
  char state = 0;           ///< R, S, T (stopped), Z (ended, and nobody has asked how), …
  std::uint64_t start = 0;  ///< ticks after the machine's start
};

/// Fields 3 and 22 of /proc/PID/stat; the name before them may hold anything but ends with the last
/// ')'.
std::optional<Status> status_of(std::int64_t pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  Status status;
  fields >> status.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  if (!(fields >> status.start)) return std::nullopt;
  return status;
}

}  // namespace

ProcessIdentity own_identity() {
  ProcessIdentity self;
  utsname system{};
  if (::uname(&system) == 0) self.host = system.nodename;
  self.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  self.pid = ::getpid();
  self.pid_start = status_of(self.pid).value_or(Status()).start;
  std::error_code error;
  const auto name_space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  if (!error) self.pid_namespace = name_space.string();
  return self;
}

bool sees(const ProcessIdentity& observer, const ProcessIdentity& other) {
  return !other.boot_id.empty() && other.boot_id == observer.boot_id &&
         !other.pid_namespace.empty() && other.pid_namespace == observer.pid_namespace;
}

Life life_of(const ProcessIdentity& process) {
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return Life::kEnded;
  const auto status = status_of(process.pid);
  if (!status) return Life::kRuns;  // a system that hides other users' processes
  if (status->start != process.pid_start) return Life::kEnded;
  if (status->state == 'Z' || status->state == 'X') return Life::kEnded;
  return status->state == 'T' || status->state == 't' ? Life::kStopped : Life::kRuns;
}

}  // namespace olmo
