#include "core/input_file.h"

#include <array>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

std::string refusal(const std::filesystem::path& path, InputFile::Pipes pipes) {
  try {
    InputFile file(path, pipes);
    std::array<char, 8> some{};
    file.read(some);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is no regular file is refused as an input, and nothing waits for it", "[core]") {
  const test::TemporaryDirectory folder;
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto pipes : {InputFile::Pipes::kRefused, InputFile::Pipes::kRead}) {
    CHECK_THAT(refusal(folder.path(), pipes), Catch::Matchers::Contains("but a folder"));
    CHECK_THAT(refusal("/dev/zero", pipes), Catch::Matchers::Contains("but a device"));
    CHECK_THAT(refusal(folder / "absent", pipes), Catch::Matchers::Contains("No such file"));
  }
  CHECK_THAT(refusal(pipe, InputFile::Pipes::kRefused), Catch::Matchers::Contains("but a pipe"));
  CHECK_THAT(refusal(pipe, InputFile::Pipes::kRead),
             Catch::Matchers::Contains("no program writes to"));
  CHECK_THROWS_AS(read_file(pipe), Error);
  CHECK_THROWS_AS(MappedFile(pipe), Error);
  CHECK_THROWS_AS(sha256_file(pipe), Error);
}

TEST_CASE("a pipe is read to its end where that is allowed", "[core]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(::write(ends[1], "abc", 3) == 3);
  ::close(ends[1]);
  InputFile file("/dev/fd/" + std::to_string(ends[0]), InputFile::Pipes::kRead);
  std::array<char, 2> some{};
  CHECK((file.read(some) == 2 && some == std::array<char, 2>{'a', 'b'}));
  CHECK((file.read(some) == 1 && some[0] == 'c'));
  CHECK(file.read(some) == 0);
  ::close(ends[0]);
}

}  // namespace olmo
