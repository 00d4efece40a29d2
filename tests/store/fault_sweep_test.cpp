// The n-th call that changes the disk fails, for every n: whatever fails, in whatever way, a save
// is whole or refused, and a record keeps what it said it kept.
#include <array>
#include <cerrno>
#include <csignal>

#include <ATen/Parallel.h>

#include "core/error.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint_fixture.h"
#include "store/plain_records.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/faults.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;
using olmo::test::FaultShim;
using olmo::test::in_child;
using olmo::test::kFaultKill;
using olmo::test::kFaultShort;

enum Result { kSaved = 0, kRefused = 1, kOutOfMemory = 2, kOther = 3 };

int try_save(const fs::path& run_dir, const CheckpointContents& contents, bool overwrite) {
  try {
    save_checkpoint(run_dir, contents, {.overwrite = overwrite});
    return kSaved;
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.size() > 10 && text.find('\n') == std::string::npos ? kRefused : kOther;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::system_error&) {  // a thread that could not be started
    return kOutOfMemory;
  }
}

/// What the folder holds after a save of step 2 beside step 1 ended with `result`.
void check_folder(const fs::path& run_dir, int result) {
  CHECK(same(read_checkpoint(run_dir / "step1"), example(1)));
  const bool second = fs::exists(run_dir / "step2");
  if (result == kSaved) CHECK(second);
  if (second) CHECK(same(read_checkpoint(run_dir / "step2"), example(2)));
  const auto newest = resolve_checkpoint(run_dir);
  CHECK(newest.filename() == (second ? "step2" : "step1"));
  save_checkpoint(run_dir, example(3));
  for (const auto& entry : fs::directory_iterator(run_dir)) {
    INFO(entry.path());
    CHECK((entry.path().filename() == "latest" || fs::exists(entry.path() / "manifest.json")));
  }
}

struct Count {
  long calls = 0, saved = 0, refused = 0, killed = 0;
};

/// Saves step 2 with the n-th call failing, for n = first, first + stride, … until none is left.
Count sweep_save(int action, long first, long stride) {
  const FaultShim shim;
  at::set_num_threads(1);  // no help for so little, and children have no others
  Count count;
  const auto contents = example(2);
  for (long n = first;; n += stride) {
    const TempFolder folder;
    const fs::path& run_dir = folder.path();
    save_checkpoint(run_dir, example(1));
    const int result = in_child([&] {
      shim.arm(run_dir.c_str(), "", n, action, 0);
      const int saved = try_save(run_dir, contents, false);
      return saved + (shim.disarm() < n ? 100 : 0);
    });
    INFO("call " << n << ", fault " << action << ": " << result);
    const bool past_the_end = result >= 100;
    const int ended = past_the_end ? result - 100 : result;
    if (action == kFaultKill && !past_the_end) {
      REQUIRE(ended == -SIGKILL);
      ++count.killed;
    } else {
      REQUIRE((ended == kSaved || ended == kRefused));
      ++(ended == kSaved ? count.saved : count.refused);
    }
    check_folder(run_dir, ended);
    if (past_the_end) {
      CHECK(ended == kSaved);
      return count;
    }
    ++count.calls;
  }
}

constexpr std::array<int, 7> kFaults = {EIO, ENOSPC, EDQUOT, EROFS, EINTR, kFaultKill, kFaultShort};

/// Saves step 2 while the n-th allocation (or it and all after it) fails. With `hdf5`, those of the
/// HDF5 library fail, too: it then ends the process (exit(-1), or by a null pointer).
Count sweep_memory(bool all_after, double factor, bool hdf5) {
  const FaultShim shim;
  at::set_num_threads(1);  // no help for so little, and children have no others
  Count count;
  const auto contents = example(2);
  for (double at = 1;; at = std::max(at + 1, at * factor)) {
    const long n = static_cast<long>(at);
    const TempFolder folder;
    const fs::path& run_dir = folder.path();
    save_checkpoint(run_dir, example(1));
    const int result = in_child([&] {
      shim.arm_memory(all_after ? -n : n, hdf5 ? "" : "libhdf5");
      const int saved = try_save(run_dir, contents, false);
      return saved + (shim.disarm_memory() < n ? 100 : 0);
    });
    INFO("allocation " << n << ": " << result);
    // The destructor of a JSON document needs memory, too: without it, it ends the process.
    const bool by_library = result == -SIGABRT || (hdf5 && (result == 255 || result == -SIGSEGV));
    const bool past_the_end = result >= 100 && !by_library;
    const int ended = past_the_end ? result - 100 : result;
    REQUIRE((ended == kSaved || ended == kRefused || ended == kOutOfMemory || by_library));
    ++(ended == kSaved ? count.saved : by_library ? count.killed : count.refused);
    check_folder(run_dir, ended);
    if (past_the_end) return count;
    ++count.calls;
  }
}

