#include "core/libraries/loader_cache.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the system's list of libraries has the C library, which every program runs on",
          "[core]") {
  if (!fs::exists("/etc/ld.so.cache")) return;
  const auto found = cached_libraries("libc.so.6");
  REQUIRE_FALSE(found.empty());  // more than one where there are kinds of it for other processors
  for (const fs::path& each : found) CHECK(fs::exists(each));
  CHECK(cached_libraries("libolmo_absent.so").empty());
}

TEST_CASE("a list of libraries that is cut anywhere, is none or is not there has no library beyond",
          "[core]") {
  const test::TemporaryDirectory folder;
  CHECK(cached_libraries("libc.so.6", folder / "none").empty());
  std::ofstream(folder / "text") << "no list of libraries";
  CHECK(cached_libraries("libc.so.6", folder / "text").empty());
  if (!fs::exists("/etc/ld.so.cache")) return;
  const std::string whole = read_file("/etc/ld.so.cache");
  const auto files = cached_libraries("libc.so.6");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 997) {
    std::ofstream(folder / "cut", std::ios::binary) << whole.substr(0, bytes);
    for (const auto& found : cached_libraries("libc.so.6", folder / "cut")) {
      CHECK(std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
        return file.string().starts_with(found.string());
      }));
    }
  }
}

}  // namespace
}  // namespace olmo
