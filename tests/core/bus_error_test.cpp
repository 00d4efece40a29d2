#include "core/bus_error.h"

#include <array>
#include <fstream>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

fs::path write_pages(const TemporaryDirectory& folder) {
  const fs::path path = folder / "mapped";
  std::ofstream(path) << std::string(40960, 'x');
  return path;
}

}  // namespace

TEST_CASE("a copy out of a file that was cut meanwhile is an error that names it", "[core]") {
  const TemporaryDirectory folder;
  const MappedFile file(write_pages(folder));
  std::vector<std::byte> bytes(8192);
  copy_mapped(file, 4096, bytes);
  CHECK(bytes.back() == std::byte{'x'});
  fs::resize_file(file.path(), 8192);
  for (int again = 0; again < 3; ++again) {
    try {
      copy_mapped(file, 4096, bytes);
      FAIL("no error was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      CHECK_THAT(error.what(),
                 Catch::Matchers::Contains(file.path().string() + ": a part of bytes 4096"));
    }
  }
  copy_mapped(file, 0, bytes);  // what is still there
}

TEST_CASE("any other look at a part that was cut off ends the process with a sentence", "[core]") {
  const TemporaryDirectory folder;
  const MappedFile file(write_pages(folder));
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    fs::resize_file(file.path(), 8192);
    ::_exit(std::to_integer<int>(file.bytes()[20000]));
  }
  ::close(pipe[1]);
  std::string said;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(pipe[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<std::size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(ErrorKind::kInput));
  CHECK_THAT(
      said, Catch::Matchers::Contains(file.path().string() + ": byte 20000 can no longer be read"));
}

}  // namespace olmo::test
