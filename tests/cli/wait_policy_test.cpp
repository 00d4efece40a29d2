// How long the program's OpenMP threads spin while they wait, as the library itself says.
#include <string>

#include "support/catch.h"
#include "support/process.h"
#include "support/says.h"

namespace olmo::test {
namespace {

/// What libgomp says of its settings, with these
/// variables and none of the test's own.
std::string openmp_settings(const std::string& variables) {
  return run("env -u GOMP_SPINCOUNT -u KMP_BLOCKTIME -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " +
             variables + " " OLMO_BINARY " --version 2>&1")
      .output;
}

}  // namespace

TEST_CASE("threads that wait spin briefly, whoever starts the program", "[cli]") {
  const auto settings = openmp_settings("");
  INFO(settings);
  CHECK(says(settings, "GOMP_SPINCOUNT = '1000'"));
  CHECK(says(settings, "olmo-harness "));
}

TEST_CASE("a wait policy that the user has set is kept", "[cli]") {
  CHECK(says(openmp_settings("GOMP_SPINCOUNT=77"), "GOMP_SPINCOUNT = '77'"));
  CHECK(says(openmp_settings("OMP_WAIT_POLICY=passive"), "GOMP_SPINCOUNT = '0'"));
}

}  // namespace olmo::test
