#include "train/rank_checkpoint.h"

#include <condition_variable>
#include <fstream>
#include <mutex>

#include "core/error.h"
#include "dist/dying_rank.h"
#include "dist/together.h"
#include "support/catch.h"
#include "support/faults.h"
#include "support/small_disk.h"
#include "train/rank_state.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using store::test::difference_of;
using store::test::same;
using store::test::TempFolder;

/// Nothing but whole checkpoints, and the link to one.
void check_nothing_left(const fs::path& run_dir) {
  for (const auto& entry : fs::directory_iterator(run_dir)) {
    INFO(entry.path());
    CHECK((entry.path().filename() == "latest" || fs::exists(entry.path() / "manifest.json")));
  }
}

/// What `world` ranks read equals their parts of `whole`.
bool reads(int world, const fs::path& checkpoint, const store::CheckpointContents& whole) {
  std::atomic<int> equal = 0;
  dist::run_ranks(world, [&](dist::Communicator& ranks) {
    auto checkpoints = checkpoints_of(ranks, checkpoint.parent_path());
    const Start start = checkpoints.read(checkpoint, experiment());
    if (same(start.contents, held_by(ranks.rank(), world, whole))) ++equal;
  });
  return equal == world;
}

TEST_CASE("any number of ranks saves the file that one process saves", "[train]") {
  const TempFolder folder;
  const auto whole = whole_state(8);
  const auto one = store::save_checkpoint(folder / "one", whole);
  for (const int world : {1, 2, 3, 5, 16}) {
    INFO(world << " ranks");
    const auto saved = save_on(world, folder / std::to_string(world), whole, {.hash_threads = 2});
    CHECK(difference_of(one.path, saved.path) == "");
    CHECK(saved.tensors == one.tensors);
    CHECK(saved.bytes == one.bytes);
    CHECK(saved.step == 8);
    CHECK(store::CheckpointReader(saved.path).verify().empty());
    check_nothing_left(folder / std::to_string(world));
  }
}

TEST_CASE("what any number of ranks has saved, any other number loads", "[train]") {
  const TempFolder folder;
  const auto whole = whole_state(8);
  for (const int saving : {1, 2, 3, 5}) {
    const auto saved = save_on(saving, folder / std::to_string(saving), whole);
    for (const int loading : {1, 2, 3, 4, 7}) {
      INFO("saved by " << saving << ", loaded by " << loading);
      CHECK(reads(loading, saved.path, whole));
    }
  }
}

TEST_CASE("a checkpoint of another experiment is read without its tensors", "[train]") {
  const TempFolder folder;
  const auto path = save_on(2, folder.path(), whole_state(8)).path;
  dist::run_ranks(2, [&](dist::Communicator& ranks) {
    const Start start = checkpoints_of(ranks, folder.path()).read(path, std::string(64, 'f'));
    OLMO_CHECK(start.saved.state.step == 8 && start.contents.model.empty());
  });
}

/// The one error that all of `world` ranks throw when they read.
std::string error_of_reading(int world, const fs::path& checkpoint) {
  const auto errors = errors_on(world, [&](dist::Communicator& ranks) {
    checkpoints_of(ranks, checkpoint.parent_path()).read(checkpoint, experiment());
  });
  for (const auto& error : errors) CHECK(error == errors.front());
  return errors.front();
}

/// Changes one byte of a file.
void flip(const fs::path& file, std::uint64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(byte ^ 4));
}

TEST_CASE("damage is found by any number of ranks, and told alike on all", "[train]") {
  const TempFolder folder;
  const auto path = store::save_checkpoint(folder.path(), whole_state(8)).path;
  const auto bytes = fs::file_size(path / "checkpoint.h5");
  const auto datasets = store::CheckpointReader(path).datasets();
  const fs::path copy = folder / "step9";
  for (const int world : {1, 2, 3, 5}) {
    INFO(world << " ranks");
    const auto error_after = [&](const std::function<void()>& damage) {
      fs::remove_all(copy);
      fs::copy(path, copy);
      damage();
      return error_of_reading(world, copy);
    };
    for (const auto& dataset : datasets) {
      const auto error =
          error_after([&] { flip(copy / "checkpoint.h5", dataset.offset + dataset.bytes - 1); });
      CHECK_THAT(error, Contains(dataset.path + " is damaged"));
    }
    CHECK_THAT(error_after([&] { flip(copy / "checkpoint.h5", 100); }),
               Contains("structure is damaged"));
    CHECK_THAT(error_after([&] { fs::resize_file(copy / "checkpoint.h5", bytes - 1); }),
               Contains("expected " + std::to_string(bytes)));
    CHECK_THAT(error_after([&] { fs::remove(copy / "checkpoint.h5"); }), Contains("checkpoint.h5"));
    CHECK_THAT(error_after([&] { fs::remove(copy / "manifest.json"); }), Contains("manifest.json"));
    CHECK_THAT(error_after([&] { flip(copy / "manifest.json", 200); }), Contains("manifest.json"));
  }
}

