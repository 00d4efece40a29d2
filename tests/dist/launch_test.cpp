#include "dist/launch.h"

#include <map>

#include "core/error.h"
#include "support/catch.h"

namespace olmo::dist {
namespace {

using Environment = std::map<std::string, std::string>;

Launch launch_of(const Environment& environment,
                 const std::optional<std::string>& rendezvous = {}) {
  return read_launch(
      [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      rendezvous);
}

std::string text_of(const Launch& launch) {
  std::string text =
      launch.how + " " + std::to_string(launch.rank) + "/" + std::to_string(launch.size) + " ";
  if (const auto& place = launch.placement)
    text += std::to_string(place->local_rank) + "/" + std::to_string(place->local_size) +
            " on node " + std::to_string(place->node) + "/" + std::to_string(place->nodes) + " ";
  return text + "at " + to_string(launch.rendezvous);
}

std::string refusal_of(const Environment& environment,
                       const std::optional<std::string>& rendezvous = {}) {
  try {
    return "taken as " + text_of(launch_of(environment, rendezvous));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
}

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

/// As torchrun sets them for the third process of the second of two nodes with four each.
const Environment kTorchrun = {{"RANK", "6"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "2"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"GROUP_RANK", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"ROLE_RANK", "6"},
                               {"ROLE_NAME", "default"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                               {"OMP_NUM_THREADS", "1"}};

/// As srun sets them on LUMI: 3 nodes with a task for each of 8 GCDs.
const Environment kLumi = {{"SLURM_JOB_ID", "4012345"},
                           {"SLURM_JOBID", "4012345"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEPID", "0"},
                           {"SLURM_PROCID", "19"},
                           {"SLURM_LOCALID", "3"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_NTASKS", "24"},
                           {"SLURM_NPROCS", "24"},
                           {"SLURM_STEP_NUM_TASKS", "24"},
                           {"SLURM_STEP_NUM_NODES", "3"},
                           {"SLURM_NTASKS_PER_NODE", "8"},
                           {"SLURM_TASKS_PER_NODE", "8(x3)"},
                           {"SLURM_STEP_TASKS_PER_NODE", "8(x3)"},
                           {"SLURM_JOB_NODELIST", "nid[005021-005022,005030]"},
                           {"SLURM_STEP_NODELIST", "nid[005021-005022,005030]"},
                           {"SLURM_CPUS_PER_TASK", "6"},
                           {"SLURM_CLUSTER_NAME", "lumi"}};

/// As mpirun of Open MPI 4 sets them.
const Environment kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"OMPI_COMM_WORLD_NODE_RANK", "1"},  {"PMIX_RANK", "3"},
    {"PMIX_NAMESPACE", "871170049"}};

/// As mpirun (Hydra) of MPICH sets them.
const Environment kMpich = {{"PMI_RANK", "1"},
                            {"PMI_SIZE", "2"},
                            {"PMI_FD", "9"},
                            {"MPI_LOCALRANKID", "1"},
                            {"MPI_LOCALNRANKS", "2"}};

/// The script of a job with 24 tasks, and an interactive shell of it.
const Environment kBatchScript = {{"SLURM_JOB_ID", "4012345"}, {"SLURM_PROCID", "0"},
                                  {"SLURM_LOCALID", "0"},      {"SLURM_NODEID", "0"},
                                  {"SLURM_NTASKS", "24"},      {"SLURM_NPROCS", "24"},
                                  {"SLURM_GTIDS", "0"},        {"SLURM_JOB_NODELIST", "nid[1-3]"}};

}  // namespace

TEST_CASE("without a launcher's variables a process is alone", "[dist]") {
  CHECK(text_of(launch_of({})) == "alone 0/1 at nowhere");
  CHECK(text_of(launch_of({{"WORLD_SIZE", "1"}})) == "alone 0/1 at nowhere");
  CHECK(text_of(launch_of({{"MASTER_ADDR", "node1"}})) == "alone 0/1 at nowhere");
}

TEST_CASE("a rank of torchrun meets the others at the agent's store", "[dist]") {
  const auto launch = launch_of(kTorchrun);
  CHECK(text_of(launch) == "torchrun 6/8 2/4 on node 1/2 at node1:29500");
  CHECK(launch.rendezvous.kind == Rendezvous::Kind::kAgent);
  CHECK(launch.rendezvous.attempt == "olmo-harness.none.2");
  auto own = kTorchrun;
  own["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK(launch_of(own).rendezvous.kind == Rendezvous::Kind::kTcp);
}

TEST_CASE("a task of srun has its place from Slurm, and meets the others on the first node",
          "[dist]") {
  const auto launch = launch_of(kLumi);
  CHECK(text_of(launch) ==
        "srun 19/24 3/8 on node 2/3 at nid005021:" + std::to_string(20'000 + 2345 * 7 % 10'000));
  CHECK(launch.rendezvous.attempt == "olmo-harness.4012345.0.0");
  CHECK(launch_of(with(kLumi, {{"SLURM_RESTART_COUNT", "1"}})).rendezvous.attempt !=
        launch.rendezvous.attempt);
  CHECK(launch_of(with(kLumi, {{"SLURM_STEP_ID", "1"}})).rendezvous.port != launch.rendezvous.port);
}

TEST_CASE("tasks of srun that are spread unevenly count those of their node", "[dist]") {
  const auto launch = launch_of(with(kLumi, {{"SLURM_STEP_TASKS_PER_NODE", "8(x2),3"},
                                             {"SLURM_STEP_NUM_TASKS", "19"},
                                             {"SLURM_PROCID", "18"},
                                             {"SLURM_LOCALID", "2"}}));
  CHECK(text_of(launch).starts_with("srun 18/19 2/3 on node 2/3"));
}

TEST_CASE("a step of srun that takes a part of the job has the step's number of tasks", "[dist]") {
  const auto launch = launch_of(with(
      kLumi,
      {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}, {"SLURM_PROCID", "0"}}));
  CHECK(text_of(launch) == "alone 0/1 at nowhere");
}

TEST_CASE("MASTER_ADDR and MASTER_PORT of a script say where tasks of srun meet", "[dist]") {
  const auto launch = launch_of(
      with(kLumi, {{"MASTER_ADDR", "nid9"}, {"MASTER_PORT", "39591"}, {"WORLD_SIZE", "24"}}));
  CHECK(text_of(launch) == "srun 19/24 3/8 on node 2/3 at nid9:39591");
}

TEST_CASE("tasks of srun of which any may be on the first node are told to say where they meet",
          "[dist]") {
  const auto arbitrary = with(kLumi, {{"SLURM_DISTRIBUTION", "arbitrary"}});
  CHECK_THAT(refusal_of(arbitrary), Catch::Matchers::Contains("--distribution=arbitrary") &&
                                        Catch::Matchers::Contains("expected MASTER_ADDR"));
  CHECK(launch_of(arbitrary, "nid005030:5000").rendezvous.host == "nid005030");
}

TEST_CASE("a script that hands Slurm's numbers on as RANK and WORLD_SIZE is understood", "[dist]") {
  const auto launch = launch_of(with(kLumi, {{"RANK", "19"},
                                             {"WORLD_SIZE", "24"},
                                             {"LOCAL_RANK", "3"},
                                             {"LOCAL_WORLD_SIZE", "8"},
                                             {"NODE_RANK", "2"},
                                             {"MASTER_ADDR", "nid005021"},
                                             {"MASTER_PORT", "39591"}}));
  CHECK(text_of(launch) == "RANK 19/24 3/8 on node 2/3 at nid005021:39591");
}

TEST_CASE("a torchrun that srun starts once a node goes before srun", "[dist]") {
  const auto launch = launch_of(with(
      with(kLumi, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
      kTorchrun));
  CHECK(text_of(launch) == "torchrun 6/8 2/4 on node 1/2 at node1:29500");
}

TEST_CASE("the script of a job and its shells are no ranks, and are told so", "[dist]") {
  const auto script = launch_of(kBatchScript);
  CHECK(text_of(script) == "alone 0/1 at nowhere");
  CHECK(script.note.find("24 tasks") != std::string::npos);
  CHECK(script.note.find("srun") != std::string::npos);
  // salloc's shell, where Slurm starts it as a step.
  CHECK(text_of(launch_of(with(kBatchScript, {{"SLURM_STEP_ID", "4294967290"}}))) ==
        "alone 0/1 at nowhere");
  CHECK(launch_of(kLumi).note.empty());
}

TEST_CASE("ranks of mpirun meet where they are told to", "[dist]") {
  CHECK(text_of(launch_of(kOpenMpi, "node1:29500")) == "mpirun 3/4 1/2 on node 1/2 at node1:29500");
  CHECK(text_of(launch_of(kMpich, "file:/scratch/meet")) ==
        "mpirun 1/2 1/2 on node 0/1 at /scratch/meet");
  CHECK(text_of(launch_of(with(kMpich, {{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "5000"}}))) ==
        "mpirun 1/2 1/2 on node 0/1 at ::1:5000");
}

TEST_CASE("an mpirun within a job of Slurm goes before the step that carries it", "[dist]") {
  const auto launch =
      launch_of(with(with(kLumi, {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}), kOpenMpi),
                "node1:29500");
  CHECK(text_of(launch) == "mpirun 3/4 1/2 on node 1/2 at node1:29500");
}

TEST_CASE("tasks of an srun that speaks PMI-2 are tasks of srun", "[dist]") {
  const Environment pmi2 = {{"PMI_RANK", "19"}, {"PMI_SIZE", "24"}, {"PMI_FD", "13"}};
  CHECK(text_of(launch_of(with(kLumi, pmi2))) == text_of(launch_of(kLumi)));
}

TEST_CASE("a Hydra that srun starts once a node goes before srun", "[dist]") {
  const Environment proxy = with(kLumi, {{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "0"}});
  CHECK(text_of(launch_of(with(proxy, kMpich), "node1:29500")) ==
        "mpirun 1/2 1/2 on node 0/1 at node1:29500");
}

TEST_CASE("a launcher that does not say a rank's place on its machine leaves it open", "[dist]") {
  const auto launch = launch_of(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5000"}});
  CHECK_FALSE(launch.placement);
  CHECK(launch.rank == 1);
}

TEST_CASE("ranks that --nproc started find each other in their folder, whatever is set beside",
          "[dist]") {
  Environment environment = kLumi;
  for (const auto& entry : nproc_variables(1, 3, "/tmp/meet")) {
    const auto equals = entry.find('=');
    environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  CHECK(text_of(launch_of(environment)) == "--nproc 1/3 1/3 on node 0/1 at /tmp/meet");
}

TEST_CASE("variables that are half set are refused in a sentence that names them", "[dist]") {
  const auto size_only = refusal_of({{"WORLD_SIZE", "4"}});
  CHECK(size_only.find("WORLD_SIZE is 4, but RANK is not set") != std::string::npos);
  const auto rank_only = refusal_of({{"RANK", "0"}});
  CHECK(rank_only.find("RANK is 0, but WORLD_SIZE is not set") != std::string::npos);
  const auto no_place = refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "4"}});
  CHECK(no_place.find("rank 0 of 4 (RANK=0 and WORLD_SIZE=4), but nothing says where") !=
        std::string::npos);
  const auto no_port = refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}});
  CHECK(no_port.find("MASTER_ADDR is set, but MASTER_PORT is not") != std::string::npos);
  CHECK(refusal_of(kOpenMpi).find("--rendezvous") != std::string::npos);
  CHECK(refusal_of({{"OMPI_COMM_WORLD_RANK", "1"}}).find("OMPI_COMM_WORLD_SIZE is not set") !=
        std::string::npos);
  CHECK(refusal_of({{"PMIX_RANK", "1"}}).find("PMIX_RANK is 1") != std::string::npos);
  CHECK(
      refusal_of({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}).find("SLURM_STEP_ID is not set") !=
      std::string::npos);
}

TEST_CASE("variables that contradict each other are refused in a sentence that names them",
          "[dist]") {
  const auto too_high = refusal_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}});
  CHECK(too_high.find("RANK=4 and WORLD_SIZE=4: expected a rank below the number of ranks") !=
        std::string::npos);
  // A script exported one RANK for all tasks.
  const auto same = refusal_of(with(kLumi, {{"RANK", "0"}, {"WORLD_SIZE", "24"}}));
  CHECK(same.find("RANK=0 and WORLD_SIZE=24 contradict srun's SLURM_PROCID=19 and "
                  "SLURM_STEP_NUM_TASKS=24") != std::string::npos);
  CHECK(refusal_of(with(kLumi, {{"WORLD_SIZE", "8"}})).find("RANK is not set") !=
        std::string::npos);
  CHECK(
      refusal_of(with(kTorchrun, {{"LOCAL_RANK", "4"}})).find("LOCAL_RANK and LOCAL_WORLD_SIZE") !=
      std::string::npos);
  CHECK(refusal_of({{"RANK", "one"}, {"WORLD_SIZE", "4"}}).find("RANK is `one`") !=
        std::string::npos);
  const auto many = refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "65537"}});
  CHECK(many.find("WORLD_SIZE is 65537: expected at most 65536") != std::string::npos);
}

