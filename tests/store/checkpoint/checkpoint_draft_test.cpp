#include "store/checkpoint/checkpoint_draft.h"

#include <thread>

#include "core/compute/named_tensors.h"
#include "store/checkpoint/raw_file.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {
namespace {

/// All tensors, in the order of a draft.
NamedTensors tensors_of(const CheckpointContents& contents) {
  NamedTensors all = contents.model;
  all.insert(all.end(), contents.optim.begin(), contents.optim.end());
  return all;
}

}  // namespace

TEST_CASE(
    "a checkpoint whose tensors several writers wrote is the file that one would have written",
    "[store]") {
  const TempFolder folder;
  const auto contents = example();
  const auto whole = save_checkpoint(folder / "one", contents);
  CheckpointDraft draft(folder / "many", outline_of(contents), {});
  const auto tensors = tensors_of(contents);
  std::vector<Digest> digests(tensors.size());
  {
    std::vector<std::jthread> writers;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      writers.emplace_back([&, i] {
        const RawWriter file(draft.file());
        const auto bytes = host_bytes(tensors[i].tensor);
        const auto half = bytes.size() / 2 / kPage * kPage;
        file.write(draft.tensors()[i].offset, bytes.first(half));
        file.write(draft.tensors()[i].offset + half, bytes.subspan(half));
        file.sync();
        digests[i] = sha256(bytes);
      });
    }
  }
  const auto saved = draft.publish(digests);
  CHECK(difference_of(whole.path, saved.path) == "");
  CHECK(saved.tensors == whole.tensors);
  CHECK(saved.bytes == whole.bytes);
  CHECK(same(read_checkpoint(saved.path), contents));
}

TEST_CASE("a draft that is not published leaves nothing", "[store]") {
  const TempFolder folder;
  save_checkpoint(folder.path(), example(1));
  {
    const CheckpointDraft draft(folder.path(), outline_of(example(2)), {});
    CHECK(std::filesystem::exists(draft.file()));
  }
  CHECK_FALSE(std::filesystem::exists(folder / "step2-tmp"));
  CHECK_FALSE(std::filesystem::exists(folder / "step2"));
  CHECK(same(read_checkpoint(folder / "step1"), example(1)));
}

TEST_CASE("only the last page of a large tensor is shared with others in the file", "[store]") {
  const TempFolder folder;
  const CheckpointDraft draft(folder.path(), outline_of(example(1, 1, 4001)), {});
  for (const auto& tensor : draft.tensors()) {
    INFO(tensor.path);
    CHECK((tensor.bytes < kPage || tensor.offset % kPage == 0));
  }
}

}  // namespace olmo::store::test
