#include "store/foreign/flat_parameters.h"

#include <algorithm>
#include <fstream>

#include <ATen/ATen.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/read_entries.h"
#include "support/temporary_directory.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const fs::path kLocal = OLMO_TEST_DATA "/train/olmo_shards/local";

}  // namespace

TEST_CASE("the state of a rank lies where its parameters lie", "[store]") {
  const TensorFile parameters = open_flat_parameters(kLocal / "model/rank1.pt");
  const TensorFile state = open_flat_state(kLocal / "optim/rank1.pt", parameters);
  std::size_t moments = 0;
  for (const auto& entry : state.entries()) {
    if (!entry.shard_of) continue;  // a number
    ++moments;
    CHECK(std::ranges::any_of(parameters.entries(), [&](const auto& parameter) {
      return entry.name.starts_with("state/" + parameter.name + "/") &&
             entry.shard_of->begin == parameter.shard_of->begin && entry.shape == parameter.shape;
    }));
  }
  CHECK(moments == 2 * parameters.entries().size());
}

TEST_CASE("files of ranks that do not belong together are refused", "[store]") {
  const TensorFile parameters = open_flat_parameters(kLocal / "model/rank0.pt");
  CHECK_THROWS_WITH(
      open_flat_state(kLocal / "optim/rank2.pt", parameters),
      Contains("rank2.pt: state/") &&
          Contains("the rank's file of parameters does not have as many values of it"));
}

TEST_CASE("a file without flat parameters is refused by name", "[store]") {
  CHECK_THROWS_WITH(
      open_flat_parameters(kLocal / "optim/rank0.pt"),
      Contains("rank0.pt: holds no `modules`, as OLMo writes FSDP's flat parameters"));
}

TEST_CASE("a flipped value of a flat parameter is found", "[store]") {
  const test::TemporaryDirectory folder;
  const auto place = open_flat_parameters(kLocal / "model/rank0.pt").entries().front().offset;
  std::string bytes = read_file(kLocal / "model/rank0.pt");
  bytes[place] = static_cast<char>(bytes[place] ^ 1);
  std::ofstream(folder / "rank0.pt", std::ios::binary) << bytes;
  CHECK_THROWS_WITH(open_flat_parameters(folder / "rank0.pt"),
                    Contains("rank0.pt: tensor modules/") && Contains("checksum"));
}

TEST_CASE("random flips in a rank's file give its parameters or an error, never a crash",
          "[store]") {
  const test::TemporaryDirectory folder;
  test::Flips flips(read_file(kLocal / "model/rank0.pt"));
  int refused = 0;
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    std::ofstream(folder / "rank0.pt", std::ios::binary) << flips.next();
    try {
      test::read_entries(open_flat_parameters(folder / "rank0.pt"));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > kRounds / 3);
}

}  // namespace olmo::store
