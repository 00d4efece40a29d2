#include "core/files/unfinished_output.h"

#include <csignal>
#include <functional>
#include <optional>

#include <sys/wait.h>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/process/process.h"
#include "support/catch.h"
#include "support/forked.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

/// The code by which the error of `body` ends a process of its own; 0: it has none.
int code_of(const std::function<void()>& body) {
  const pid_t child = fork_briefly();
  if (child == 0) {
    int code = 0;
    try {
      body();
    } catch (const Error& error) {
      code = static_cast<int>(error.kind());
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

bool is_empty(const TemporaryDirectory& folder) { return fs::is_empty(folder.path()); }

TEST_CASE("a signal while a file is written removes it and has the exit code of a stop", "[core]") {
  const TemporaryDirectory folder;
  const auto signalled = [&](int signal) {
    return code_of([&] {
      OutputFile file(folder / "out");
      file.append("half");
      std::raise(signal);
      file.publish();
    });
  };
  CHECK(signalled(SIGTERM) == static_cast<int>(ErrorKind::kStopped));
  CHECK(is_empty(folder));
  CHECK(signalled(SIGHUP) == static_cast<int>(ErrorKind::kStopped));
  CHECK(is_empty(folder));
  CHECK(signalled(SIGINT) == static_cast<int>(ErrorKind::kInterrupted));
  CHECK(is_empty(folder));
}

TEST_CASE("a signal while a folder is filled removes it", "[core]") {
  const TemporaryDirectory folder;
  CHECK(code_of([&] {
          OutputFolder output(folder / "out");
          write_file_atomically(output.path() / "a", "whole");
          std::raise(SIGINT);
          write_file_atomically(output.path() / "b", "whole");
          output.publish();
        }) == static_cast<int>(ErrorKind::kInterrupted));
  CHECK(is_empty(folder));
}

TEST_CASE("names that are being taken are all taken, and the next output is not begun", "[core]") {
  const TemporaryDirectory folder;
  CHECK(code_of([&] {
          {
            UnfinishedOutput both("both");
            both.take_names();
            std::raise(SIGTERM);
            write_file_atomically(folder / "a", "whole");
            write_file_atomically(folder / "b", "whole");
          }
          write_file_atomically(folder / "c", "whole");
        }) == static_cast<int>(ErrorKind::kStopped));
  CHECK(fs::exists(folder / "a"));
  CHECK(fs::exists(folder / "b"));
  CHECK_FALSE(fs::exists(folder / "c"));
}

TEST_CASE("where a training notes signals, its files are written to the end", "[core]") {
  const TemporaryDirectory folder;
  CHECK(code_of([&] {
          const StopSignals signals;
          std::raise(SIGTERM);
          write_file_atomically(folder / "a", "whole");
          if (signals.requested() != StopRequest::kStop) throw Error(ErrorKind::kFailure, "lost");
        }) == 0);
  CHECK(fs::exists(folder / "a"));
}

TEST_CASE("signals act as usual once a file is written", "[core]") {
  const TemporaryDirectory folder;
  CHECK(code_of([&] {
          write_file_atomically(folder / "a", "whole");
          std::raise(SIGTERM);
        }) == 256 + SIGTERM);
}

TEST_CASE("an error of a stop names the output that was asked for", "[core]") {
  const TemporaryDirectory folder;
  CHECK(code_of([&] {
          const UnfinishedOutput output("all of it");
          OutputFile file(folder / "part");
          std::raise(SIGTERM);
          try {
            file.publish();
          } catch (const Error& error) {
            if (std::string(error.what()) == "stopped by SIGTERM; all of it was not written")
              return;
          }
          throw Error(ErrorKind::kFailure, "another error, or none");
        }) == 0);
}

}  // namespace
}  // namespace olmo::test
