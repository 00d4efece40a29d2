#include "core/process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo {

TEST_CASE("a program is looked for in the absolute folders of PATH alone", "[core]") {
  const test::TemporaryDirectory folder;
  const std::string there = folder.path().string();
  const auto program = (folder / "tool").string();
  std::ofstream(program) << "#!/bin/sh\n";
  const auto relative = std::filesystem::relative(folder.path()).string();
  {
    const test::Environment path("PATH", relative + "::.:" + there);
    CHECK_FALSE(find_program("tool"));  // not executable
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    CHECK(find_program("tool") == program);
  }
  const test::Environment path("PATH", relative + "::.");
  CHECK_FALSE(find_program("tool"));
  CHECK(find_program("./tool") == "./tool");
}

}  // namespace olmo