TEST_CASE("a tensor that the model does not have, or of another shape, is refused by all",
          "[train]") {
  const TempFolder folder;
  auto whole = whole_state(1);
  whole.model[1].tensor = store::test::patterned({98}, 1);
  CHECK_THAT(error_of_reading(3, store::save_checkpoint(folder.path(), whole).path),
             Contains("/model/transformer.ln_f.weight is (98), expected (97)"));
  whole = whole_state(2);
  whole.model.push_back({"transformer.other.weight", store::test::patterned({3}, 1)});
  CHECK_THAT(error_of_reading(3, store::save_checkpoint(folder.path(), whole).path),
             Contains("/model/transformer.other.weight was not expected"));
  whole = whole_state(3);
  whole.model.pop_back();
  CHECK_THAT(error_of_reading(3, store::save_checkpoint(folder.path(), whole).path),
             Contains("has 4 parameters, expected 5"));
}

TEST_CASE("of weights alone each rank holds its parts, and owners verify the whole tensors",
          "[train]") {
  const TempFolder folder;
  const auto whole = whole_state(1);
  const auto path = store::save_checkpoint(folder.path(), whole).path;
  const auto read = [&](dist::Communicator& ranks) {
    const NamedTensors mine = checkpoints_of(ranks, folder.path()).read_weights(folder.path());
    const auto expected = held_by(ranks.rank(), ranks.size(), whole).model;
    if (!store::test::same_bits(mine, expected)) throw Error(ErrorKind::kFailure, "other tensors");
  };
  for (const int world : {1, 2, 3, 5}) {
    for (const auto& error : errors_on(world, read)) CHECK(error == "");
  }
  const auto datasets = store::CheckpointReader(path).datasets();
  const auto tensor = std::ranges::find_if(
      datasets, [](const auto& dataset) { return dataset.path.starts_with("/model/"); });
  flip(path / "checkpoint.h5", tensor->offset + tensor->bytes - 1);
  for (const auto& error : errors_on(3, read)) CHECK_THAT(error, Contains(" is damaged"));
}

TEST_CASE("a rank without its state fails the save on all, and the next one works", "[train]") {
  const TempFolder folder;
  save_on(3, folder.path(), whole_state(1));
  const auto errors = errors_on(3, [&](dist::Communicator& ranks) {
    store::CheckpointSnapshot snapshot{held_by(ranks.rank(), 3, whole_state(2)), nullptr};
    if (ranks.rank() == 2) snapshot.missing = std::make_exception_ptr(std::bad_alloc());
    checkpoints_of(ranks, folder.path()).save(snapshot, {});
  });
  for (const auto& error : errors) CHECK(error == "rank 2: std::bad_alloc");
  check_nothing_left(folder.path());
  CHECK(reads(2, save_on(3, folder.path(), whole_state(2)).path, whole_state(2)));
}

TEST_CASE("a step that is there already is refused by all, as by one process", "[train]") {
  const TempFolder folder;
  save_on(2, folder.path(), whole_state(1));
  const auto errors = errors_on(2, [&](dist::Communicator& ranks) {
    checkpoints_of(ranks, folder.path())
        .save({held_by(ranks.rank(), 2, whole_state(1, 5)), nullptr}, {});
  });
  for (const auto& error : errors)
    CHECK_THAT(error, Contains("step1: exists already; it is replaced only with save_overwrite"));
  CHECK(reads(2, folder / "step1", whole_state(1)));
}

TEST_CASE("whatever call of a save by ranks fails, all refuse it alike or it is whole", "[train]") {
  if (!test::FaultShim().loaded()) return test::repeat_with_fault_shim();
  const test::FaultShim shim;
  const auto whole = whole_state(2);
  for (const int fault : {EIO, ENOSPC}) {
    for (long n = 1;; n += 3) {
      const TempFolder folder;
      save_on(3, folder.path(), whole_state(1));
      shim.arm(folder.path().c_str(), "", n, fault, 0);
      const auto errors = errors_on(3, [&](dist::Communicator& ranks) {
        checkpoints_of(ranks, folder.path()).save({held_by(ranks.rank(), 3, whole), nullptr}, {});
      });
      const bool past_the_end = shim.disarm() < n;
      INFO("call " << n << ", fault " << fault << ": " << errors.front());
      for (const auto& error : errors) REQUIRE(error == errors.front());
      REQUIRE(reads(2, folder / "step1", whole_state(1)));
      if (errors.front().empty()) REQUIRE(reads(2, folder / "step2", whole));
      if (fs::exists(folder / "step2")) REQUIRE(reads(2, folder / "step2", whole));
      save_on(2, folder.path(), whole_state(3));
      check_nothing_left(folder.path());
      if (past_the_end) {
        CHECK(errors.front().empty());
        break;
      }
    }
  }
}

