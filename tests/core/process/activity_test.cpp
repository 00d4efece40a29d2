#include "core/process/activity.h"

#include <string>

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include "core/process/terminal.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/happens.h"

namespace olmo {
namespace {

using namespace std::chrono_literals;

/// stderr, caught in a pipe or behind a terminal of 40 columns.
class CaughtStderr {
 public:
  explicit CaughtStderr(bool terminal) {
    int ends[2];
    if (terminal) {
      struct winsize size {};
      size.ws_col = 40;
      REQUIRE(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size) == 0);
    } else {
      REQUIRE(::pipe(ends) == 0);
    }
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    read_ = ends[0];
    before_ = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  ~CaughtStderr() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(read_);
  }
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  /// All that was written so far.
  const std::string& text() {
    char buffer[4096];
    for (ssize_t got; (got = ::read(read_, buffer, sizeof buffer)) > 0;)
      text_.append(buffer, static_cast<std::size_t>(got));
    return text_;
  }
  bool comes(const std::string& part) {
    return test::happens([&] { return text().find(part) != std::string::npos; });
  }

 private:
  int read_ = -1, before_ = -1;
  std::string text_;
};

}  // namespace

TEST_CASE("what goes on is said once it lasts, as a plain line in a pipe", "[core]") {
  CaughtStderr caught(false);
  Activity activity(true, 1ms);
  activity.now("reading token files");
  CHECK(caught.comes("reading token files ...\n"));
  activity.now("drawing the weights");
  CHECK(caught.comes("drawing the weights ...\n"));
  activity.done();
  CHECK(caught.text().find('\x1b') == std::string::npos);
}

TEST_CASE("what goes on stands on one line of a terminal, and goes away with its end", "[core]") {
  const test::Environment kind("TERM", "xterm");
  CaughtStderr caught(true);
  {
    Activity activity(true, 1ms);
    activity.now("reading a file whose name is much longer than the terminal is wide");
    CHECK(caught.comes("reading a file whose name is mu… ... "));  // a few seconds
  }
  CHECK(caught.text().ends_with("\r\x1b[K"));
  CHECK(caught.text().find('\n') == std::string::npos);
}

TEST_CASE("a terminal that knows only characters gets plain lines", "[core]") {
  const test::Environment kind("TERM", "dumb");
  CaughtStderr caught(true);
  Activity activity(true, 1ms);
  activity.now("reading token files");
  CHECK(caught.comes("reading token files ...\r\n"));
  log_line("done");
  CHECK(caught.comes("done\r\n"));
  CHECK(caught.text().find('\x1b') == std::string::npos);
}

TEST_CASE("what ends soon, and what is not to be shown, is never said", "[core]") {
  CaughtStderr caught(false);
  {
    Activity brief(true, 1h), hidden(false, 0ms);
    brief.now("reading");
    hidden.now("hashing");
    brief.done();
  }
  CHECK(caught.text().empty());
  CHECK(during("adding", [] { return 1 + 1; }) == 2);
}

}  // namespace olmo
