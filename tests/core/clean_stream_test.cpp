#include "core/clean_stream.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "core/files.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

/// What reaches the descriptor of these pieces, with a flush after each.
std::string written(const std::vector<std::string>& pieces) {
  const test::TemporaryDirectory folder;
  const int file = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  std::ostringstream stream;
  {
    CleanStream clean(stream, file);
    for (const auto& piece : pieces) stream << piece << std::flush;
    CHECK(clean.finish() == 0);
  }
  CHECK(stream.str().empty());
  ::close(file);
  return read_file(folder / "out");
}

int error_of(const char* path, std::size_t bytes) {
  const int file = ::open(path, O_WRONLY);
  std::ostringstream stream;
  CleanStream clean(stream, file);
  stream << std::string(bytes, 'x');
  const int error = clean.finish();
  ::close(file);
  return error;
}

}  // namespace

TEST_CASE("an output stream is cleaned, also where a character comes in two pieces", "[core]") {
  CHECK(written({"a\x1b[31m", "b\xE2\x80", "\xAE", "c\xC3", "\xA9 \xff d\xC3"}) ==
        "a\uFFFD[31mb\uFFFDcé \uFFFD d\uFFFD");
  CHECK(written({std::string(200000, 'x') + "\n"}) == std::string(200000, 'x') + "\n");
}

TEST_CASE("in JSON what is hidden becomes an escape, so that nothing is lost", "[core]") {
  CHECK(written({"{\"a\": \"\xE2\x80\xAE", "é\x7f\U000E0041\"}\n"}) ==
        "{\"a\": \"\\u202eé\\u007f\\udb40\\udc41\"}\n");
}

TEST_CASE("an output that cannot be written is told, however little it is", "[core]") {
  CHECK(error_of("/dev/null", 10) == 0);
  CHECK(error_of("/dev/full", 0) == 0);
  CHECK(error_of("/dev/full", 1) == ENOSPC);
  CHECK(error_of("/dev/full", 1 << 20) == ENOSPC);
  CHECK(error_of("/nowhere", 1) == EBADF);
}

}  // namespace olmo
