#include "core/files/input_file.h"

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "support/catch.h"
#include "support/forked.h"
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

TEST_CASE("a path that cannot be looked at is not told to be absent", "[core]") {
  const test::TemporaryDirectory folder;
  const auto link = folder / "link";
  std::filesystem::create_symlink("link", link);
  std::ofstream(folder / "file") << "x";
  CHECK(is_there(folder / "file"));
  for (const auto& absent :
       {folder / "absent", folder / "file" / "in it", folder / std::string(300, 'x')})
    CHECK_FALSE(is_there(absent));
  for (const auto& path : {link, link / "in it"})
    CHECK_THROWS_WITH(is_there(path),
                      Catch::Matchers::Contains(path.string() + ": cannot be looked at: "));
}

TEST_CASE("a name with a zero byte is not that of the file before it", "[core]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "file") << "x";
  const auto path = folder / std::string("file\0", 5);
  CHECK_THAT(refusal(path, InputFile::Pipes::kRefused), Catch::Matchers::Contains("zero byte"));
  CHECK_THROWS_WITH(is_there(path), Catch::Matchers::Contains("zero byte"));
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

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

fs::path write_pages(const TemporaryDirectory& folder) {
  fs::path path = folder / "mapped";
  std::ofstream(path) << std::string(40960, 'x');
  return path;
}

}  // namespace

TEST_CASE("a copy out of a file that was cut meanwhile is an error that names it",
          "[core][not-sanitized]") {
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

TEST_CASE("a file that was cut within a page, of which the kernel shows zeros, is told as that",
          "[core]") {
  const TemporaryDirectory folder;
  const MappedFile file(write_pages(folder));
  const auto other_name = folder / "renamed";
  fs::rename(file.path(), other_name);
  std::ofstream(file.path()) << "another file";
  CHECK_NOTHROW(file.check_not_cut());
  fs::rename(other_name, file.path());
  CHECK_NOTHROW(file.check_not_cut());
  fs::resize_file(file.path(), 40900);
  std::vector<std::byte> bytes(4096);
  copy_mapped(file, 36864, bytes);
  CHECK(bytes.back() == std::byte{0});
  CHECK_THROWS_WITH(file.check_not_cut(), file.path().string() +
                                              ": the file was cut while it was in use, from 40960 "
                                              "bytes to 40900");
}

TEST_CASE("any other look at a part that was cut off ends the process with a sentence", "[core]") {
  const TemporaryDirectory folder;
  const MappedFile file(write_pages(folder));
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = fork_briefly();
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
