#include "store/runs/lock_holder.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/environment_variable.h"
#include "core/files/json.h"
#include "core/files/recorded_json.h"
#include "store/database/record_database.h"

namespace olmo::store {
namespace {

/// The kernel's own first namespace of host names (PROC_UTS_INIT_INO): there the name is the
/// machine's.
constexpr char kMachineNames[] = "uts:[4026531838]";

std::string link_text(const char* path) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  return error ? "" : target.string();
}

bool was_requeued(const LockHolder& holder, const LockHolder& self) {
  return holder.scheduler == "Slurm" && self.scheduler == "Slurm" && holder.job == self.job &&
         holder.cluster == self.cluster && holder.restart < self.restart;
}

/// The members under their names in the file, in its order.
template <class Holder, class Visit>
void visit_fields(Holder& holder, const Visit& visit) {
  visit_identity(holder, visit);
  visit("own_host", holder.own_host);
  visit("started_utc", holder.started_utc);
  visit("scheduler", holder.scheduler);
  visit("job", holder.job);
  visit("restart", holder.restart);
  visit("cluster", holder.cluster);
}

}  // namespace

LockHolder this_process() {
  LockHolder self;
  static_cast<ProcessIdentity&>(self) = own_identity();
  self.own_host = link_text("/proc/self/ns/uts") == kMachineNames && self.host != "localhost";
  self.started_utc = utc_now();
  constexpr std::array<std::pair<const char*, const char*>, 4> kSchedulers = {
      {{"SLURM_JOB_ID", "Slurm"},
       {"PBS_JOBID", "PBS"},
       {"LSB_JOBID", "LSF"},
       {"FLUX_JOB_ID", "Flux"}}};
  for (const auto& [name, scheduler] : kSchedulers) {
    if (self.job = environment_variable(name); self.job.empty()) continue;
    self.scheduler = scheduler;
    break;
  }
  self.restart = std::atoll(environment_variable("SLURM_RESTART_COUNT").c_str());
  self.cluster = environment_variable("SLURM_CLUSTER_NAME");
  return self;
}

std::string to_text(const LockHolder& holder) {
  nlohmann::ordered_json json;
  visit_fields(holder, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

std::optional<LockHolder> parse_holder(const std::string& text) {
  const Json json = recorded_json(text);
  if (!json.is_object()) return std::nullopt;
  try {
    if (json.at("pid").get<std::int64_t>() <= 0) return std::nullopt;
    LockHolder holder;
    visit_fields(holder, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    return holder;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string describe(const LockHolder& holder) {
  std::string where = "process " + std::to_string(holder.pid) + " on " + holder.host + " (";
  if (!holder.job.empty()) where += holder.scheduler + " job " + holder.job + ", ";
  return where + "since " + holder.started_utc + ")";
}

std::optional<std::string> why_gone(const LockHolder& holder, const LockHolder& self,
                                    KernelProof proof) {
  if (proof == KernelProof::kEveryone) return "the kernel has released its lock";
  const bool same_boot = !holder.boot_id.empty() && holder.boot_id == self.boot_id;
  if (same_boot) {
    if (sees(self, holder)) {
      if (life_of(holder) != Life::kEnded) return std::nullopt;
      return "that process has ended";
    }
    if (proof == KernelProof::kThisMachine) return "the kernel has released its lock";
    return std::nullopt;
  }
  if (was_requeued(holder, self)) return "Slurm has requeued job " + holder.job + " since";
  if (holder.own_host && self.own_host && holder.host == self.host && !holder.boot_id.empty() &&
      !self.boot_id.empty())
    return holder.host + " has been restarted since";
  return std::nullopt;
}

}  // namespace olmo::store
