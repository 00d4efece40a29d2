// Signals that come when the program's libraries are mapped and main has not begun, or has ended.
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "support/catch.h"
#include "support/child.h"
#include "support/faults.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

Ended version_with(const std::string& variable, int signal,
                   const std::function<void()>& prepare = {}) {
  const TemporaryDirectory folder;
  return Child(
             with_fault_shim({variable + "=" + std::to_string(signal)}, {OLMO_BINARY, "--version"}),
             folder / "log", std::nullopt, prepare)
      .wait();
}

}  // namespace

TEST_CASE("a signal before main ends the program in order", "[cli]") {
  for (const auto& [signal, name, code] :
       {std::tuple{SIGTERM, "SIGTERM", 75}, {SIGINT, "SIGINT", 130}, {SIGHUP, "SIGHUP", 75}}) {
    const auto ended = version_with("OLMO_SIGNAL_BEFORE_MAIN", signal);
    CHECK(ended.code == code);
    CHECK(ended.err == "error: stopped by " + std::string(name) + "; nothing was begun\n");
  }
}

TEST_CASE("a signal that is ignored ends nothing before main", "[cli]") {
  const auto ended =
      version_with("OLMO_SIGNAL_BEFORE_MAIN", SIGHUP, [] { std::signal(SIGHUP, SIG_IGN); });
  INFO(ended.err);
  CHECK(ended.code == 0);
}

TEST_CASE("a signal after main does not change how the program ends", "[cli]") {
  CHECK(version_with("OLMO_SIGNAL_AFTER_MAIN", SIGTERM).code == 0);
}

}  // namespace olmo::test