TEST_CASE("a rank that dies at any moment of a save leaves the last checkpoint whole", "[train]") {
  const auto whole = whole_state(2);
  for (const int dying : {0, 1}) {
    int died = 0;
    for (int moment = 1;; ++moment) {
      INFO("rank " << dying << " dies at collective " << moment);
      const TempFolder folder;
      save_on(3, folder.path(), whole_state(1));
      const auto save = [&] {
        dist::run_ranks(3, [&](dist::Communicator& ranks) {
          auto own = ranks.split(0);
          if (ranks.rank() == dying) own = std::make_unique<dist::Dying>(std::move(own), moment);
          RankCheckpoints(std::move(own), folder.path(), parts_of(ranks.rank(), 3))
              .save({held_by(ranks.rank(), 3, whole), nullptr}, {});
        });
      };
      bool failed = false;
      try {
        save();
      } catch (const Error& error) {
        failed = true;
        CHECK_THAT(error.what(), Contains("killed"));
      }
      REQUIRE(reads(2, folder / "step1", whole_state(1)));
      if (fs::exists(folder / "step2")) REQUIRE(reads(2, folder / "step2", whole));
      save_on(2, folder.path(), whole_state(3));
      check_nothing_left(folder.path());
      if (!failed) break;
      ++died;
    }
    CHECK(died > 10);
  }
}

TEST_CASE("a disk that is full fails the save on all ranks", "[train]") {
  const TempFolder folder;
  const int code = test::with_small_disk(folder.path(), "size=2m", [&] {
    save_on(2, folder / "run", whole_state(1));  // 0.6 MB
    std::ofstream(folder / "filler") << std::string(1'200'000, 'x');
    const auto errors = errors_on(2, [&](dist::Communicator& ranks) {
      checkpoints_of(ranks, folder / "run")
          .save({held_by(ranks.rank(), 2, whole_state(2)), nullptr}, {});
    });
    if (errors[0] != errors[1] || errors[0].find("the disk cannot hold") == std::string::npos)
      return 10;
    if (fs::exists(folder / "run" / "step2-tmp")) return 11;
    return reads(2, folder / "run" / "step1", whole_state(1)) ? 0 : 12;
  });
  if (code == test::kNotPermitted) {
    WARN("a private mount is not permitted here");
    return;
  }
  CHECK(code == 0);
}

TEST_CASE("ranks train on while a save is under way", "[train]") {
  // The save's thread of rank 1 is held until all ranks have met three times more: if the
  // training's collectives waited for the save's, nobody would come on.
  const TempFolder folder;
  const auto whole = whole_state(4);
  std::mutex mutex;
  std::condition_variable changed;
  int steps = 0;
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    auto checkpoints = checkpoints_of(ranks, folder.path());
    auto mine = held_by(ranks.rank(), 3, whole);
    store::CheckpointWriter writer(
        [&](const store::CheckpointSnapshot& snapshot, const store::SaveOptions& options) {
          if (ranks.rank() == 1) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return steps == 3; });
          }
          return checkpoints.save(snapshot, options);
        });
    writer.save_async(mine);
    for (int step = 1; step <= 3; ++step) {
      for (const auto& [name, tensor] : mine.model) tensor.zero_();  // what a step does
      ranks.barrier();
      OLMO_CHECK(ranks.rank() != 1 || !writer.finished());
      const std::lock_guard lock(mutex);
      steps = step;
      changed.notify_all();
    }
    OLMO_CHECK(writer.wait()->step == 4);
  });
  CHECK(reads(2, folder / "step4", whole));
}

TEST_CASE("ranks that do not share the run folder are refused at the start", "[train]") {
  const TempFolder folder;
  fs::create_directory(folder / "a");
  fs::create_directory(folder / "b");
  const auto errors = errors_on(3, [&](dist::Communicator& ranks) {
    require_shared_folder(ranks, folder / (ranks.rank() == 2 ? "b" : "a"));
  });
  for (const auto& error : errors) {
    CHECK_THAT(error, Contains("rank 2: " + (folder / "b").string()));
    CHECK_THAT(error, Contains("must lie on a file system that they share"));
  }
  CHECK(errors_on(3, [&](dist::Communicator& ranks) {
          require_shared_folder(ranks, folder / "a");
        }) == std::vector<std::string>(3));
  CHECK(fs::is_empty(folder / "a"));
}

}  // namespace
}  // namespace olmo::train
