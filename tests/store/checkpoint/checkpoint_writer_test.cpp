#include <fstream>

#include "core/error.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {

TEST_CASE(
    "a background save holds the state of its moment, whatever happens to the tensors afterwards",
    "[store]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path());
  auto contents = example(1, 1, 20000);
  CHECK(!writer.save_async(contents));
  for (const auto& entry : contents.model) entry.tensor.zero_();
  for (const auto& entry : contents.optim) entry.tensor.zero_();
  (*contents.trainer)["step"] = 2;
  const auto saved = writer.wait();
  REQUIRE(saved);
  CHECK(same(read_checkpoint(saved->path), example(1, 1, 20000)));
  CHECK(saved->stall_seconds > 0);
  CHECK(!writer.wait());
}

TEST_CASE("a background save equals a direct one", "[store]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path() / "a");
  writer.save_async(example(3, 4));
  CHECK(writer.wait()->tensors == save_checkpoint(folder.path() / "b", example(3, 4)).tensors);
}

TEST_CASE("a second save waits for the first and hands over its result", "[store]") {
  const TempFolder folder;
  CheckpointWriter writer(folder.path());
  CHECK(!writer.save_async(example(1, 1)));
  const auto first = writer.save_async(example(2, 2, 5000));  // larger: the memory grows
  REQUIRE(first);
  CHECK(first->step == 1);
  CHECK(writer.wait()->step == 2);
  CHECK(same(read_checkpoint(folder.path() / "step1"), example(1, 1)));
  CHECK(same(read_checkpoint(folder.path() / "step2"), example(2, 2, 5000)));
}

TEST_CASE("an error of the background is thrown once, and the next save works", "[store]") {
  const TempFolder folder;
  const auto run_dir = folder.path() / "run";
  std::ofstream(run_dir) << "a file in the way";
  CheckpointWriter writer(run_dir);
  writer.save_async(example(1));
  CHECK_THROWS_AS(writer.wait(), Error);
  CHECK(!writer.wait());
  std::filesystem::remove(run_dir);
  writer.save_async(example(2));
  CHECK(writer.wait()->step == 2);
}

TEST_CASE("a writer that goes away finishes its save", "[store]") {
  const TempFolder folder;
  { CheckpointWriter(folder.path()).save_async(example(1)); }
  CHECK(same(read_checkpoint(folder.path() / "step1"), example(1)));
}

}  // namespace olmo::store::test
