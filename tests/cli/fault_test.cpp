// A whole training while one call that changes its folder fails: it ends well or in one sentence,
// its checkpoints are whole, and the same command goes on to the same bits.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>

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

/// Each kind of fault at every `stride`-th call of a training, each beginning at another one.
void sweep_calls(long stride) {
  constexpr std::array kFaults{EIO, ENOSPC, EROFS, EINTR, kFaultShort, kFaultKill};
  Sweep sweep;
  for (std::size_t i = 0; i < kFaults.size(); ++i) {
    const long first = 1 + static_cast<long>(i) * stride / std::ssize(kFaults);
    for (long n = first; sweep.fault(kFaults[i], n); n += stride) {
    }
  }
  CHECK(sweep.count > std::ssize(kFaults));
  WARN(sweep.count << " trainings, " << sweep.tolerated << " ended well, " << sweep.refused
                   << " in a sentence");
}

}  // namespace

// A training makes some 630 such calls.
TEST_CASE("a call of a training that fails, here or there, ends it well or in one sentence",
          "[cli]") {
  sweep_calls(360);
}

TEST_CASE("whatever call of a training fails, it ends well or in one sentence and can go on",
          "[.faults]") {
  const char* given = std::getenv("OLMO_FAULT_STRIDE");
  sweep_calls(given == nullptr ? 23 : std::atol(given));
}

}  // namespace olmo::test
