#include "store/checkpoint/structure_image.h"

#include "store/checkpoint/checkpoint_layout.h"
#include "store/checkpoint_fixture.h"
#include "support/catch.h"

namespace olmo::store::test {

TEST_CASE("an image gives back what was written across pages, and zeros elsewhere", "[store]") {
  StructureImage image;
  const std::vector<std::byte> bytes(5000, std::byte{7});
  image.write((std::uint64_t{1} << 40) - 100, bytes);
  CHECK(image.size() == (std::uint64_t{1} << 40) + 4900);
  std::vector<std::byte> read(5200, std::byte{1});
  image.read((std::uint64_t{1} << 40) - 200, read);
  CHECK(std::count(read.begin(), read.begin() + 100, std::byte{0}) == 100);
  CHECK(std::count(read.begin() + 100, read.begin() + 5100, std::byte{7}) == 5000);
  CHECK(std::count(read.begin() + 5100, read.end(), std::byte{0}) == 100);
}

TEST_CASE("a file of terabytes is laid out and sealed in memory, and no file is made", "[store]") {
  auto outline = outline_of(example());
  outline.model[0].shape = {std::int64_t{1} << 40};
  FilePlan plan = plan_file(outline);
  StructureImage image;
  lay_out_file(image, {{"step", 100}}, outline, plan);
  seal_file(image, plan.datasets);
  CHECK(image.size() > std::uint64_t{4} << 40);
  CHECK_FALSE(std::filesystem::exists("checkpoint.h5"));
}

}  // namespace olmo::store::test
