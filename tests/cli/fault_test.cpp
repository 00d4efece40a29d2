// A whole training while one call that changes its folder fails: it ends well or in one sentence,
// its checkpoints are whole, and the same command goes on to the same bits.
#include <cerrno>
#include <cstdlib>

#include "cli/training.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "support/catch.h"
#include "support/faults.h"

namespace olmo::test {
namespace {

const Words kSettings = {"stop_at=4", "save_interval=2", "save_num_checkpoints_to_keep=2"};

struct Sweep : Scene {
  Sweep() {
    const auto ended = train("reference", kSettings);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    proof = record("reference").proof();
  }

  /// Trains with the n-th call failing as `action` says; false if there were not so many calls.
  bool fault(int action, long n, bool repeat = false) {
    const std::string name = "run" + std::to_string(count++);
    const fs::path run = *this / name, fired = *this / (name + "-fired");
    Words variables = {"OLMO_FAULT_FOLDER=" + run.string(), "OLMO_FAULT_AT=" + std::to_string(n),
                       "OLMO_FAULT_ACTION=" + std::to_string(action),
                       "OLMO_FAULT_FIRED=" + fired.string()};
    if (repeat) variables.push_back("OLMO_FAULT_REPEAT=1");
    const auto ended =
        Child(with_fault_shim(variables, command(name, kSettings)), *this / (name + "-log")).wait();
    INFO("call " << n << ", fault " << action << ": " << read_file(fired) << ended.err);
    if (!fs::exists(fired)) {
      CHECK(ended.code == 0);
      return false;
    }
    if (action == kFaultKill) {
      CHECK(ended.signal == SIGKILL);
    } else {
      CHECK(ended.signal == 0);
      const auto first = ended.err.find("error: ");
      CHECK((ended.code == 0) == (first == std::string::npos));
      if (first != std::string::npos)
        CHECK(ended.err.find("error: ", first + 1) == std::string::npos);
      ++(ended.code == 0 ? tolerated : refused);
    }
    if (fs::exists(run)) {
      for (const auto& entry : store::list_checkpoints(run))
        CHECK(store::CheckpointReader(entry.path).verify().empty());
    }
    auto words = kSettings;
    words.insert(words.end(), {"--resume", "latest"});
    const auto resumed = train(name, words);
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    if (resumed.code == 0) CHECK(record(name).proof() == proof);
    fs::remove_all(run);
    return true;
  }

  Proof proof;
  int count = 0, tolerated = 0, refused = 0;
};

}  // namespace

TEST_CASE("whatever call of a training fails, it ends well or in one sentence and can go on",
          "[.faults]") {
  Sweep sweep;
  const char* given = std::getenv("OLMO_FAULT_STRIDE");
  const long stride = given == nullptr ? 23 : std::atol(given);
  long offset = 0;
  for (const int action : {EIO, ENOSPC, EROFS, EINTR, kFaultShort, kFaultKill}) {
    for (long n = 1 + offset++ % stride; sweep.fault(action, n); n += stride) {
    }
  }
  WARN(sweep.count << " trainings, " << sweep.tolerated << " ended well, " << sweep.refused
                   << " in a sentence");
}

}  // namespace olmo::test
