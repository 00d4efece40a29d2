#include "support/browser.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/process.h"
#include "support/temporary_directory.h"

namespace olmo::test {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Of one command; a busy machine may need most of it for the first page.
constexpr std::chrono::seconds kAnswerLimit(60);

std::optional<std::string> browser_program() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (auto found = find_program(name)) return found;
  }
  return std::nullopt;
}

std::vector<std::string> command_of(const std::string& program, const std::string& profile) {
  std::vector<std::string> command = {program,
                                      "--headless=new",
                                      "--remote-debugging-pipe",
                                      "--user-data-dir=" + profile,
                                      "--no-first-run",
                                      "--no-default-browser-check",
                                      "--disable-background-networking",
                                      "--disable-component-update",
                                      "--disable-breakpad",
                                      "--disable-crash-reporter",
                                      "--disable-dev-shm-usage",
                                      "--disable-extensions",
                                      "--disable-gpu",
                                      "--disable-sync",
                                      "--hide-scrollbars",
                                      "--lang=en-US",
                                      "--mute-audio",
                                      "--no-proxy-server",
                                      "--window-size=1280,800"};
  if (::geteuid() == 0) command.emplace_back("--no-sandbox");  // Chromium refuses root otherwise
  command.emplace_back("about:blank");
  return command;
}

/// The program with `socket` as its descriptors 3 and 4, in a process group of its own.
pid_t start(const std::vector<std::string>& command, const std::string& home, int socket) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int high = ::fcntl(socket, F_DUPFD, 10);
  ::dup2(high, 3);
  ::dup2(high, 4);
  ::close(high);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(nothing, stream);
  ::setenv("HOME", home.c_str(), 1);  // else its caches are left in the user's
  ::setenv("XDG_CONFIG_HOME", home.c_str(), 1);
  ::setenv("XDG_CACHE_HOME", home.c_str(), 1);
  ::setenv("TZ", "UTC", 1);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

std::string decoded_base64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    const auto* const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto* const found = std::char_traits<char>::find(alphabet, 64, c);
    if (found == nullptr) break;
    bits = bits << 6U | static_cast<unsigned>(found - alphabet);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(held) & 0xFFU);
  }
  return bytes;
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

}  // namespace

