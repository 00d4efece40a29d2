// What a command line may say: commands, their arguments and options, and what a command does. The
// one place that declares what several commands take: --json, a RUN, key.path=value, where to
// compute.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/interface/interface.h"
#include "core/compute/policy.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
class Option;
}  // namespace CLI

namespace olmo::cli {

struct ProgramState;

/// The whole numbers that an option takes.
struct Range {
  std::int64_t low = 0;
  std::optional<std::int64_t> high = std::nullopt;
};

inline constexpr Range kPositive = {1};
inline constexpr Range kThreads = {0, kMostThreads};
/// Ids that a token file can hold.
inline constexpr Range kTokenIds = {0, 4'294'967'295};
/// Lengths and counts that fit into memory.
inline constexpr Range kSizes = {1, 1 << 24};

/// An argument or option that was declared, to say more of it.
class Option {
 public:
  Option(CLI::Option* option, ProgramState* program) : option_(option), program_(program) {}

  Option& required();
  /// Other values are refused; the nearest of `words` is named.
  Option& one_of(std::vector<std::string> words);
  /// The help shows the value that it has now.
  Option& with_default();
  /// `a,b` gives two values.
  Option& separated_by_commas();
  /// Of a list: one value each time that the option is given, so that an argument may follow it.
  Option& one_at_a_time();
  Option& needs(const Option& other);
  Option& excludes(const Option& other);
  /// What its value stands for, where the word for it in the help ("FILE", "DIR", see
  /// value_named()) does not say so.
  Option& takes(Takes kind);

 private:
  friend class Command;
  CLI::Option* option_;
  ProgramState* program_;
};

/// Where to compute, as `eval` and `audit` are told.
struct PolicyOptions {
  std::string numerics = "portable";
  std::string isa = "auto";
  std::string device = "cpu";
  int threads = 0;
};

/// One command; a handle on what its Program owns. `name` of an option is as the help shows it,
/// "--db FILE", or "NAME" for an argument by its place. The variables must outlive the program's
/// run: see options().
class Command {
 public:
  Command(CLI::App* app, ProgramState* program) : app_(app), program_(program) {}

  /// A command of this one. `title`: of the group in which the overview shows it.
  Command add(const char* name, const char* description, const char* title = nullptr) const;
  /// Where a command's variables live: as long as the program.
  template <class Options>
  Options& options() const {
    const auto made = std::make_shared<Options>();
    keep(made);
    return *made;
  }

  Option option(const char* name, std::string& value, const std::string& description) const;
  Option option(const char* name, std::vector<std::string>& values,
                const std::string& description) const;
  Option flag(const char* name, bool& value, const char* description) const;
  /// `value` is an integer or std::optional of one.
  template <class Value>
  Option number(const char* name, Value& value, Range range, const char* description) const {
    return number_option(
        name, [&value](std::int64_t given) { value = static_cast<IntegerOf<Value>>(given); }, range,
        description, std::optional<IntegerOf<Value>>(value));
  }

  // What several commands take, in the same words. A path of another kind is refused before the
  // command begins.

  Option json(bool& value) const;
  /// RUN, the argument that says which run.
  Option run(std::string& value) const;
  Option run(std::string& value, const char* name, const std::string& description) const;
  Option checkpoint(std::string& value, const char* name, const char* description) const;
  Option config(std::string& value, const char* description) const;
  /// All words that remain, which are to be key.path=value; `--key=value` may be said, too.
  void overrides(std::vector<std::string>& values) const;
  void isa_device_threads(PolicyOptions& policy) const;

  /// Of what was declared so far, only `others` may be given beside `option`.
  void alone(const Option& option, std::initializer_list<Option> others) const;

  void footer(const std::string& text) const;
  /// What the command does; an int that it returns is the exit code. A command without one needs
  /// one of its own commands.
  template <class Action>
  void action(Action act) const {
    if constexpr (std::is_void_v<std::invoke_result_t<Action>>) {
      set_action([act = std::move(act)] {
        act();
        return 0;
      });
    } else {
      set_action(std::move(act));
    }
  }

 private:
  template <class Value>
  struct Integer {
    using Type = Value;
  };
  template <class Value>
  struct Integer<std::optional<Value>> {
    using Type = Value;
  };
  template <class Value>
  using IntegerOf = typename Integer<Value>::Type;

  void keep(std::shared_ptr<void> options) const;
  /// As messages begin: "report run".
  [[nodiscard]] std::string name() const;
  Option number_option(const char* name, std::function<void(std::int64_t)> store, Range range,
                       const char* description, std::optional<std::int64_t> value) const;
  /// Calls `check` before the command's action.
  void before(std::function<void()> check) const;
  void set_action(std::function<int()> act) const;

  CLI::App* app_;
  ProgramState* program_;
};

/// The program's name, version and commands, and the words that it is given.
class Program {
 public:
  Program(const char* name, const char* description, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] Command command() const;
  /// The commands by what they are for, one line each.
  [[nodiscard]] std::string overview() const;
  /// Everything that was declared.
  [[nodiscard]] CommandFacts facts() const;
  /// Runs the command that the words name and returns its exit code. Help and version are printed.
  /// Throws Error(kUsage) with one sentence for what is wrong with the words: the command, what was
  /// given, what would be right, and the nearest command or option where one is close.
  int run(std::vector<std::string> words) const;

 private:
  std::unique_ptr<ProgramState> state_;
};

}  // namespace olmo::cli
