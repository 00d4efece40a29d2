#include "core/files/output_file.h"

#include <fstream>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/small_disk.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

void write(const fs::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.append(bytes);
  file.publish();
}

ErrorKind kind_of_refusal(const fs::path& path) {
  try {
    write(path, "x");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).starts_with(path.string() + ": "));
    return error.kind();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace

TEST_CASE("an output file has its name only when it is published", "[core]") {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "old");
  {
    OutputFile file(folder / "a");
    file.append(std::string(3 << 20, 'x'));
    file.append("y");
    CHECK(read_file(folder / "a") == "old");
    file.publish();
  }
  CHECK(read_file(folder / "a") == std::string(3 << 20, 'x') + "y");
  CHECK(names_in(folder.path()) == std::set<std::string>{"a"});
}

TEST_CASE("an output file that is not published leaves nothing behind", "[core]") {
  const TemporaryDirectory folder;
  write_file_atomically(folder / "a", "old");
  {
    OutputFile file(folder / "a");
    file.append("new");
    file.finish();
  }
  CHECK(read_file(folder / "a") == "old");
  CHECK(names_in(folder.path()) == std::set<std::string>{"a"});
}

TEST_CASE("an output file's temporary name is another one each time, whatever the name", "[core]") {
  const TemporaryDirectory folder;
  const std::string longest(255, 'n');
  {
    OutputFile first(folder / "a"), second(folder / "a"), third(folder / longest);
    CHECK(names_in(folder.path()).size() == 3);
    third.publish();
  }
  CHECK(names_in(folder.path()) == std::set<std::string>{longest});
}

TEST_CASE("an output file keeps the permissions of the file that it replaces", "[core]") {
  const TemporaryDirectory folder;
  const mode_t before = ::umask(027);
  write(folder / "new", "x");
  write(folder / "kept", "x");
  for (const mode_t mode : {0600U, 0666U, 0444U}) {
    REQUIRE(::chmod((folder / "kept").c_str(), mode) == 0);
    write(folder / "kept", "y");
    CHECK(mode_of(folder / "kept") == mode);
  }
  ::umask(before);
  CHECK(mode_of(folder / "new") == 0640);
}

TEST_CASE("an output file follows a link and leaves it there", "[core]") {
  const TemporaryDirectory folder;
  fs::create_directory(folder / "real");
  write(folder / "real" / "file", "old");
  fs::create_symlink("real/file", folder / "link");
  fs::create_symlink("real/none", folder / "dangling");
  write(folder / "link", "new");
  write(folder / "dangling", "made");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real" / "file") == "new");
  CHECK(read_file(folder / "real" / "none") == "made");
  CHECK(names_in(folder / "real") == std::set<std::string>{"file", "none"});
}

TEST_CASE("devices, pipes and open descriptors are written straight to", "[core]") {
  const TemporaryDirectory folder;
  CHECK_NOTHROW(write("/dev/null", "x"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(kind_of_refusal("/dev/full") == ErrorKind::kFailure);

  const fs::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { std::getline(std::ifstream(pipe), read); });
  write(pipe, "through the pipe");
  reader.join();
  CHECK(read == "through the pipe");

  const int open = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(::write(open, "first ", 6) == 6);
  write("/dev/fd/" + std::to_string(open), "second");
  ::close(open);
  CHECK(read_file(folder / "log") == "first second");
  CHECK(kind_of_refusal("/dev/fd/" + std::to_string(open)) == ErrorKind::kFailure);
}

TEST_CASE("a place that cannot be written to is refused in a sentence", "[core]") {
  const TemporaryDirectory folder;
  write(folder / "file", "x");
  CHECK(kind_of_refusal(folder.path()) == ErrorKind::kUsage);
  CHECK(kind_of_refusal(folder / "absent" / "file") == ErrorKind::kUsage);
  CHECK(kind_of_refusal(folder / "file" / "below") == ErrorKind::kUsage);
  fs::create_symlink("circle", folder / "circle");
  CHECK(kind_of_refusal(folder / "circle" / "below") == ErrorKind::kUsage);
}

/// Whether a file, a folder and the folders on the way to one end in an error of this kind.
bool all_refused(const fs::path& place, ErrorKind expected) {
  const auto refused = [&](const auto& write_there) {
    try {
      write_there();
    } catch (const Error& error) {
      return error.kind() == expected;
    }
    return false;
  };
  return refused([&] { write(place / "file", "x"); }) &&
         refused([&] { const OutputFolder made(place / "folder"); }) &&
         refused([&] { const OutputFolder made(place / "above" / "folder"); }) &&
         refused([&] { make_folders(place / "above" / "folder"); });
}

TEST_CASE("a read-only disk is another place to name, a full one is a failure", "[core]") {
  CHECK(all_refused("/dev/null", ErrorKind::kUsage));
  const TemporaryDirectory folder;
  // Three inodes, of which the disk's own folder has one.
  const int code = test::with_small_disk(folder.path(), "nr_inodes=3", [&] {
    std::ofstream(folder / "first").close();
    std::ofstream(folder / "second").close();
    if (!all_refused(folder.path(), ErrorKind::kFailure)) return 20;
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return 21;
    return all_refused(folder.path(), ErrorKind::kUsage) ? 0 : 22;
  });
  if (code == test::kNotPermitted) {
    WARN("a private mount is not permitted here");
    return;
  }
  CHECK(code == 0);
}

TEST_CASE("an output folder has its name only when it is published", "[core]") {
  const TemporaryDirectory folder;
  fs::create_directory(folder / "old");
  CHECK_THROWS_AS(OutputFolder(folder / "old"), Error);
  { const OutputFolder dropped(folder / "a"); }
  CHECK(names_in(folder.path()) == std::set<std::string>{"old"});
  OutputFolder kept(folder / "below" / "b/");
  write(kept.path() / "file", "x");
  CHECK_FALSE(fs::exists(folder / "below" / "b"));
  kept.publish();
  CHECK(names_in(folder / "below") == std::set<std::string>{"b"});
  OutputFolder(folder / "below" / "b", OutputFolder::Existing::kReplaced).publish();
  CHECK(names_in(folder / "below" / "b").empty());
}

}  // namespace olmo

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

TEST_CASE("folders made for an output that is not published are removed, if they are empty",
          "[core]") {
  const TemporaryDirectory folder;
  const fs::path above = folder / "a", target = above / "b" / "out";
  { const OutputFolder output(target); }
  CHECK_FALSE(fs::exists(above));
  {
    const OutputFolder output(target);
    write(above / "of another", "");
  }
  CHECK(fs::exists(above / "of another"));
  CHECK_FALSE(fs::exists(above / "b"));
  OutputFolder output(target);
  output.publish();
  CHECK(fs::is_directory(target));
}

TEST_CASE("a folder that cannot be made is one error that names it", "[core]") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "file") << "in the way";
  CHECK_THROWS_WITH(make_folders(folder / "file"), Catch::Matchers::Contains("in the way"));
  CHECK_THROWS_AS(make_folders(folder / "file" / "below"), Error);
  CHECK_THROWS_AS(make_folders("/proc/none"), Error);
}

}  // namespace olmo::test
