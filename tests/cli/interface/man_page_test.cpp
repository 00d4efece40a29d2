// The man page, as the programs read it that show man pages.
#include <fstream>

#include "cli/said.h"
#include "cli/surroundings.h"
#include "support/catch.h"
#include "support/process.h"
#include "support/says.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

bool is_installed(const std::string& program) {
  if (run("command -v " + program + " 2>/dev/null").code == 0) return true;
  WARN(program + " is not installed: the man page is not tested with it");
  return false;
}

/// The page in a file.
class Page {
 public:
  Page() {
    const auto said = say({"man"});
    REQUIRE(said.code == 0);
    std::ofstream(folder_ / "olmo-harness.1") << said.out;
  }
  [[nodiscard]] std::string file() const { return (folder_ / "olmo-harness.1").string(); }

 private:
  TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("groff shows the man page without a warning", "[cli]") {
  if (!is_installed("groff")) return;
  const Page page;
  CHECK(run("groff -man -Tutf8 -ww '" + page.file() + "' 2>&1 >/dev/null").output.empty());
}

TEST_CASE("mandoc finds nothing wrong with the man page", "[cli]") {
  if (!is_installed("mandoc")) return;
  const Page page;
  CHECK(run("mandoc -Tlint -W warning '" + page.file() + "' 2>&1").output.empty());
}

TEST_CASE("the man page has every command, option, exit code and variable", "[cli]") {
  if (!is_installed("groff")) return;
  const Page page;
  // A line that is wider than any text keeps words together.
  const auto shown =
      run("groff -man -Tascii -P-cbou -rLL=2000n '" + page.file() + "' 2>/dev/null").output;
  for (const char* part :
       {"olmo-harness train CONFIG [key.path=value ...] [OPTIONS]",
        "olmo-harness runs show RUN [OPTIONS]", "olmo-harness report parity RUN_A RUN_B [OPTIONS]",
        "--run-dir DIR", "--perplexity NAME=PATH", "key.path=value"}) {
    INFO(part);
    CHECK(says(shown, part));
  }
  for (const auto& [code, meaning] : cli::exit_codes()) CHECK(says(shown, meaning));
  for (const auto& variable : cli::environment_variables()) CHECK(says(shown, variable.name));
  CHECK(says(shown, "  olmo-harness audit runs/quickstart --steps 21..30\n"));
}

}  // namespace olmo::test
