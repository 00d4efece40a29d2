#include "core/libraries/loaded_libraries.h"

#include <algorithm>

#include "support/catch.h"

namespace olmo {

TEST_CASE("the name of a library's file tells its name and version", "[core]") {
  const auto plain = library_named("/usr/lib/libzip.so.4.0");
  CHECK(plain.name == "zip");
  CHECK(plain.version == "4.0");
  CHECK(library_named("/lib/libtorch_cpu.so").version.empty());
  CHECK(library_named("/lib/libyaml-cpp.so.0.7.0").name == "yaml-cpp");
}

TEST_CASE("a hash that a wheel put behind a library's name is left out", "[core]") {
  const auto library = library_named("/w/olmo_harness.libs/libhdf5_serial-1a2b3c4d.so.103.3.1");
  CHECK(library.name == "hdf5_serial");
  CHECK(library.version == "103.3.1");
}

TEST_CASE("the libraries that this process has loaded are found, LibTorch among them", "[core]") {
  const auto libraries = loaded_libraries();
  const auto torch = std::ranges::find(libraries, "torch_cpu", &LoadedLibrary::name);
  REQUIRE(torch != libraries.end());
  CHECK(std::filesystem::is_regular_file(torch->path));
}

}  // namespace olmo
