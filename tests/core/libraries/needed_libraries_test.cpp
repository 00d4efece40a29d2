#include "core/libraries/needed_libraries.h"

#include <fstream>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("every library that is missing is found, also where another one needs it", "[core]") {
  CHECK(missing_libraries(OLMO_FAKE_INCOMPLETE "/libtorch_cuda.so") ==
        Names{"libolmo_absent_a.so", "libolmo_absent_b.so"});
}

TEST_CASE("a library that is whole, a file that is none and no file at all miss nothing",
          "[core]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "text.so") << "no library";
  CHECK(missing_libraries(OLMO_FAKE_CUDA "/libcuda.so.1").empty());
  CHECK(missing_libraries(folder / "text.so").empty());
  CHECK(missing_libraries(folder / "none.so").empty());
}

}  // namespace
}  // namespace olmo
