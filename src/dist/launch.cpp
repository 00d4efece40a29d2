#include "dist/launch.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/number.h"
#include "core/text/safe_text.h"
#include "dist/nproc.h"

namespace olmo::dist {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kUsage, "launch: " + message);
}

/// The variables, by name.
class Variables {
 public:
  explicit Variables(const Variable& variable) : variable_(variable) {}

  [[nodiscard]] std::optional<std::string> text(const char* name) const {
    const char* value = variable_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  /// The number of a variable that counts ranks, nodes or jobs.
  [[nodiscard]] std::optional<std::int64_t> count(const char* name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    const auto number = parse_number<std::int64_t>(*value);
    if (!number || *number < 0)
      refuse(std::string(name) + " is `" + safe_line(*value) + "`: expected a whole number from 0");
    return number;
  }
  [[nodiscard]] std::optional<int> number(const char* name) const {
    const auto value = count(name);
    if (!value) return std::nullopt;
    if (*value > kMostRanks)
      refuse(std::string(name) + " is " + std::to_string(*value) + ": expected at most " +
             std::to_string(kMostRanks));
    return static_cast<int>(*value);
  }

 private:
  const Variable& variable_;
};

/// The number by which one pair of variables says that this process is a rank.
struct Claim {
  const char* how = "";
  const char* rank_name = "";
  const char* size_name = "";
  int rank = 0;
  int size = 1;
};

std::string to_string(const Claim& claim) {
  return std::string(claim.rank_name) + "=" + std::to_string(claim.rank) + " and " +
         claim.size_name + "=" + std::to_string(claim.size);
}

/// Throws if one of the two is set and the other is not.
std::optional<Claim> claim_of(const Variables& variables, const char* how, const char* rank_name,
                              const char* size_name) {
  const auto rank = variables.number(rank_name);
  const auto size = variables.number(size_name);
  if (!rank && (!size || *size == 1)) return std::nullopt;
  if (!rank || !size) {
    const auto& [set, value] = rank ? std::pair(rank_name, *rank) : std::pair(size_name, *size);
    refuse(std::string(set) + " is " + std::to_string(value) + ", but " +
           (rank ? size_name : rank_name) + " is not set: a process that is one of several needs " +
           "both; to run alone, unset " + set + " or give --nproc 1");
  }
  const Claim claim{how, rank_name, size_name, *rank, *size};
  if (claim.size < 1 || claim.rank >= claim.size)
    refuse(to_string(claim) + ": expected a rank below the number of ranks");
  return claim;
}

/// Steps of Slurm that are no step of srun's, but the job's own script or shell, have the highest
/// numbers (SLURM_BATCH_SCRIPT and others).
constexpr std::int64_t kFirstSpecialStep = 0xFFFFFFF0;

/// The step of srun that this process belongs to.
std::optional<std::int64_t> slurm_step(const Variables& variables) {
  const auto step = variables.count("SLURM_STEP_ID");
  return step && *step < kFirstSpecialStep ? step : std::nullopt;
}

const char* slurm_size_name(const Variables& variables) {
  return variables.text("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
}

std::optional<Claim> claim_of_srun(const Variables& variables) {
  const char* size_name = slurm_size_name(variables);
  if (slurm_step(variables)) return claim_of(variables, "srun", "SLURM_PROCID", size_name);
  // The script of a job and its shell have SLURM_PROCID=0, and the number of tasks that srun would
  // start: they are no rank.
  const auto rank = variables.number("SLURM_PROCID");
  if (rank && *rank > 0 && !variables.text("SLURM_STEP_ID"))
    refuse("SLURM_PROCID is " + std::to_string(*rank) +
           ", but SLURM_STEP_ID is not set: a process that srun started needs both; to run alone, "
           "unset SLURM_PROCID or give --nproc 1");
  return std::nullopt;
}

std::optional<Claim> claim_of_launcher(const Variables& variables) {
  if (auto open_mpi = claim_of(variables, "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
    return open_mpi;
  const auto pmi = claim_of(variables, "mpirun", "PMI_RANK", "PMI_SIZE");
  const auto srun = claim_of_srun(variables);
  // srun sets them, too, with --mpi=pmi2, which is the default of many clusters.
  if (pmi && srun && pmi->rank == srun->rank && pmi->size == srun->size) return srun;
  return pmi ? pmi : srun;
}

/// PMIx gives a rank and leaves the number of ranks to its library: another variable must say it.
void require_size_beside_pmix(const Variables& variables) {
  const auto rank = variables.number("PMIX_RANK");
  if (!rank || slurm_step(variables)) return;
  refuse("PMIX_RANK is " + std::to_string(*rank) +
         ", but no variable says how many ranks there are: expected OMPI_COMM_WORLD_SIZE, PMI_SIZE "
         "or WORLD_SIZE; to run alone, unset PMIX_RANK or give --nproc 1");
}

/// RANK and WORLD_SIZE that torchrun did not set were set by a script, which may have set the same
/// ones for every process.
void require_agreement(const Claim& script, const std::optional<Claim>& launcher) {
  if (!launcher || launcher->size == 1) return;
  const bool same = script.size == launcher->size && script.rank == launcher->rank;
  const bool several_a_task = script.size > launcher->size && script.size % launcher->size == 0;
  if (same || several_a_task) return;
  refuse(to_string(script) + " contradict " + launcher->how + "'s " + to_string(*launcher) +
         ": unset RANK and WORLD_SIZE, or set them to each process's own");
}

/// WORLD_SIZE alone is what scripts export for programs that take the rank from Slurm or MPI.
std::optional<Claim> claim_of_script(const Variables& variables,
                                     const std::optional<Claim>& launcher) {
  const bool known =
      launcher && !variables.text("RANK") && variables.number("WORLD_SIZE") == launcher->size;
  if (known) return std::nullopt;
  auto claim = claim_of(variables, "torchrun", "RANK", "WORLD_SIZE");
  if (!claim || variables.text("TORCHELASTIC_RUN_ID")) return claim;
  claim->how = "RANK";
  require_agreement(*claim, launcher);
  return claim;
}

/// From numbers of which any may be unknown. `sizes`: what the error names.
std::optional<Placement> placement_of(const Launch& launch, std::optional<int> local_rank,
                                      std::optional<int> local_size, std::optional<int> node,
                                      std::optional<int> nodes, const std::string& names) {
  if (!local_rank || !local_size) return std::nullopt;
  if (*local_size < 1 || *local_rank >= *local_size || *local_size > launch.size)
    refuse(names + " say that this is rank " + std::to_string(*local_rank) + " of " +
           std::to_string(*local_size) + " on its machine, and rank " +
           std::to_string(launch.rank) + " of " + std::to_string(launch.size) +
           " in all: expected ranks below their number");
  // Launchers that do not number machines fill one after another, with equally many ranks.
  const bool even = launch.size % *local_size == 0;
  if (!node && !even) return std::nullopt;
  Placement place{*local_rank, *local_size,
                  node.value_or((launch.rank - *local_rank) / *local_size),
                  nodes.value_or(even ? launch.size / *local_size : 0)};
  if (place.nodes <= place.node) return std::nullopt;
  return place;
}

std::optional<Placement> placement_by_srun(const Variables& variables, const Launch& launch) {
  const auto node = variables.number("SLURM_NODEID");
  const auto text = variables.text("SLURM_STEP_TASKS_PER_NODE")
                        ? variables.text("SLURM_STEP_TASKS_PER_NODE")
                        : variables.text("SLURM_TASKS_PER_NODE");
  const auto tasks = tasks_per_node(text.value_or(""));
  std::optional<int> local_size;
  std::optional<int> nodes;
  if (node && static_cast<std::size_t>(*node) < tasks.size()) {
    local_size = tasks[static_cast<std::size_t>(*node)];
    nodes = static_cast<int>(tasks.size());
  }
  return placement_of(launch, variables.number("SLURM_LOCALID"), local_size, node, nodes,
                      "SLURM_LOCALID and SLURM_TASKS_PER_NODE");
}

std::optional<Placement> placement_by(const Variables& variables, const Launch& launch) {
  const auto from = [&](const char* rank, const char* size, const char* node = nullptr) {
    return placement_of(launch, variables.number(rank), variables.number(size),
                        node == nullptr ? std::nullopt : variables.number(node), std::nullopt,
                        std::string(rank) + " and " + size);
  };
  if (launch.how == "srun") return placement_by_srun(variables, launch);
  if (launch.how != "mpirun") {
    const char* node = variables.text("GROUP_RANK") ? "GROUP_RANK" : "NODE_RANK";
    return from("LOCAL_RANK", "LOCAL_WORLD_SIZE", node);
  }
  for (const auto& [rank, size] :
       {std::pair("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        std::pair("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        std::pair("PMI_LOCAL_RANK", "PMI_LOCAL_SIZE")}) {
    if (const auto place = from(rank, size)) return place;
  }
  return std::nullopt;
}

std::uint16_t port_of(std::string_view text, const std::string& where) {
  const auto port = parse_number<std::int64_t>(text);
  if (!port || *port < 1 || *port > 65'535)
    refuse(where + ": expected a port from 1 to 65535, received `" + safe_line(text) + "`");
  return static_cast<std::uint16_t>(*port);
}

/// Below the ports that systems hand out by themselves (32768 and above), and another one for each
/// step that may run on a machine at the same time.
std::uint16_t slurm_port(std::int64_t job, std::int64_t step) {
  constexpr std::int64_t kFirst = 20'000, kPorts = 10'000;
  return static_cast<std::uint16_t>(kFirst + (job % kPorts * 7 + step) % kPorts);
}

/// The place that MASTER_ADDR and MASTER_PORT name; what Slurm can add, it adds.
std::optional<Rendezvous> place_of(const Variables& variables, const Launch& launch) {
  auto host = variables.text("MASTER_ADDR");
  auto port_text = variables.text("MASTER_PORT");
  std::optional<std::uint16_t> port;
  if (port_text) port = port_of(*port_text, "MASTER_PORT");
  if (launch.how == "srun") {
    const auto nodes = variables.text("SLURM_STEP_NODELIST") ? variables.text("SLURM_STEP_NODELIST")
                                                             : variables.text("SLURM_JOB_NODELIST");
    if (!host && nodes && variables.text("SLURM_DISTRIBUTION") == "arbitrary")
      refuse("srun --distribution=arbitrary puts rank 0 on any of " + safe_line(*nodes) +
             ": expected MASTER_ADDR with the name of its machine, or --rendezvous host:port");
    if (!host && nodes) host = first_host(*nodes);
    const auto job = variables.count("SLURM_JOB_ID");
    if (!port && job) port = slurm_port(*job, slurm_step(variables).value_or(0));
  }
  if (!host && !port) return std::nullopt;
  if (!host || !port)
    refuse(std::string(host ? "MASTER_ADDR" : "MASTER_PORT") + " is set, but " +
           (host ? "MASTER_PORT" : "MASTER_ADDR") +
           " is not: expected both, or --rendezvous host:port");
  Rendezvous place{.kind = Rendezvous::Kind::kTcp, .host = *host, .port = *port};
  const auto agent = variables.text("TORCHELASTIC_USE_AGENT_STORE");
  if (agent == "True") place.kind = Rendezvous::Kind::kAgent;
  return place;
}

/// What tells this attempt from others of the same job, which meet at the same place.
std::string attempt_of(const Variables& variables, const Launch& launch) {
  const auto name = [&](std::initializer_list<const char*> names) {
    std::string text = "olmo-harness";
    for (const char* each : names) text += "." + variables.text(each).value_or("0");
    return text;
  };
  if (launch.how == "torchrun") return name({"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
  if (launch.how == "srun") return name({"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"});
  return name({});
}

/// The ranks that `--nproc` started.
std::optional<Launch> started_by_us(const Variables& variables) {
  const auto claim = claim_of(variables, kNproc, kNprocVariable, "OLMO_HARNESS_WORLD_SIZE");
  const auto folder = variables.text("OLMO_HARNESS_RENDEZVOUS");
  if (!claim) return std::nullopt;
  if (!folder) refuse("OLMO_HARNESS_RANK is set, but OLMO_HARNESS_RENDEZVOUS is not");
  return Launch{.rank = claim->rank,
                .size = claim->size,
                .placement = Placement{.local_rank = claim->rank, .local_size = claim->size},
                .rendezvous = {.kind = Rendezvous::Kind::kFolder, .folder = *folder},
                .how = kNproc};
}

/// For a process of a job that has several tasks, which srun did not start.
std::string note_of(const Variables& variables) {
  const auto tasks = variables.number("SLURM_NTASKS");
  if (!tasks || *tasks < 2 || slurm_step(variables)) return {};
  return "the job has " + std::to_string(*tasks) +
         " tasks (SLURM_NTASKS), but srun did not start this process: it runs alone";
}

}  // namespace

std::string to_string(const Rendezvous& rendezvous) {
  if (rendezvous.kind == Rendezvous::Kind::kNone) return "nowhere";
  if (rendezvous.kind == Rendezvous::Kind::kFolder) return rendezvous.folder.string();
  return rendezvous.host + ":" + std::to_string(rendezvous.port);
}

std::string first_host(const std::string& node_list) {
  std::string host;
  bool in_brackets = false, taken = false;
  for (const char letter : node_list) {
    if (letter == '[') {
      in_brackets = true;
      taken = false;
    } else if (letter == ']') {
      in_brackets = false;
    } else if (letter == ',' && !in_brackets) {
      break;
    } else if (in_brackets && (letter == ',' || letter == '-')) {
      taken = true;
    } else if (!in_brackets || !taken) {
      host += letter;
    }
  }
  return host;
}

std::vector<int> tasks_per_node(const std::string& text) {
  std::vector<int> tasks;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const auto repeat = part.find("(x");
    const bool repeated = repeat != part.npos;
    if (repeated && !part.ends_with(')')) return {};
    const auto count = parse_number<std::int64_t>(part.substr(0, repeat));
    const auto times =
        repeated ? parse_number<std::int64_t>(part.substr(repeat + 2, part.size() - repeat - 3))
                 : std::optional<std::int64_t>(1);
    constexpr std::int64_t kMost = 1 << 20;
    if (!count || !times || *count < 1 || *count > kMost || *times < 1 || *times > kMost) return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(*times), static_cast<int>(*count));
    begin = end + 1;
  }
  return tasks;
}

Rendezvous parse_rendezvous(const std::string& words) {
  const std::string where = "--rendezvous " + safe_line(words);
  const auto expected = ": expected host:port, such as node1:29500, or file:PATH";
  if (words.starts_with("file:")) {
    const auto path = words.substr(5);
    if (path.empty()) refuse(where + expected);
    return {.kind = Rendezvous::Kind::kFolder, .folder = path};
  }
  const auto colon = words.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse(where + expected);
  std::string host = words.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {.kind = Rendezvous::Kind::kTcp,
          .host = host,
          .port = port_of(std::string_view(words).substr(colon + 1), where)};
}

std::vector<std::string> nproc_variables(int rank, int size, const std::filesystem::path& folder) {
  return {"OLMO_HARNESS_RANK=" + std::to_string(rank),
          "OLMO_HARNESS_WORLD_SIZE=" + std::to_string(size),
          "OLMO_HARNESS_RENDEZVOUS=" + folder.string()};
}

Launch read_launch(const Variable& variable, const std::optional<std::string>& rendezvous) {
  const Variables variables(variable);
  if (auto ours = started_by_us(variables)) return *ours;
  const std::optional<Claim> launcher = claim_of_launcher(variables);
  auto claim = claim_of_script(variables, launcher);
  if (!claim) claim = launcher;
  if (!claim) require_size_beside_pmix(variables);
  Launch launch;
  launch.note = note_of(variables);
  if (!claim || claim->size == 1) {
    if (rendezvous && !claim)
      refuse("--rendezvous " + safe_line(*rendezvous) +
             ": no variable says which rank of how many this is: expected RANK and WORLD_SIZE, or "
             "those of torchrun, srun or mpirun");
    return launch;
  }
  launch.note.clear();
  launch.rank = claim->rank;
  launch.size = claim->size;
  launch.how = claim->how;
  launch.placement = placement_by(variables, launch);
  launch.own_processors = launch.how == "srun" && variables.text("SLURM_CPUS_PER_TASK");
  const auto place =
      rendezvous ? std::optional(parse_rendezvous(*rendezvous)) : place_of(variables, launch);
  if (!place)
    refuse("this is rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.size) +
           " (" + to_string(*claim) +
           "), but nothing says where the ranks meet: expected --rendezvous host:port, or "
           "file:PATH with a folder that is new for each attempt");
  launch.rendezvous = *place;
  launch.rendezvous.attempt = attempt_of(variables, launch);
  return launch;
}

std::string described(const Launch& launch) {
  return launch.how + " has started this process as rank " + std::to_string(launch.rank) + " of " +
         std::to_string(launch.size);
}

}  // namespace olmo::dist
