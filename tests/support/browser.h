// A headless Chromium that a test drives: pages are opened, clicked and read as a user does.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace olmo::test {

/// Throws std::runtime_error where the browser does not answer in time, a script throws or an
/// element is not there. Killed with all its processes when the object dies.
class Browser {
 public:
  /// False where this machine has no Chromium, and a line that says so (CTest looks for it): the
  /// test ends then.
  static bool is_installed();

  /// Starts a browser with a profile of its own, and an empty page of 1280 × 800.
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void resize(int width, int height);
  /// Whether pages see a reader who prefers dark colours.
  void prefer_dark(bool dark);
  /// Whether pages are styled as on paper.
  void on_paper(bool paper);
  /// Without it pages are as their server made them.
  void run_scripts(bool run);

  /// Opens a page and returns when it has loaded.
  void open(const std::string& url);
  /// The value of an expression as text; a promise is waited for.
  std::string text(const std::string& expression);
  double number(const std::string& expression);
  bool holds(const std::string& expression);
  /// Whether the condition comes true on a page that has loaded: this one, or the one that is being
  /// opened.
  bool becomes(const std::string& condition,
               std::chrono::milliseconds limit = std::chrono::seconds(60));

  // Input as of a user's devices, at the first element that `selector` finds.
  void click(const std::string& selector);
  /// Presses at one place within the element, as shares of its width, and lets go at another.
  void drag(const std::string& selector, double from, double to);
  void point_at(const std::string& selector, double share_x, double share_y);
  void type(const std::string& text);
  /// A key by its name: Tab, Enter, Escape, ArrowLeft, …
  void press(const std::string& key);

  /// The page as PNG; with `whole` all of its height.
  void screenshot(const std::filesystem::path& file, bool whole = false);

  /// What went wrong on the pages since the last call: errors that scripts threw or logged, and
  /// requests that failed or were answered with an error.
  std::vector<std::string> problems();
  [[nodiscard]] int process_id() const;

 private:
  void mouse(const char* type);
  void emulate_media();

  class Connection;
  std::unique_ptr<Connection> connection_;
  double at_x_ = 0, at_y_ = 0;  ///< of the pointer
  bool dark_ = false, paper_ = false;
};

}  // namespace olmo::test
