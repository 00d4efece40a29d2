// A training's changes of the disk are logged, then the disk is made again as it may be found when
// the power failed after any of them. A checkpoint that was reported must be there, whole, with the
// steps of the record up to it; and the same command goes on to the same bits.
#include "cli/training.h"
#include "core/error.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "support/catch.h"
#include "support/disk_log.h"
#include "support/faults.h"

namespace olmo::test {
namespace {

const Words kSettings = {"stop_at=6", "save_interval=2", "save_num_checkpoints_to_keep=2",
                         "hash_interval=3"};

constexpr PowerLoss kLosses[] = {PowerLoss::kNothing, PowerLoss::kAll, PowerLoss::kData,
                                 PowerLoss::kNames, PowerLoss::kRandom};

/// A training whose disk is logged, and what it computed.
struct Recorded : Scene {
  Recorded() {
    fs::create_directories(*this / "disk");
    const auto ended = Child(with_fault_shim({"OLMO_FAULT_FOLDER=" + (*this / "disk").string(),
                                              "OLMO_FAULT_LOG=" + (*this / "changes").string()},
                                             command("disk/run", kSettings)),
                             *this / "log")
                           .wait();
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto record = Record(*this / "disk" / "run" / "run.db");
    proof = record.proof();
    chain = record.rows("SELECT step, chain_hash FROM surviving_steps ORDER BY step");
  }
  Proof proof;
  Words chain;
};

/// The step of the last checkpoint that was durable, if its `latest` and its folder were synced.
class Promise {
 public:
  void note(const DiskLog::Change& change) {
    const std::string name = fs::path(change.path).filename().string();
    if (change.head.change == FaultChange::kRename && name == "latest-tmp") named_ = renamed_;
    if (change.head.change == FaultChange::kRename && name.ends_with("-tmp") &&
        name.starts_with("step"))
      renamed_ = std::stol(name.substr(4));
    if (change.head.change == FaultChange::kSync && name == "run") step_ = named_;
  }
  [[nodiscard]] long step() const { return step_; }

 private:
  long renamed_ = -1, named_ = -1, step_ = -1;
};

/// Looks at the run folder of a disk after a power loss.
void check_disk(const Recorded& recorded, const fs::path& run, long promised) {
  long newest = -1;
  if (fs::exists(run)) {
    for (const auto& entry : store::list_checkpoints(run)) {
      const store::CheckpointReader reader(entry.path);
      CHECK(reader.verify().empty());
      newest = std::max<long>(newest, entry.step);
    }
  }
  CHECK(newest >= promised);
  fs::create_directories(run);
  Words steps;
  try {
    const auto db = store::RunDb::open(run / "run.db", store::OpenMode::kCreate);
    db.query("SELECT step || '|' || chain_hash FROM surviving_steps ORDER BY step", {},
             [&](const auto&, const auto& row) { steps.push_back(std::get<std::string>(row[0])); });
    db.records().connection().check_pages();
  } catch (const Error& error) {
    FAIL_CHECK(error.what());
  }
  CHECK(static_cast<long>(steps.size()) >= promised);
  CHECK(steps.size() <= recorded.chain.size());
  CHECK(Words(recorded.chain.begin(),
              recorded.chain.begin() + static_cast<std::ptrdiff_t>(steps.size())) == steps);
}

/// Looks at every `stride`-th state, and resumes from every `resumed`-th of those.
void sweep(std::size_t stride, std::size_t resumed) {
  const Recorded recorded;
  DiskLog log(recorded / "changes", recorded / "disk");
  std::mt19937 random(1);
  Promise promise;
  const fs::path disk = recorded / "after";
  std::size_t states = 0, resumes = 0;
  while (log.next()) {
    promise.note(log.changes()[log.applied() - 1]);
    for (std::size_t i = 0; i < std::size(kLosses); ++i) {
      if ((log.applied() * std::size(kLosses) + i) % stride != 0) continue;
      INFO("after change " << log.applied() << " of " << log.changes().size() << " ("
                           << log.changes()[log.applied() - 1].path << "), loss " << i);
      log.write(disk, kLosses[i], random);
      if (++states % resumed != 0) {
        check_disk(recorded, disk / "run", promise.step());
        continue;
      }
      ++resumes;
      auto words = kSettings;
      words.insert(words.end(), {"--resume", "latest"});
      const auto ended = recorded.train("after/run", words);
      INFO(ended.err);
      REQUIRE(ended.code == 0);
      CHECK(recorded.record("after/run").proof() == recorded.proof);
    }
  }
  WARN(log.changes().size() << " changes, " << states << " states, " << resumes << " resumed");
  CHECK(promise.step() == 6);
}

}  // namespace

TEST_CASE(
    "after a power loss the reported checkpoint is whole, the record sound, and the run goes on",
    "[cli]") {
  sweep(97, 30);
}

TEST_CASE("a power loss after every change of the disk", "[.faults]") { sweep(1, 37); }

}  // namespace olmo::test
