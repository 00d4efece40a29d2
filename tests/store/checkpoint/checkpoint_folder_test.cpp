#include "store/checkpoint/checkpoint_folder.h"

#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {
namespace {

namespace fs = std::filesystem;

fs::path save(const fs::path& run_dir, std::int64_t step, SaveOptions options = {},
              const std::string& run = "run") {
  CheckpointContents contents;
  contents.trainer = Json{{"step", step}, {"run_id", run}};
  contents.model = {{"w", patterned({3}, static_cast<std::uint32_t>(step))}};
  return save_checkpoint(run_dir, contents, options).path;
}

std::vector<std::int64_t> steps(const fs::path& run_dir) {
  std::vector<std::int64_t> found;
  for (const auto& entry : list_checkpoints(run_dir)) found.push_back(entry.step);
  return found;
}

using Steps = std::vector<std::int64_t>;

/// Alters what the manifest of `checkpoint` says, and its digest of itself with it.
void alter(const fs::path& checkpoint, const std::function<void(Json&)>& change) {
  const fs::path file = checkpoint / kManifestName;
  Manifest manifest = parse_manifest(read_file(file), file.string());
  change(*manifest.summary);
  write_file_atomically(file, to_text(manifest));
}

}  // namespace

TEST_CASE("latest points at the newest checkpoint, relatively", "[store]") {
  const TempFolder folder;
  save(folder.path(), 9);
  CHECK(fs::read_symlink(folder.path() / "latest") == "step9");
  save(folder.path(), 10);
  CHECK(fs::read_symlink(folder.path() / "latest") == "step10");
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step10");
  CHECK(resolve_checkpoint(folder.path() / "latest") == folder.path() / "step10");
  CHECK(resolve_checkpoint(folder.path() / "step9") == folder.path() / "step9");
}

TEST_CASE("an older latest yields to a later step of the same run written after it", "[store]") {
  const TempFolder folder;
  save(folder.path(), 1);
  save(folder.path(), 2);
  point_latest(folder.path(), "step1");  // as if the process had died before it moved the link
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step2");
}

TEST_CASE("after going back to an older step, latest is what was written last", "[store]") {
  const TempFolder folder;
  save(folder.path(), 100);
  save(folder.path(), 60);
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step60");
}

TEST_CASE("another run in the same folder does not displace latest", "[store]") {
  const TempFolder folder;
  save(folder.path(), 1);
  save(folder.path(), 2, {}, "another");
  point_latest(folder.path(), "step1");
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step1");
}

TEST_CASE("a damaged or missing target of latest is passed over", "[store]") {
  const TempFolder folder;
  save(folder.path(), 1);
  const auto newest = save(folder.path(), 2);
  fs::resize_file(newest / kDataFileName, 100);
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step1");
  fs::remove_all(newest);
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step1");
  fs::remove(folder.path() / "latest");
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step1");
}

TEST_CASE("a folder without a checkpoint, and a path that does not exist, are bad input",
          "[store]") {
  const TempFolder folder;
  CHECK_THROWS_AS(resolve_checkpoint(folder.path()), Error);
  CHECK_THROWS_AS(resolve_checkpoint(folder.path() / "nothing"), Error);
}

TEST_CASE("retention keeps the newest permanent checkpoints", "[store]") {
  const TempFolder folder;
  for (int step = 1; step <= 5; ++step) save(folder.path(), step);
  CHECK(apply_retention(folder.path(), -1).empty());
  CHECK(apply_retention(folder.path(), 0).empty());
  CHECK(steps(folder.path()) == Steps{1, 2, 3, 4, 5});
  const auto removed = apply_retention(folder.path(), 2);
  CHECK(steps(folder.path()) == Steps{4, 5});
  CHECK(removed.size() == 3);
  CHECK(removed[0] == folder.path() / "step1");
  CHECK(!fs::exists(folder.path() / "step1-trash"));
}

TEST_CASE("retention keeps the steps of the unsharded interval for good", "[store]") {
  const TempFolder folder;
  for (int step = 1; step <= 7; ++step) save(folder.path(), step);
  apply_retention(folder.path(), 1, 3);
  CHECK(steps(folder.path()) == Steps{3, 6, 7});
}

TEST_CASE("retention goes by age and never takes the target of latest", "[store]") {
  const TempFolder folder;
  for (const int step : {100, 200, 60}) save(folder.path(), step);
  apply_retention(folder.path(), 1);
  CHECK(steps(folder.path()) == Steps{60});
  for (const int step : {70, 80}) save(folder.path(), step);
  point_latest(folder.path(), "step60");
  apply_retention(folder.path(), 1);
  CHECK(steps(folder.path()) == Steps{60, 80});
}

