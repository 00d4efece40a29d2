#include "cli/surroundings.h"

#include <array>

#include "core/error.h"

namespace olmo::cli {
namespace {

constexpr int code_of(ErrorKind kind) { return static_cast<int>(kind); }

constexpr std::array<ExitCode, 9> kExitCodes = {
    {{0, "done"},
     {code_of(ErrorKind::kFailure), "a failure of the program"},
     {code_of(ErrorKind::kUsage), "usage or config"},
     {code_of(ErrorKind::kInput), "bad input"},
     {code_of(ErrorKind::kDamaged), "damaged checkpoint or database"},
     {code_of(ErrorKind::kCheckFailed), "a check found a difference"},
     {code_of(ErrorKind::kDiverged), "the loss is not finite"},
     {code_of(ErrorKind::kStopped), "stopped on request (resume it)"},
     {code_of(ErrorKind::kInterrupted), "interrupted"}}};

constexpr std::array<EnvironmentVariable, 25> kVariables = {
    {{"OLMO_HARNESS_CACHE",
      "Folder of fetched data and other things that can be made again. Default: "
      "XDG_CACHE_HOME/olmo-harness, else ~/.cache/olmo-harness"},
     {"XDG_CACHE_HOME, HOME", "Where that folder is, if OLMO_HARNESS_CACHE is not set"},
     {"OLMO_LIBTORCH, VIRTUAL_ENV, CONDA_PREFIX",
      "Where a packaged olmo-harness looks for LibTorch, in this order, before its cache"},
     {"OLMO_HARNESS_LIBTORCH", "Set by it for its part with LibTorch; not for users"},
     {"OLMO_GPU_LIBRARIES", "Folder with LibTorch's half for a GPU (libtorch_cuda, libtorch_hip)"},
     {"LD_LIBRARY_PATH", "Where the loader looks for libraries, LibTorch and GPU drivers included"},
     {"OMP_NUM_THREADS", "Threads, where neither the config nor --threads says how many"},
     {"SLURM_CPUS_PER_TASK", "The same, on a cluster that does not bind tasks to cores"},
     {"OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME",
      "How threads wait for each other; if none is set, they wait briefly and then sleep"},
     {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, TORCHELASTIC_RUN_ID, "
      "TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_USE_AGENT_STORE",
      "The ranks of train and eval, as torchrun sets them"},
     {"SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_NODEID, "
      "SLURM_TASKS_PER_NODE, SLURM_STEP_TASKS_PER_NODE, SLURM_JOB_NODELIST, SLURM_STEP_NODELIST, "
      "SLURM_DISTRIBUTION",
      "The ranks, as srun sets them"},
     {"OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK, "
      "OMPI_COMM_WORLD_LOCAL_SIZE, PMI_RANK, PMI_SIZE, PMI_LOCAL_RANK, PMI_LOCAL_SIZE, PMIX_RANK",
      "The ranks, as mpirun sets them"},
     {"MASTER_ADDR, MASTER_PORT", "Where ranks meet, unless --rendezvous says it"},
     {"SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT, SLURM_CLUSTER_NAME",
      "Which attempt of which job this is: whose run folder it is, and whose energy"},
     {"OLMO_HARNESS_RANK, OLMO_HARNESS_WORLD_SIZE, OLMO_HARNESS_RENDEZVOUS",
      "Set by --nproc in the ranks that it starts; not for users"},
     {"GLOO_SOCKET_IFNAME", "Network interface by which ranks connect"},
     {"TORCH_CPP_LOG_LEVEL",
      "LibTorch's own messages; if it is not set, its warnings are left out"},
     {"TERM",
      "If it is `dumb` or not set, lines on the terminal are not written anew in their place"},
     {"COLUMNS, LINES", "Width and height of a terminal that does not say its own"},
     {"NO_COLOR", "If it is set to anything, runs watch shows no colours"},
     {"LC_ALL, LC_CTYPE, LANG",
      "Whether the terminal shows UTF-8; if not, curves are drawn with plain characters"},
     {"PATH", "Where pip and python3 (data fetch) and Slurm's programs are found"},
     {"USER", "Who declares margins (report declare), unless --by says it"},
     {"TMPDIR", "Where short-lived files go"},
     {"any other, as ${oc.env:NAME} in a config", "OLMo's configs may refer to them"}}};

constexpr std::array<UsedFile, 7> kFiles = {
    {{"RUN_DIR/run.db",
      "The record of a run: config, environment, every step, evaluations, events"},
     {"RUN_DIR/stepN/", "A checkpoint: HDF5 files and a manifest with their digests"},
     {"FILE.npy, FILE.npy.json", "Token ids, and what made them"},
     {"evaluations.db",
      "In the current folder: evaluations of a checkpoint that belongs to no run, unless --db says "
      "where"},
     {"evals/tasks/*.json, evals/suites/*.json",
      "In the current folder: tasks and suites beside those of the program"},
     {"~/.cache/olmo-harness/data/", "What `olmo-harness data fetch` has brought"},
     {"~/.cache/olmo-harness/kernels/",
      "GPU kernels that were compiled for this machine, 16 files at most"}}};

}  // namespace

std::span<const ExitCode> exit_codes() { return kExitCodes; }

std::string exit_codes_text() {
  std::string text;
  for (const auto& [code, meaning] : kExitCodes)
    text += (text.empty() ? "" : ", ") + std::to_string(code) + " " + meaning;
  return text;
}

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

std::span<const UsedFile> used_files() { return kFiles; }

}  // namespace olmo::cli
