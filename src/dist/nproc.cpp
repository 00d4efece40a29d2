#include "dist/nproc.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "core/files/private_folder.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "dist/launch.h"
#include "dist/store.h"
#include "dist/watch.h"

extern char** environ;

namespace olmo::dist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(ErrorKind::kFailure, "--nproc: " + what + ": " + std::strerror(error));
}

constexpr std::chrono::milliseconds kLongestWait{200};
constexpr std::chrono::milliseconds kAway = 10 * kLongestWait;

/// The signals that go on to the ranks. Those that were ignored when we started stay so: the ranks
/// ignore them, too.
std::vector<int> forwarded_signals() {
  std::vector<int> signals(std::begin(kStopSignals), std::end(kStopSignals));
  signals.insert(signals.end(), {SIGQUIT, SIGTSTP, SIGCONT});
  return signals;
}

/// Takes signals from a descriptor instead of from handlers.
class Signals {
 public:
  Signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    for (const int signal : forwarded_signals()) ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    descriptor_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!descriptor_.is_open()) fail("signals cannot be read", errno);
  }
  ~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_.number(); }
  [[nodiscard]] const sigset_t& before() const { return before_; }
  /// The next one that has come.
  [[nodiscard]] std::optional<int> next() const {
    signalfd_siginfo info{};
    if (::read(descriptor_.number(), &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

/// The lines that a rank writes, with its rank in front.
class Output {
 public:
  explicit Output(int rank) : prefix_("rank " + std::to_string(rank) + ": ") {}

  /// Both ends of the pipe; the rank gets the second.
  std::pair<int, Descriptor> open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe for a rank's output", errno);
    reader_ = Descriptor(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return {ends[1], Descriptor(ends[1])};
  }
  [[nodiscard]] int descriptor() const { return reader_.number(); }

  /// Shows what has come.
  void read() {
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::read(reader_.number(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;
      if (got == 0) return close();
      line_.append(buffer, static_cast<std::size_t>(got));
      for (auto end = line_.find('\n'); end != std::string::npos; end = line_.find('\n')) {
        log_line(prefix_ + line_.substr(0, end));
        line_.erase(0, end + 1);
      }
    }
  }
  void close() {
    if (!line_.empty()) log_line(prefix_ + line_);
    line_.clear();
    reader_ = Descriptor();
  }

 private:
  std::string prefix_, line_;
  Descriptor reader_;
};

class Rank {
 public:
  Rank(int rank, int size, const fs::path& folder, const std::vector<std::string>& arguments,
       const sigset_t& signals)
      : rank_(rank), output_(rank) {
    std::vector<std::string> variables = environment_of_own_kind();
    for (auto& variable : nproc_variables(rank, size, folder))
      variables.push_back(std::move(variable));
    std::vector<char*> words, environment;
    for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    for (auto& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&how);
    Descriptor writer;
    if (rank > 0) {
      auto [number, end] = output_.open();
      writer = std::move(end);
      ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
      ::posix_spawn_file_actions_adddup2(&files, number, STDOUT_FILENO);
      ::posix_spawn_file_actions_adddup2(&files, number, STDERR_FILENO);
    }
    // A group of its own: Ctrl-C reaches a rank once, from us.
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&how, 0);
    ::posix_spawnattr_setsigmask(&how, &signals);
    const int error =
        ::posix_spawn(&pid_, "/proc/self/exe", &files, &how, words.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&how);
    if (error != 0) fail("rank " + std::to_string(rank) + " cannot be started", error);
  }
  ~Rank() {
    if (!runs()) return;
    send(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void send(int signal) const {
    if (runs()) ::kill(pid_, signal);
  }
  /// Asks how it is. `was_away`: we could not ask for a while.
  void look(bool was_away) {
    int status = 0;
    if (was_away && stopped_) stopped_ = Clock::now();
    while (runs() && ::waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid_) {
      if (!WIFSTOPPED(status)) stopped_.reset();
      if (WIFSTOPPED(status) && !stopped_) stopped_ = Clock::now();
      if (WIFEXITED(status)) code_ = WEXITSTATUS(status);
      if (WIFSIGNALED(status)) signal_ = WTERMSIG(status);
    }
  }
  [[nodiscard]] bool runs() const { return !code_ && !signal_; }
  /// Since when it has been stopped, as by SIGSTOP; nothing: it is not.
  [[nodiscard]] std::optional<Clock::time_point> stopped() const { return stopped_; }
  [[nodiscard]] bool ended_badly() const { return signal_ || (code_ && *code_ != 0); }
  [[nodiscard]] int number() const { return rank_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::optional<int> code() const { return code_; }
  [[nodiscard]] std::optional<int> signal() const { return signal_; }
  Output& output() { return output_; }

 private:
  int rank_;
  pid_t pid_ = -1;
  std::optional<int> code_, signal_;  ///< how it ended
  std::optional<Clock::time_point> stopped_;
  Output output_;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

/// Waits for the next thing to happen, and shows what the ranks have written.
void wait_and_relay(const Ranks& ranks, int signals) {
  std::vector<pollfd> waited = {{.fd = signals, .events = POLLIN, .revents = 0}};
  for (const auto& rank : ranks) {
    if (rank->output().descriptor() >= 0)
      waited.push_back({.fd = rank->output().descriptor(), .events = POLLIN, .revents = 0});
  }
  ::poll(waited.data(), waited.size(), static_cast<int>(kLongestWait.count()));
  for (const auto& rank : ranks)
    if (rank->output().descriptor() >= 0) rank->output().read();
}

/// Ctrl-Z stops the ranks, and then us; `fg` lets all go on.
void stop_all(const Ranks& ranks) {
  for (const auto& rank : ranks) rank->send(SIGSTOP);
  std::raise(SIGSTOP);
  for (const auto& rank : ranks) rank->send(SIGCONT);
}

/// The code on which the ranks that could still say one agree.
int agreed_code(const Ranks& ranks) {
  for (const auto& rank : ranks)
    if (rank->code().value_or(0) != 0) return *rank->code();
  for (const auto& rank : ranks) {
    if (!rank->signal()) continue;
    return static_cast<int>(*rank->signal() == SIGINT ? ErrorKind::kInterrupted
                                                      : ErrorKind::kStopped);
  }
  return 0;
}

constexpr char kMeetings[] = "olmo-harness-ranks";
/// A file of the folder that is locked for as long as a process of this start lives.
constexpr char kInUse[] = "in-use";

/// Where the ranks meet. They keep the lock, too: they outlive a launcher that is killed.
class MeetingPlace {
 public:
  explicit MeetingPlace(const fs::path& where) : folder_(kMeetings, where) {
    const fs::path file = folder_.path() / kInUse;
    lock_ = Descriptor(::open(file.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
    if (!lock_.is_open() || ::flock(lock_.number(), LOCK_SH) != 0)
      fail(file.string() + " cannot be made and locked", errno);
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  /// Another start that found it before it was locked may have taken it away.
  [[nodiscard]] bool is_there() const { return fs::exists(path() / kInUse); }

 private:
  PrivateFolder folder_;
  Descriptor lock_;  ///< the ranks inherit it
};

std::unique_ptr<MeetingPlace> meeting_place_in(const fs::path& where) {
  remove_abandoned_meetings(where);
  for (;;) {
    auto place = std::make_unique<MeetingPlace>(where);
    if (place->is_there()) return place;
  }
}

/// In memory, if it can be: a disk that fills up, or hangs, would silence them all.
std::unique_ptr<MeetingPlace> meeting_place() {
  const fs::path memory = "/dev/shm";
  constexpr std::uintmax_t kEnough = 1 << 20;
  std::error_code error;
  if (const auto space = fs::space(memory, error); !error && space.available >= kEnough) {
    try {
      return meeting_place_in(memory);
    } catch (const Error&) {  // it is not for this user
    }
  }
  return meeting_place_in(fs::temp_directory_path());
}

/// How a rank ended that a signal has ended.
std::string end_by_signal(int signal) {
  return " was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

/// Why the other ranks need not wait for this one; nothing: they may have to.
std::optional<std::string> why_lost(const Rank& rank, std::chrono::milliseconds dead) {
  if (rank.signal()) return end_by_signal(*rank.signal());
  if (rank.runs() && rank.stopped() && Clock::now() - *rank.stopped() > dead)
    return " has been stopped for " + seconds_text(dead) + ", as by SIGSTOP";
  return std::nullopt;
}

/// Tells the other ranks of one that is lost. Their watch would find it, but not before it had come
/// to where they meet.
void tell_of_lost(const Ranks& ranks, std::vector<bool>& told, const fs::path& folder,
                  std::chrono::milliseconds dead) {
  for (const auto& rank : ranks) {
    const auto number = static_cast<std::size_t>(rank->number());
    const auto why = why_lost(*rank, dead);
    if (!why || told[number]) continue;
    told[number] = true;
    auto who = own_identity();
    who.pid = rank->pid();
    const auto store = with_prefix(*file_store(folder), "");
    post_failure(*store, {.rank = rank->number(),
                          .message = name_of_rank(rank->number(), who) + *why,
                          .reporter = kNobody});
  }
}

/// Once a rank has ended badly, the others have their time to end; those that are stopped would
/// never.
void kill_late(const Ranks& ranks, std::optional<Clock::time_point>& first_end,
               std::chrono::milliseconds patience) {
  bool badly = false, all_stopped = true;
  for (const auto& rank : ranks) {
    badly = badly || rank->ended_badly();
    all_stopped = all_stopped && (!rank->runs() || rank->stopped().has_value());
  }
  if (!badly) return;
  if (!first_end) first_end = Clock::now();
  if (!all_stopped && Clock::now() - *first_end < patience) return;
  for (const auto& rank : ranks) {
    if (!rank->runs()) continue;
    log_warning("rank " + std::to_string(rank->number()) +
                " has not ended by itself after another one did: it is killed");
    rank->send(SIGKILL);
  }
}

}  // namespace

void remove_abandoned_meetings(const fs::path& where) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(where, error)) {
    if (!entry.path().filename().string().starts_with(kMeetings)) continue;
    const Descriptor folder(
        ::open(entry.path().c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!folder.is_open() || ::fstat(folder.number(), &status) != 0) continue;
    if (status.st_uid != ::geteuid()) continue;
    const Descriptor lock(::openat(folder.number(), kInUse, O_NOFOLLOW | O_RDWR | O_CLOEXEC));
    if (!lock.is_open() || ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

int start_ranks(int size, std::chrono::milliseconds dead, std::chrono::milliseconds patience) {
  const auto folder = meeting_place();
  const Signals signals;
  const auto arguments = command_words();
  Ranks ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(
        std::make_unique<Rank>(rank, size, folder->path(), arguments, signals.before()));
  std::optional<Clock::time_point> first_end;
  std::vector<bool> told(ranks.size());
  const auto some_run = [&] {
    return std::any_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank->runs(); });
  };
  for (auto looked = Clock::now(); some_run();) {
    wait_and_relay(ranks, signals.descriptor());
    while (const auto signal = signals.next()) {
      if (*signal == SIGTSTP) stop_all(ranks);
      if (*signal == SIGCHLD || *signal == SIGTSTP) continue;
      for (const auto& rank : ranks) rank->send(*signal);
    }
    // A scheduler that suspends a job stops us, too, and lets us go on before or after the ranks.
    const bool was_away = Clock::now() - looked > kAway;
    looked = Clock::now();
    for (const auto& rank : ranks) rank->look(was_away);
    tell_of_lost(ranks, told, folder->path(), dead);
    kill_late(ranks, first_end, patience);
  }
  for (const auto& rank : ranks) {
    if (rank->output().descriptor() >= 0) rank->output().read();
    if (rank->output().descriptor() >= 0) rank->output().close();
    if (rank->signal())
      log_warning(name_of_rank(rank->number(), std::nullopt) + end_by_signal(*rank->signal()));
  }
  return agreed_code(ranks);
}

}  // namespace olmo::dist
