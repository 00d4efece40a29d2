#include "store/checkpoint/raw_file.h"

#include <sys/resource.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {

TEST_CASE("ranges of every alignment arrive where they belong, each with its digest", "[store]") {
  const TempFolder folder;
  const auto path = folder.path() / "file";
  const at::Tensor source = patterned({6 << 20}, 11);  // 24 MB: more than one block
  const std::span all(static_cast<const std::byte*>(source.const_data_ptr()), source.nbytes());
  const std::vector<RawRange> ranges = {{0, all.subspan(0, 4096)},
                                        {4096, all.subspan(64, 18'000'001)},
                                        {18'100'000, all.subspan(3, 1)},
                                        {18'200'001, all.subspan(5, 999)},
                                        {18'202'624, {}},
                                        {20'480'000, all.subspan(4096, 3 << 20)}};
  reserve_space(path, 24 << 20);
  const RawWriteResult written = write_and_hash(path, ranges, 2);
  const std::string bytes = read_file(path);
  REQUIRE(bytes.size() == 24 << 20);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    INFO("range " << i);
    CHECK(written.digests[i] == sha256(ranges[i].bytes));
    const auto there =
        std::as_bytes(std::span(bytes)).subspan(ranges[i].offset, ranges[i].bytes.size());
    CHECK(std::equal(there.begin(), there.end(), ranges[i].bytes.begin()));
  }
}

TEST_CASE("an error of the disk while writing ends all threads and is reported", "[store]") {
  const at::Tensor source = patterned({1 << 20}, 12);
  const std::vector<RawRange> ranges = {
      {0, {static_cast<const std::byte*>(source.const_data_ptr()), source.nbytes()}}};
  CHECK_THROWS_AS(write_and_hash("/dev/full", ranges, 2), Error);
  CHECK_THROWS_AS(check_space("/", ~std::uint64_t{0} / 2), Error);
}

TEST_CASE("space that is short is told in the unit of its size", "[store]") {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{300'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &little);
  std::string said;
  try {
    check_space("/", 3'000'000);
  } catch (const Error& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(said == "/: needs a file of 3.0 MB, this process may write 300.0 kB (ulimit -f)");
}

}  // namespace olmo::store::test
