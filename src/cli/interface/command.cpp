#include "cli/interface/command.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>

#include "cli/given_path.h"
#include "cli/interface/help.h"
#include "cli/interface/usage.h"
#include "core/text/number.h"
#include "core/text/text.h"

namespace olmo::cli {

struct ProgramState {
  ProgramState(const char* name, const char* description) : app(description, name) {}

  std::vector<std::shared_ptr<void>> options;  ///< first, for what the app refers to goes last
  CLI::App app;
  std::map<const CLI::App*, std::vector<std::function<void()>>> checks;
  std::map<const CLI::Option*, ValueFacts> values;
  int exit_code = 0;
};

namespace {

std::optional<std::int64_t> whole_number(const std::string& text, const Range& range) {
  const auto number = parse_number<std::int64_t>(text);
  const bool within = number && *number >= range.low && (!range.high || *number <= *range.high);
  return within ? number : std::nullopt;
}

std::string expected(const Range& range) {
  const auto high = range.high.value_or(std::numeric_limits<std::int64_t>::max());
  return "expected a whole number from " + std::to_string(range.low) + " to " +
         std::to_string(high);
}

/// "--db FILE": what stands for the value.
struct OptionName {
  explicit OptionName(const std::string& text)
      : name(text.substr(0, text.find(' '))),
        value(name.size() < text.size() ? text.substr(name.size() + 1) : "WORD") {}

