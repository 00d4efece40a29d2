// The page in a real terminal: tmux, which knows what a screen shows.
#include "cli/training.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/process.h"
#include "support/says.h"

namespace olmo::test {
namespace {

/// A terminal with a shell in it.
class Terminal {
 public:
  Terminal(const Scene& scene, int columns, int rows) : socket_((scene / "tmux").string()) {
    tmux("-f /dev/null -u new-session -d -x " + std::to_string(columns) + " -y " +
         std::to_string(rows) + " 'env PS1=\"ready> \" NO_COLOR= LC_ALL=C.UTF-8 sh'");
    tmux("set-option -g window-size manual");
  }
  ~Terminal() { tmux("kill-server"); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& line) const { tmux("send-keys -l '" + line + "'"), press("Enter"); }
  void press(const std::string& key) const { tmux("send-keys " + key); }
  void resize(int columns, int rows) const {
    tmux("resize-window -x " + std::to_string(columns) + " -y " + std::to_string(rows));
  }
  [[nodiscard]] std::string screen() const { return tmux("capture-pane -p"); }
  [[nodiscard]] bool shows(const std::string& part) const {
    return happens([&] { return says(screen(), part); });
  }
  [[nodiscard]] std::string fact(const std::string& name) const {
    return tmux("display-message -p '#{" + name + "}'");
  }

 private:
  std::string tmux(const std::string& words) const {
    // It starts commands by the user's own shell, and some users may have none.
    return run("SHELL=/bin/sh tmux -S '" + socket_ + "' " + words + " 2>&1").output;
  }

  std::string socket_;
};

/// False, with a word of warning, where tmux is not installed: CTest calls such a test skipped.
bool has_tmux() {
  if (run("tmux -V 2>&1").code == 0) return true;
  WARN("skipped: tmux (Debian package tmux) is not installed");
  return false;
}

std::string watch_of(const Scene& scene) {
  return std::string(OLMO_BINARY) + " runs watch " + (scene / "run").string();
}

}  // namespace

TEST_CASE("runs watch follows a training on a screen that may change, and gives it back", "[cli]") {
  if (!has_tmux()) return;
  const Scene scene;
  StoppingChild training(scene.command("run", {"stop_at=20", "run_name=live"}), scene / "log",
                         "manifest.json");
  REQUIRE(training.stops_when([] { return true; }));
  const Terminal terminal(scene, 110, 34);
  terminal.type("stty -g > " + (scene / "before").string() + "; echo before the $((1)) page");
  REQUIRE(terminal.shows("before the 1 page"));
  terminal.type(watch_of(scene));
  REQUIRE(terminal.shows("live  running"));
  CHECK(terminal.fact("alternate_on") == "1\n");
  CHECK(terminal.fact("cursor_flag") == "0\n");
  CHECK_FALSE(says(terminal.screen(), "before the 1 page"));
  training.go_on();
  while (training.stops()) training.go_on();
  CHECK(terminal.shows("live  finished"));
  CHECK(terminal.shows("step 20"));

  terminal.resize(60, 14);
  CHECK(happens([&] {
    const auto screen = terminal.screen();
    return says(screen, "live  finished") && says(screen, "q quits") &&
           !says(screen, "learning rate");
  }));
  CHECK(terminal.shows("20\n"));  // the last tick of the steps, in the last column
  terminal.press("Space");
  CHECK(terminal.shows("paused"));
  terminal.press("Space Right x q");  // they come at once
  REQUIRE(terminal.shows("before the 1 page"));
  CHECK(happens([&] { return terminal.fact("alternate_on") == "0\n"; }));
  CHECK(terminal.fact("cursor_flag") == "1\n");
  terminal.type("stty -g > " + (scene / "after").string() + "; echo settings are $((1)) out");
  REQUIRE(terminal.shows("settings are 1 out"));  // as run; what was typed is shown before that
  CHECK(read_file(scene / "before") == read_file(scene / "after"));
}

TEST_CASE("a page that a signal ends gives the terminal back", "[cli]") {
  if (!has_tmux()) return;
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=2", "run_name=short"}).code == 0);
  const Terminal terminal(scene, 80, 24);
  for (const auto& [key, code] : {std::pair("C-c", "130"), std::pair("C-\\\\", "130")}) {
    terminal.type("clear; " + watch_of(scene) + "; echo ended with $?");
    REQUIRE(terminal.shows("short  finished"));
    terminal.press(key);
    CHECK(terminal.shows("ended with " + std::string(code)));
    CHECK(terminal.fact("alternate_on") == "0\n");
  }
}

TEST_CASE("a page that is stopped comes back with its job", "[cli]") {
  if (!has_tmux()) return;
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=2", "run_name=short"}).code == 0);
  const Terminal terminal(scene, 80, 24);
  terminal.type("set -m; " + watch_of(scene));
  REQUIRE(terminal.shows("short  finished"));
  terminal.press("C-z");
  CHECK(happens([&] { return terminal.fact("alternate_on") == "0\n"; }));
  terminal.type("fg");
  REQUIRE(terminal.shows("short  finished"));
  CHECK(terminal.fact("alternate_on") == "1\n");
  terminal.press("q");
  CHECK(happens([&] { return terminal.fact("alternate_on") == "0\n"; }));
}

}  // namespace olmo::test