TEST_CASE("a script's number of ranks that tasks of srun cannot share evenly is refused",
          "[dist]") {
  CHECK(refusal_of(with(kLumi, {{"RANK", "0"}, {"WORLD_SIZE", "36"}}))
            .find("RANK=0 and WORLD_SIZE=36 contradict srun's") != std::string::npos);
}

TEST_CASE("a machine's number beyond the number of machines leaves a rank's place open", "[dist]") {
  CHECK_FALSE(launch_of(with(kTorchrun, {{"GROUP_RANK", "2"}})).placement);
}

TEST_CASE("the script of a job of one task is told nothing of srun", "[dist]") {
  CHECK(launch_of(with(kBatchScript, {{"SLURM_NTASKS", "1"}})).note.empty());
}

TEST_CASE("a rendezvous is host:port or file:PATH", "[dist]") {
  CHECK(to_string(parse_rendezvous("node1:29500")) == "node1:29500");
  CHECK(parse_rendezvous("[fe80::1]:29500").host == "fe80::1");
  CHECK(parse_rendezvous("file:a/b").folder == "a/b");
  for (const char* bad : {"node1", ":29500", "node1:", "node1:0", "node1:65536", "file:", ""}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_rendezvous(bad), Error);
  }
  CHECK(refusal_of({}, "node1:29500").find("which rank of how many") != std::string::npos);
}

TEST_CASE("lists of Slurm are read as it writes them", "[dist]") {
  CHECK(first_host("nid[001-004,007]") == "nid001");
  CHECK(first_host("nid[007,001-004],gpu3") == "nid007");
  CHECK(first_host("login1,nid[001-004]") == "login1");
  CHECK(first_host("rack[1-2]node[05-06]x") == "rack1node05x");
  CHECK(first_host("n1") == "n1");
  CHECK(tasks_per_node("8(x4),3") == std::vector<int>{8, 8, 8, 8, 3});
  CHECK(tasks_per_node("2") == std::vector<int>{2});
  CHECK(tasks_per_node("2(x").empty());
  CHECK(tasks_per_node("a").empty());
}

}  // namespace olmo::dist
