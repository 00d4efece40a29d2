#include "core/text/safe_text.h"

#include <cerrno>
#include <sstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/files/input_file.h"
#include "core/files/json.h"
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

namespace {
constexpr char kBad[] = "\xEF\xBF\xBD";
}

TEST_CASE("text that is shown has no commands, no hidden signs, and is UTF-8", "[core]") {
  CHECK(safe_text("plain, é 日本 ✓ −1\n\t") == "plain, é 日本 ✓ −1\n\t");
  for (const std::string hidden : {"\x1b", "\r", "\x7f", "\xC2\x9B", "\u202E", "\u2066", "\u200B",
                                   "\u200D", "\uFEFF", "\u2028", "\U000E0041"}) {
    INFO(hidden.size());
    CHECK(safe_text("a" + hidden + "b") == std::string("a") + kBad + "b");
    CHECK(html_text("a" + hidden + "b") == std::string("a") + kBad + "b");
    CHECK(markdown_text("a" + hidden + "b") == std::string("a") + kBad + "b");
  }
  for (const std::string bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe6\x97"})
    CHECK(safe_text(bytes).find_first_of(bytes) == std::string::npos);
  CHECK(safe_line("a\nb\tc") == "a b c");
}

TEST_CASE("no cell of CSV is a formula, and numbers stay numbers", "[core]") {
  for (const std::string formula :
       {"=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "-1+2"})
    CHECK(csv_text(formula).find('\'') <= 1);
  CHECK(csv_text("=1+1,\"x\"") == "\"'=1+1,\"\"x\"\"\"");
  for (const std::string plain : {"-5", "+2.5e-3", "-0", "7", "a=b", "run-1", ""})
    CHECK(csv_text(plain) == plain);
  CHECK(csv_cell("a\nb") == "\"a\nb\"");
}

TEST_CASE("JSON is UTF-8, whatever a name holds", "[core]") {
  const nlohmann::json json = {{"name", "a\xff"}};
  CHECK(json_text(json) == std::string(R"({"name":"a)") + kBad + "\"}");
  CHECK(json_text(json, 1).starts_with("{\n \"name\""));
}

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
