// A process, such that others can name it and find out whether it still runs.
#pragma once

#include <cstdint>
#include <string>

namespace olmo {

struct ProcessIdentity {
  std::string host = {};
  std::string boot_id = {};     ///< of the kernel, new at each start of the machine
  std::int64_t pid = 0;         ///< in `pid_namespace`
  std::uint64_t pid_start = 0;  ///< ticks after the machine's start: tells a pid that is used again
  std::string pid_namespace = {};

  /// Tells the machine from others, also where their names are alike.
  [[nodiscard]] const std::string& machine() const { return boot_id.empty() ? host : boot_id; }
};

/// The members under the names that they have in files.
template <class Identity, class Visit>
void visit_identity(Identity& identity, const Visit& visit) {
  visit("host", identity.host);
  visit("boot_id", identity.boot_id);
  visit("pid", identity.pid);
  visit("pid_start", identity.pid_start);
  visit("pid_namespace", identity.pid_namespace);
}

/// This process.
ProcessIdentity own_identity();

/// Whether both ran on one machine, within one numbering of processes: one can then see whether the
/// other still runs.
bool sees(const ProcessIdentity& observer, const ProcessIdentity& other);

enum class Life {
  kRuns,
  kStopped,  ///< by SIGSTOP or the like
  kEnded,    ///< gone, or its number belongs to another process now
};

/// Of a process that this one sees.
Life life_of(const ProcessIdentity& process);

}  // namespace olmo