/// Writes steps one by one into a record with one run, whose id is `run`; ends with the number of
/// steps that it was told are on the disk, or 99 if the record could not be opened.
int write_steps(const fs::path& path, const std::string& run) {
  int kept = 0;
  try {
    RunDb db = RunDb::open(path, OpenMode::kReadWrite);
    db.resume_run(run, olmo::test::plain_attempt(), 3);
    for (int step = 1; step <= 3; ++step) {
      StepRecord row;
      row.step = step;
      row.batch_hash = row.chain_hash = "h";
      db.record_step(row);
      db.flush();
      kept = step;
    }
    db.end_attempt("finished");
    return kept;
  } catch (const Error&) {
    return kept == 0 ? 99 : kept;
  }
}

/// Writes to a record with the n-th call failing; afterwards it is sound, holds every step that was
/// said to be on the disk, and can be written to.
Count sweep_record(int action, long first, long stride) {
  const FaultShim shim;
  Count count;
  for (long n = first;; n += stride) {
    const TempFolder folder;
    const fs::path path = folder / "run.db";
    std::string run;
    {
      RunDb db = RunDb::open(path, OpenMode::kCreate);
      run = db.begin_run(olmo::test::plain_run("r"), olmo::test::plain_attempt(), {});
    }
    const int result = in_child([&] {
      shim.arm(folder.path().c_str(), "", n, action, 0);
      const int kept = write_steps(path, run);
      return kept + (shim.disarm() < n ? 100 : 0);
    });
    INFO("call " << n << ", fault " << action << ": " << result);
    REQUIRE((result >= 0 || result == -SIGKILL));
    const bool past_the_end = result >= 100 && result != 199;
    const int kept = result < 0 || result % 100 == 99 ? 0 : result % 100;
    RunDb db = RunDb::open(path, OpenMode::kReadWrite);
    db.records().connection().check_pages();
    std::int64_t found = 0;
    db.query("SELECT count(*) FROM steps", {},
             [&](const auto&, const auto& row) { found = std::get<std::int64_t>(row[0]); });
    CHECK(found >= kept);
    db.tag(run, "written-afterwards", false);
    if (past_the_end) {
      CHECK(found == 3);
      return count;
    }
    ++count.calls;
    ++(result < 0 ? count.killed : kept == 3 ? count.saved : count.refused);
  }
}

}  // namespace

TEST_CASE("whatever call fails while steps are recorded, the record stays sound and keeps its word",
          "[store]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  for (std::size_t i = 0; i < kFaults.size(); ++i)
    sweep_record(kFaults[i], static_cast<long>(i) + 1, 17);
}

TEST_CASE("every call of the record fails in every way", "[.faults]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  for (const int fault : kFaults) {
    const auto count = sweep_record(fault, 1, 1);
    WARN("fault " << fault << ": " << count.calls << " calls, " << count.saved << " whole, "
                  << count.refused << " refused, " << count.killed << " killed");
  }
}

TEST_CASE("whatever call of a save fails, the save is whole or refused in one sentence",
          "[store]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  sweep_save(EIO, 1, 1);
  for (std::size_t i = 1; i < kFaults.size(); ++i) sweep_save(kFaults[i], static_cast<long>(i), 7);
}

TEST_CASE("every call of a save fails in every way", "[.faults]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  for (const int fault : kFaults) {
    const auto count = sweep_save(fault, 1, 1);
    WARN("fault " << fault << ": " << count.calls << " calls, " << count.saved << " saved, "
                  << count.refused << " refused, " << count.killed << " killed");
  }
}

TEST_CASE(
    "memory that runs out during a save leaves the older checkpoint, and no half of a new one",
    "[store]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  sweep_memory(false, 1.4, false);
}

TEST_CASE("every allocation of a save fails", "[.faults]") {
  if (!FaultShim().loaded()) return olmo::test::repeat_with_fault_shim();
  for (const bool hdf5 : {false, true}) {
    const auto count = sweep_memory(hdf5, hdf5 ? 1.05 : 1, hdf5);
    WARN((hdf5 ? "it and all after, HDF5's too: " : "one of ours: ")
         << count.calls << " allocations, " << count.saved << " saved, " << count.refused
         << " refused, " << count.killed << " ended");
  }
}

}  // namespace olmo::store::test