  std::string name, value;
};

/// Why a word cannot be meant as the value of an option that takes `expected`. A variable that a
/// script did not set is an empty word, which must not pass for an option that was not given; an
/// option's name is one whose value was forgotten before it.
std::string unmeant(const std::string& word, const std::string& expected) {
  if (word.empty()) return "expected " + expected + ", got an empty word";
  const bool is_name = word.size() > 1 && word[0] == '-' &&
                       (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0);
  if (!is_name) return "";
  const std::string shown = replace_bad_utf8(word);
  return "expected " + expected + ", got `" + shown + "`; a file of that name is ./" + shown;
}

/// An option, or an argument by its place, which `words` receive.
template <class Words>
CLI::Option* add_words(CLI::App* app, const ProgramState* program, const char* name, Words& words,
                       const std::string& about) {
  const OptionName parts(name);
  CLI::Option* option = app->add_option(parts.name, words, about)->type_name(parts.value);
  if (!parts.name.starts_with('-')) return option;
  return option->check(
      [=](const std::string& word) {
        const auto facts = program->values.find(option);
        const bool is_listed =
            facts != program->values.end() && facts->second.kind == Takes::kWords;
        return is_listed ? "" : unmeant(word, parts.value);  // Option::one_of says more
      },
      "");
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::one_of(std::vector<std::string> words) {
  program_->values[option_] = {Takes::kWords, words};
  option_->check(
      [words = std::move(words)](const std::string& text) -> std::string {
        if (std::ranges::find(words, text) != words.end()) return {};
        const auto close = nearest(text, words);
        return "expected " + listed(words) + ", got `" + replace_bad_utf8(text) + "`" +
               (close ? "; did you mean `" + *close + "`?" : "");
      },
      "");
  return *this;
}

Option& Option::with_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::separated_by_commas() {
  option_->delimiter(',');
  return *this;
}

Option& Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::takes(Takes kind) {
  program_->values[option_].kind = kind;
  return *this;
}

Command Command::add(const char* name, const char* description, const char* title) const {
  CLI::App* added = app_->add_subcommand(name, description);
  if (title != nullptr) added->group(title);
  app_->require_subcommand(1);  // unless it gets an action of its own
  return {added, program_};
}

Option Command::option(const char* name, std::string& value, const std::string& description) const {
  return {add_words(app_, program_, name, value, description), program_};
}

Option Command::option(const char* name, std::vector<std::string>& values,
                       const std::string& description) const {
  return {add_words(app_, program_, name, values, description), program_};
}

Option Command::number_option(const char* name, std::function<void(std::int64_t)> store,
                              Range range, const char* description,
                              std::optional<std::int64_t> value) const {
  const auto read = [name = std::string(name), store = std::move(store),
                     range](const CLI::results_t& given) {
    const auto number = whole_number(given.back(), range);
    if (!number)
      throw CLI::ValidationError(
          name, expected(range) + ", got `" + replace_bad_utf8(given.back()) + "`");
    store(*number);
    return true;
  };
  CLI::Option* option = app_->add_option(name, read, description)->type_name("N");
  // For with_default(): CLI11 does not see what `store` stores into.
  if (value) option->default_function([text = std::to_string(*value)] { return text; });
  return {option, program_};
}

Option Command::flag(const char* name, bool& value, const char* description) const {
  return {app_->add_flag(name, value, description), program_};
}

Option Command::json(bool& value) const {
  return flag("--json", value, "Print one JSON object on stdout");
}

Option Command::run(std::string& value) const { return run(value, "RUN", kRunForms).required(); }

Option Command::run(std::string& value, const char* name, const std::string& description) const {
  before([&value, command = this->name()] { require_run(command, value); });
  return option(name, value, description).takes(Takes::kRun);
}

Option Command::checkpoint(std::string& value, const char* name, const char* description) const {
  before([&value, command = this->name()] { require_checkpoint(command, value); });
  return option(name, value, description).takes(Takes::kPath);
}

Option Command::config(std::string& value, const char* description) const {
  before([&value, command = this->name()] { require_config(command, value); });
  return option("CONFIG", value, description).takes(Takes::kConfig);
}

void Command::overrides(std::vector<std::string>& values) const {
  app_->allow_extras();
  before([app = app_, &values] {
    values = app->remaining();
    refuse_unknown_options(*app, values);
  });
}

void Command::isa_device_threads(PolicyOptions& policy) const {
  option("--isa", policy.isa,
         "Instruction set: auto, plain, avx2 or avx512; changes no bit under portable")
      .one_of({"auto", "plain", "avx2", "avx512"});
  option("--device", policy.device, "Device: cpu, cuda or rocm; changes no bit under portable")
      .one_of({"cpu", "cuda", "rocm"});
  number(
      "--threads", policy.threads, kThreads,
      "Number of threads; 0: every core that the process may use; changes no bit under portable");
}

void Command::alone(const Option& option, std::initializer_list<Option> others) const {
  for (CLI::Option* declared : app_->get_options([](const CLI::Option*) { return true; })) {
    const bool fits =
        declared == option.option_ || declared == app_->get_help_ptr() ||
        std::ranges::any_of(others, [&](const Option& one) { return one.option_ == declared; });
    if (!fits) option.option_->excludes(declared);
  }
}

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::keep(std::shared_ptr<void> options) const {
  program_->options.push_back(std::move(options));
}

std::string Command::name() const {
  const CLI::App* parent = app_->get_parent();
  return parent->get_parent() == nullptr ? app_->get_name()
                                         : parent->get_name() + " " + app_->get_name();
}

void Command::before(std::function<void()> check) const {
  program_->checks[app_].push_back(std::move(check));
}

void Command::set_action(std::function<int()> act) const {
  app_->require_subcommand(0);
  app_->callback([app = app_, program = program_, act = std::move(act)] {
    if (!app->get_subcommands().empty()) return;  // one of its own commands has run
    for (const auto& check : program->checks[app]) check();
    program->exit_code = act();
  });
}

Program::Program(const char* name, const char* description, const std::string& version)
    : state_(std::make_unique<ProgramState>(name, description)) {
  state_->app.set_version_flag("--version", version, "Show the version");
  state_->app.set_help_flag("-h,--help", "Show this help");
  state_->app.formatter(help_formatter());  // the commands take it over
}

Program::~Program() = default;

Command Program::command() const { return {&state_->app, state_.get()}; }

std::string Program::overview() const { return cli::overview(state_->app); }

CommandFacts Program::facts() const { return facts_of(state_->app, state_->values); }

int Program::run(std::vector<std::string> words) const {
  state_->exit_code = 0;
  parse_words(state_->app, std::move(words));
  return state_->exit_code;
}

}  // namespace olmo::cli