TEST_CASE("a clock that was set back a day spoils neither retention nor the choice of the latest",
          "[store]") {
  const TempFolder folder;
  for (int step = 1; step <= 4; ++step) {
    alter(save(folder.path(), step), [&](Json& summary) {
      summary["created_utc"] = "2026-01-0" + std::to_string(9 - step) + "T00:00:00.000000Z";
    });
  }
  point_latest(folder.path(), "step3");  // as if the process had died before it moved the link
  CHECK(resolve_checkpoint(folder.path()) == folder.path() / "step4");
  point_latest(folder.path(), "step4");
  apply_retention(folder.path(), 2);
  CHECK(steps(folder.path()) == Steps{3, 4});
}

TEST_CASE("checkpoints of a program that did not count them are older than those of this one",
          "[store]") {
  const TempFolder folder;
  for (const int step : {2, 1, 3}) {
    alter(save(folder.path(), step), [&](Json& summary) {
      summary.erase("sequence");
      summary["created_utc"] = "2030-01-0" + std::to_string(step) + "T00:00:00.000000Z";
    });
  }
  save(folder.path(), 4);
  CHECK(steps(folder.path()) == Steps{1, 2, 3, 4});
}

TEST_CASE("an ephemeral checkpoint is kept no longer for its step's number", "[store]") {
  const TempFolder folder;
  save(folder.path(), 3, {.ephemeral = true});
  save(folder.path(), 4);
  apply_retention(folder.path(), 1, 3);
  CHECK(steps(folder.path()) == Steps{4});
}

TEST_CASE("a checkpoint whose file is longer than it was saved is none", "[store]") {
  const TempFolder folder;
  save(folder.path(), 1);
  const fs::path longer = save(folder.path(), 2) / kDataFileName;
  std::ofstream(longer, std::ios::app) << "more";
  CHECK(steps(folder.path()) == Steps{1});
}

TEST_CASE("one ephemeral checkpoint is kept, and none beside a newer permanent one", "[store]") {
  const TempFolder folder;
  save(folder.path(), 1);
  save(folder.path(), 2, {.ephemeral = true});
  save(folder.path(), 3, {.ephemeral = true});
  apply_retention(folder.path(), -1);
  CHECK(steps(folder.path()) == Steps{1, 3});
  save(folder.path(), 4);
  apply_retention(folder.path(), -1);
  CHECK(steps(folder.path()) == Steps{1, 4});
}

TEST_CASE("retention leaves alone what it did not write", "[store]") {
  const TempFolder folder;
  fs::create_directory(folder.path() / "step1");  // an OLMo checkpoint
  std::ofstream(folder.path() / "step1" / "model.pt") << "x";
  save(folder.path(), 2);
  std::ofstream(folder.path() / "step2" / "notes.txt") << "mine";
  for (int step = 3; step <= 5; ++step) save(folder.path(), step);
  apply_retention(folder.path(), 1);
  CHECK(fs::exists(folder.path() / "step1" / "model.pt"));
  CHECK(fs::exists(folder.path() / "step2" / "notes.txt"));
  CHECK(steps(folder.path()) == Steps{2, 5});
}

TEST_CASE("what crashed saves left is removed by the next one, foreign folders are not",
          "[store]") {
  const TempFolder folder;
  for (const char* name : {"step7-tmp", "step8-trash", "step9-tmp", "stepx-tmp"})
    fs::create_directory(folder.path() / name);
  std::ofstream(folder.path() / "step7-tmp" / kDataFileName) << "half";
  std::ofstream(folder.path() / "step9-tmp" / "model.pt") << "x";
  save(folder.path(), 10);
  CHECK(!fs::exists(folder.path() / "step7-tmp"));
  CHECK(!fs::exists(folder.path() / "step8-trash"));
  CHECK(fs::exists(folder.path() / "step9-tmp" / "model.pt"));
  CHECK(fs::exists(folder.path() / "stepx-tmp"));
}

TEST_CASE("a checkpoint that was moved aside and never replaced comes back", "[store]") {
  const TempFolder folder;
  const auto kept = save(folder.path(), 1);
  fs::rename(kept, folder.path() / "step1-trash");
  fs::copy(folder.path() / "step1-trash", folder.path() / "step2-trash");
  fs::remove(folder.path() / "step2-trash" / kManifestName);
  remove_stale(folder.path());
  CHECK(steps(folder.path()) == Steps{1});
  CHECK_FALSE(fs::exists(folder.path() / "step1-trash"));
  CHECK_FALSE(fs::exists(folder.path() / "step2-trash"));
  CHECK_FALSE(fs::exists(folder.path() / "step2"));
}

}  // namespace olmo::store::test