/// The browser's process, and the messages of the DevTools protocol with it: JSON, each ended by a
/// zero byte.
class Browser::Connection {
 public:
  Connection() {
    const auto program = browser_program();
    if (!program) throw std::runtime_error("this machine has no Chromium");
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::runtime_error("no socket for the browser");
    ours_ = ends[0];
    process_ = start(command_of(*program, (folder_ / "profile").string()), folder_.path().string(),
                     ends[1]);
    ::close(ends[1]);
    try {
      attach();
    } catch (...) {
      end();
      throw;
    }
  }
  ~Connection() { end(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }

  /// The result of a command to the page. Throws std::runtime_error if it is refused.
  Json ask(const std::string& method, const Json& parameters = Json::object()) {
    const int id = ++last_id_;
    Json message = {{"id", id}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    send(message.dump());
    const auto limit = Clock::now() + kAnswerLimit;
    for (;;) {
      const Json answer = receive(limit, method);
      if (answer.value("id", 0) != id) {
        note(answer);
        continue;
      }
      if (answer.contains("error"))
        throw std::runtime_error(method + ": " + answer["error"].value("message", ""));
      return answer["result"];
    }
  }

  void open(const std::string& url) {
    loaded_ = false;
    const Json answer = ask("Page.navigate", {{"url", url}});
    if (answer.contains("errorText"))
      throw std::runtime_error(url + ": " + answer["errorText"].get<std::string>());
    const auto limit = Clock::now() + kAnswerLimit;
    while (answer.contains("loaderId") && !loaded_) note(receive(limit, url));
  }

  Json value_of(const std::string& expression) {
    const Json answer =
        ask("Runtime.evaluate",
            {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (answer.contains("exceptionDetails")) {
      const Json& details = answer["exceptionDetails"];
      throw std::runtime_error(expression + ": " +
                               details.value("/exception/description"_json_pointer,
                                             details.value("text", std::string("threw"))));
    }
    return answer["result"].value("value", Json());
  }

  std::vector<std::string> take_problems() {
    // Whatever the page has said so far has been sent before the answer to this.
    ask("Runtime.evaluate", {{"expression", "0"}});
    return std::exchange(problems_, {});
  }

 private:
  void attach() {
    const Json target = ask("Target.createTarget", {{"url", "about:blank"}});
    session_ = ask("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}})
                   .at("sessionId")
                   .get<std::string>();
    for (const char* domain : {"Page", "Runtime", "Network", "Log"})
      ask(std::string(domain) + ".enable");
  }

  void send(const std::string& text) {
    for (std::size_t sent = 0; sent <= text.size();) {  // the zero byte at its end goes, too
      const ssize_t n = ::send(ours_, text.c_str() + sent, text.size() + 1 - sent, MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("the browser has ended");
      sent += static_cast<std::size_t>(n);
    }
  }

  Json receive(Clock::time_point limit, const std::string& what) {
    for (;;) {
      if (const auto end = received_.find('\0'); end != std::string::npos) {
        Json message =
            Json::parse(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(end));
        received_.erase(0, end + 1);
        return message;
      }
      const auto left = std::chrono::duration_cast<milliseconds>(limit - Clock::now()).count();
      struct pollfd ready = {ours_, POLLIN, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0)
        throw std::runtime_error(what + ": the browser did not answer in time");
      std::array<char, 65536> buffer{};
      const ssize_t n = ::recv(ours_, buffer.data(), buffer.size(), 0);
      if (n <= 0) throw std::runtime_error(what + ": the browser has ended");
      received_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }

  /// What happened on the page by itself.
  void note(const Json& event) {
    const std::string method = event.value("method", "");
    const Json& about = event.contains("params") ? event["params"] : event;
    const auto word = [&](const char* pointer) {
      return about.value(Json::json_pointer(pointer), std::string());
    };
    if (method == "Page.loadEventFired") loaded_ = true;
    if (method == "Runtime.exceptionThrown")
      problems_.push_back("a script threw: " + word("/exceptionDetails/exception/description"));
    if (method == "Log.entryAdded" && word("/entry/level") == "error")
      problems_.push_back(word("/entry/source") + ": " + word("/entry/text") + " " +
                          word("/entry/url"));
    if (method == "Runtime.consoleAPICalled" && word("/type") == "error")
      problems_.push_back("a script logged an error: " + about["args"].dump());
    if (method == "Network.loadingFailed" && !about.value("canceled", false))
      problems_.push_back("a request failed: " + word("/errorText") + " " + word("/type"));
  }

  /// Kills the browser and the processes that it started, which are in its group.
  void end() {
    if (process_ <= 0) return;
    ::kill(-process_, SIGKILL);
    ::kill(process_, SIGKILL);  // should it have died before its group was made
    ::waitpid(process_, nullptr, 0);
    ::close(ours_);
    process_ = -1;
    remove_its_socket();
  }

  /// Killed, it leaves the folder of its socket among the temporary files. (With a TMPDIR of its
  /// own, within `folder_`, the socket's path could become longer than the system takes.)
  void remove_its_socket() const {
    std::error_code none;
    const auto folder =
        std::filesystem::read_symlink(folder_ / "profile" / "SingletonSocket", none).parent_path();
    if (folder.filename().string().starts_with("org.chromium."))
      std::filesystem::remove_all(folder, none);
  }

  TemporaryDirectory folder_;
  pid_t process_ = -1;
  int ours_ = -1;
  int last_id_ = 0;
  bool loaded_ = false;
  std::string session_, received_;
  std::vector<std::string> problems_;
};

bool Browser::is_installed() {
  if (browser_program()) return true;
  std::cout << "skipped: no Chromium on this machine\n";
  return false;
}

Browser::Browser() : connection_(std::make_unique<Connection>()) { resize(1280, 800); }
Browser::~Browser() = default;

void Browser::resize(int width, int height) {
  connection_->ask(
      "Emulation.setDeviceMetricsOverride",
      {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", width < 600}});
}

void Browser::prefer_dark(bool dark) {
  dark_ = dark;
  emulate_media();
}

void Browser::on_paper(bool paper) {
  paper_ = paper;
  emulate_media();
}

void Browser::emulate_media() {
  connection_->ask(
      "Emulation.setEmulatedMedia",
      {{"media", paper_ ? "print" : ""},
       {"features", {{{"name", "prefers-color-scheme"}, {"value", dark_ ? "dark" : "light"}}}}});
}

void Browser::run_scripts(bool run) {
  connection_->ask("Emulation.setScriptExecutionDisabled", {{"value", !run}});
}

void Browser::open(const std::string& url) { connection_->open(url); }

std::string Browser::text(const std::string& expression) {
  const Json value = connection_->value_of("(async () => String(await (" + expression + ")))()");
  return value.is_string() ? value.get<std::string>() : std::string();
}

double Browser::number(const std::string& expression) { return std::stod(text(expression)); }

bool Browser::holds(const std::string& expression) {
  return text("Boolean(" + expression + ")") == "true";
}

bool Browser::becomes(const std::string& condition, milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end) {
    try {
      if (holds("document.readyState === 'complete' && (" + condition + ")")) return true;
    } catch (const std::runtime_error&) {
      // The page is being left, or what the condition names is not there yet.
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

void Browser::point_at(const std::string& selector, double share_x, double share_y) {
  const Json box = connection_->value_of(
      "(() => { const e = document.querySelector(" + quoted(selector) +
      "); if (!e) throw new Error('no element ' + " + quoted(selector) +
      "); e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'}); const b = "
      "e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()");
  const auto part = [&](std::size_t i) { return box.at(i).get<double>(); };
  connection_->ask("Input.dispatchMouseEvent", {{"type", "mouseMoved"},
                                                {"x", part(0) + share_x * part(2)},
                                                {"y", part(1) + share_y * part(3)},
                                                {"buttons", 0}});
  at_x_ = part(0) + share_x * part(2);
  at_y_ = part(1) + share_y * part(3);
}

void Browser::mouse(const char* type) {
  connection_->ask(
      "Input.dispatchMouseEvent",
      {{"type", type}, {"x", at_x_}, {"y", at_y_}, {"button", "left"}, {"clickCount", 1}});
}

void Browser::click(const std::string& selector) {
  point_at(selector, 0.5, 0.5);
  mouse("mousePressed");
  mouse("mouseReleased");
}

void Browser::drag(const std::string& selector, double from, double to) {
  point_at(selector, from, 0.5);
  mouse("mousePressed");
  point_at(selector, to, 0.5);
  mouse("mouseReleased");
}

void Browser::type(const std::string& text) {
  connection_->ask("Input.insertText", {{"text", text}});
}

void Browser::press(const std::string& key) {
  struct Key {
    const char* name;
    int code;
    const char* text;
  };
  constexpr std::array<Key, 8> kKeys = {{{"Tab", 9, ""},
                                         {"Enter", 13, "\r"},
                                         {"Escape", 27, ""},
                                         {"ArrowLeft", 37, ""},
                                         {"ArrowUp", 38, ""},
                                         {"ArrowRight", 39, ""},
                                         {"ArrowDown", 40, ""},
                                         {" ", 32, " "}}};
  for (const Key& known : kKeys) {
    if (key != known.name) continue;
    Json event = {
        {"key", key}, {"code", key == " " ? "Space" : key}, {"windowsVirtualKeyCode", known.code}};
    if (*known.text != '\0') event["text"] = known.text;
    for (const char* type : {"keyDown", "keyUp"}) {
      event["type"] = type;
      connection_->ask("Input.dispatchKeyEvent", event);
    }
    return;
  }
  throw std::runtime_error("no key " + key);
}

void Browser::screenshot(const std::filesystem::path& file, bool whole) {
  const Json answer = connection_->ask("Page.captureScreenshot",
                                       {{"format", "png"}, {"captureBeyondViewport", whole}});
  std::ofstream(file, std::ios::binary) << decoded_base64(answer["data"].get<std::string>());
}

std::vector<std::string> Browser::problems() { return connection_->take_problems(); }

int Browser::process_id() const { return connection_->process(); }

}  // namespace olmo::test
