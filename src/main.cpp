#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include <unistd.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"

namespace {

/// A path that leads nowhere is the user's, an error of the disk is not.
olmo::ErrorKind kind_of(const std::error_code& code) {
  const bool leads_nowhere = code == std::errc::permission_denied ||
                             code == std::errc::too_many_symbolic_link_levels ||
                             code == std::errc::filename_too_long;
  return leads_nowhere ? olmo::ErrorKind::kInput : olmo::ErrorKind::kFailure;
}

int run(int argc, char** argv, bool& failed) {
  failed = true;
  try {
    olmo::release_held_signals();
    const int code = olmo::cli::run(argc, argv);
    failed = false;
    return code;
  } catch (const olmo::Error& error) {
    olmo::log_line(std::string("error: ") + error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    olmo::log_line("error: there is no memory left");
    return static_cast<int>(olmo::ErrorKind::kFailure);
  } catch (const std::filesystem::filesystem_error& error) {
    olmo::log_line("error: " + error.path1().string() +
                   ": cannot be used: " + error.code().message());
    return static_cast<int>(kind_of(error.code()));
  } catch (const std::system_error& error) {
    const bool threads = error.code() == std::errc::resource_unavailable_try_again;
    olmo::log_line(threads ? "error: the system gives this process no more threads (`ulimit -u`, "
                             "`ulimit -v` and a control group's pids.max limit them)"
                           : "error: " + error.code().message());
    return static_cast<int>(olmo::ErrorKind::kFailure);
  } catch (const std::exception& error) {
    const std::string text = error.what();  // a library's may go on with the calls that led to it
    olmo::log_line("error: " + text.substr(0, text.find('\n')));
    return static_cast<int>(olmo::ErrorKind::kFailure);
  }
}

}  // namespace

int main(int argc, char** argv) {
  olmo::hide_libtorch_from_children();
  olmo::open_standard_streams();
  olmo::keep_writes_from_killing();
  olmo::CleanStream out(std::cout, STDOUT_FILENO);
  const olmo::CleanStream err(std::cerr, STDERR_FILENO);
  bool failed = false;
  const int code = run(argc, argv, failed);
  const int problem = out.finish();
  olmo::hold_signals();  // the destructors of LibTorch are still to come
  // Who closed a pipe has read enough.
  if (problem == 0 || problem == EPIPE || failed) return code;
  olmo::log_line(std::string("error: standard output: cannot be written: ") +
                 std::strerror(problem));
  // A run that was stopped can be resumed, whatever became of its summary.
  return code >= static_cast<int>(olmo::ErrorKind::kStopped)
             ? code
             : static_cast<int>(olmo::ErrorKind::kFailure);
}
