// This process: its build and command line, its streams and signals, and where it finds other
// programs, libraries and its cache.
#pragma once

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace olmo {

/// Version, revision, compiler and flags of this program. Every run's record holds them.
struct BuildInfo {
  std::string version;       ///< of olmo-harness
  std::string git_revision;  ///< full hash, "-dirty" appended if tracked files had changes,
                             ///< "unknown" without git
  std::string commit_date;   ///< of the revision, "2026-11-22"; empty without git
  std::string compiler;
  std::string flags;
  std::string libtorch;  ///< version of the LibTorch headers
};

const BuildInfo& build_info();
/// "olmo-harness 0.2.0 (4c1f…)": version and revision.
std::string version_line();

/// A word as a shell reads it back.
std::string shell_quoted(const std::string& word);

/// Words in one line, quoted where a shell needs it.
std::string shell_line(std::span<const std::string> words);

/// The words that started this process.
std::vector<std::string> command_words();
std::string command_line();

/// Opens /dev/null on those of the descriptors 0, 1 and 2 that are closed: otherwise the next file
/// gets the number, and progress is written into it. Results cannot be written to a closed stdout;
/// that stays an error.
void open_standard_streams();

/// Makes two signals errors of the write that causes them. SIGXFSZ: beyond a limit on the size of a
/// file (EFBIG). SIGPIPE: the reader of a pipe is gone (EPIPE), so that a lost terminal or log ends
/// nothing; but a process whose stdout has lost its reader ends as usual, quietly (`| head`). A
/// process started by ours finds both signals as they were.
void keep_writes_from_killing();

/// After this call a stdout without a reader no longer ends the process. A training calls it,
/// because it has work to lose.
void outlive_stdout();

/// What a signal has asked for.
enum class StopRequest {
  kNone,
  kStop,       ///< SIGTERM and the like: save and exit 75
  kInterrupt,  ///< SIGINT (Ctrl-C): save and exit 130; a second one kills at once
};

/// The signals that StopSignals notes.
inline constexpr int kStopSignals[] = {SIGTERM, SIGUSR1, SIGINT,  SIGUSR2,   SIGXCPU,
                                       SIGHUP,  SIGPWR,  SIGALRM, SIGVTALRM, SIGPROF};

/// Lets the signals act that early_signals.cpp has held since the start of the process. Throws
/// Error(kStopped) or Error(kInterrupted) if one of them has come that would end the process.
void release_held_signals();
/// From here on none of kStopSignals ends the process: its work is done, and its exit code stands.
void hold_signals();

/// While an object lives, signals that would end the process are noted instead: SIGTERM,
/// SIGUSR1, SIGUSR2, SIGXCPU (what batch systems send), SIGHUP (a lost terminal, unless it was
/// ignored from the start, as by nohup), SIGINT, SIGPWR, and the timers SIGALRM, SIGVTALRM and
/// SIGPROF. SIGQUIT still kills at once. A reader of stdout or stderr that goes away ends nothing
/// either. One at a time.
class StopSignals {
 public:
  StopSignals();
  /// If a signal was noted, signals stay noted, because the process is ending. Otherwise they act
  /// as they did before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether an object lives.
  [[nodiscard]] static bool exist();
  [[nodiscard]] StopRequest requested() const;
  /// The signal that asked last, e.g. `SIGTERM`.
  [[nodiscard]] std::string name() const;
  /// Throws Error(kStopped) or Error(kInterrupted) with `consequence`, if a signal has asked.
  void throw_if_requested(const std::string& consequence) const;
};

/// Where PATH has the program `name`; a name with a slash is taken as it is. The folders of PATH
/// that are named relative to the current one (`.`, an empty entry) are passed over: what lies
/// there by chance, or by somebody's intent, is not what was meant.
std::optional<std::string> find_program(const std::string& name);

/// A library that is opened at run time, if this machine has it. Closed with its last copy.
class SharedLibrary {
 public:
  /// The first of `names` that can be loaded; else `problem` is what is wrong with the first that
  /// is there, or, where none is, what the loader said of the first.
  static SharedLibrary open(const std::vector<std::string>& names, std::string* problem);
  /// The first of `names` that this process has loaded already.
  static SharedLibrary loaded(const std::vector<std::string>& names);

  [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }
  /// A function of the library as a pointer of type F; nullptr if it has none of that name.
  template <typename F>
  [[nodiscard]] F* function(const char* name) const {
    return reinterpret_cast<F*>(address_of(name));
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;
  std::shared_ptr<void> handle_;
};

/// Loads `library` with all its symbols, for every library that is loaded afterwards, and for as
/// long as the process lives. False: `problem` is what the loader said.
bool load_for_good(const std::filesystem::path& library, std::string* problem);

/// The variable in which a package's olmo-harness (src/launcher) tells the whole program where
/// LibTorch's libraries are.
inline constexpr char kLibtorchVariable[] = "OLMO_HARNESS_LIBTORCH";
/// The value of LD_LIBRARY_PATH that has the folder of kLibtorchVariable before what it is now
/// (`path`, which may be null).
std::string with_libtorch(const char* path);
/// Takes that folder out of LD_LIBRARY_PATH again: it was for the loader of this process, and the
/// programs that it starts have libraries of their own.
void hide_libtorch_from_children();
/// The environment, as NAME=VALUE, of another process of this program: ours, and LibTorch's folder
/// in LD_LIBRARY_PATH again.
std::vector<std::string> environment_of_own_kind();

/// Where downloads and other things that can be made again live: $OLMO_HARNESS_CACHE, else
/// $XDG_CACHE_HOME/olmo-harness, else ~/.cache/olmo-harness.
std::filesystem::path cache_directory();

}  // namespace olmo
