#include <fstream>

#include "core/error.h"
#include "core/output_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {

TEST_CASE("every missing level of a folder is made, and one that is there is left alone",
          "[core]") {
  const TemporaryDirectory folder;
  const auto deep = folder / "a" / "b" / "c";
  CHECK(make_folders(deep));
  CHECK(std::filesystem::is_directory(deep));
  std::ofstream(deep / "file") << "mine";
  CHECK_FALSE(make_folders(deep / ""));
  make_folders(".");
  CHECK(std::filesystem::exists(deep / "file"));
}

TEST_CASE("a folder that cannot be made is one error that names it", "[core]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "file") << "in the way";
  CHECK_THROWS_WITH(make_folders(folder / "file"), Catch::Matchers::Contains("in the way"));
  CHECK_THROWS_AS(make_folders(folder / "file" / "below"), Error);
  CHECK_THROWS_AS(make_folders("/proc/none"), Error);
}

}  // namespace olmo::test
