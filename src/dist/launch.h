// How this process was started: as one rank of how many, and where the ranks meet.
//
// Launchers say it by environment variables. torchrun sets RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR and MASTER_PORT; srun sets SLURM_PROCID and others in
// each step, and with --mpi=pmi2 PMI_*, too; mpirun sets OMPI_COMM_WORLD_* (Open MPI) or PMI_*
// (MPICH and its relatives);
// `--nproc N` sets OLMO_HARNESS_* in the ranks that it starts. Where several are set, the innermost
// launcher holds: a torchrun that srun starts once a node says more than srun does.
//
// A process that is one of several never trains alone: variables that are half set, or contradict
// each other, are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/machine.h"

namespace olmo::dist {

/// More ranks are not waited for, and not planned for.
inline constexpr int kMostRanks = 1 << 16;

/// Where the ranks of one attempt meet.
struct Rendezvous {
  enum class Kind {
    kNone,    ///< one rank meets nobody
    kTcp,     ///< rank 0 hosts a store at host:port
    kAgent,   ///< torchrun's agent hosts it there
    kFolder,  ///< files in a folder that all ranks see
  };
  Kind kind = Kind::kNone;
  std::string host = {};
  std::uint16_t port = 0;
  std::filesystem::path folder = {};
  /// Begins the keys of this attempt, which then reads nothing that another one left.
  std::string attempt = {};
};

/// "node1:29500", or the folder.
std::string to_string(const Rendezvous& rendezvous);

/// A rank's place among the machines.
struct Placement {
  int local_rank = 0, local_size = 1;  ///< among the ranks of its machine
  int node = 0, nodes = 1;
};

struct Launch {
  int rank = 0;
  int size = 1;
  std::optional<Placement> placement = {};  ///< nothing: the launcher does not say it
  bool own_processors = false;              ///< the launcher says how many this rank has for itself
  Rendezvous rendezvous = {};
  std::string how = "alone";  ///< "torchrun", "srun", "mpirun", "--nproc"
  std::string note = {};      ///< what a user should know; may be empty
};

/// The launch that the variables describe; one rank if they describe none. `rendezvous`: the option
/// of that name, "host:port" or "file:PATH", which goes before the launcher's place. Throws
/// Error(kUsage) for variables that are half set or contradict each other, and for several ranks
/// that nothing says where to meet.
Launch read_launch(const Variable& variable, const std::optional<std::string>& rendezvous = {});

/// "torchrun has started this process as rank 1 of 4".
std::string described(const Launch& launch);

/// The rendezvous that an option's words mean. Throws Error(kUsage).
Rendezvous parse_rendezvous(const std::string& words);

/// What the ranks that `--nproc` starts find in their environment: how many there are, which this
/// one is, and the folder where they meet.
std::vector<std::string> nproc_variables(int rank, int size, const std::filesystem::path& folder);

/// The first machine of a list as Slurm writes it: nid[001-004,007] begins with nid001.
std::string first_host(const std::string& node_list);
/// Ranks by machine as Slurm writes them: 8(x4),3 is 8, 8, 8, 8, 3. Empty if it is no such list.
std::vector<int> tasks_per_node(const std::string& text);

}  // namespace olmo::dist
