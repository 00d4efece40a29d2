#include "cli/interface/usage.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/interface/help.h"
#include "config/key_table.h"
#include "core/error.h"
#include "core/text/number.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

using Words = std::vector<std::string>;

[[noreturn]] void usage_error(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

/// "olmo-harness runs show".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::string see_help(const CLI::App& app) { return "; see " + full_name(app) + " --help"; }

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Words names_of(const std::vector<const CLI::App*>& commands) {
  Words names;
  for (const auto* command : commands) names.push_back(command->get_name());
  return names;
}

/// Commands of groups that bear this name, or at the top one close to it: "data tokenize".
Words in_other_groups(const CLI::App& app, const std::string& word) {
  Words exact, close;
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  for (const auto* group : commands_of(*root)) {
    for (const auto* command : commands_of(*group)) {
      if (command->get_name() == word) {
        exact.push_back(full_name(*command));
      } else if (root == &app && nearest(word, {command->get_name()})) {
        close.push_back(full_name(*command));
      }
    }
  }
  return exact.empty() ? close : exact;
}

[[noreturn]] void no_such_command(const CLI::App& app, const std::string& word) {
  const Words names = names_of(commands_of(app));
  Words meant = in_other_groups(app, word);
  const bool is_elsewhere = !meant.empty() && meant.front().ends_with(" " + word);
  if (const auto close = nearest(word, names)) {
    const std::string here = full_name(app) + " " + *close;
    if (!is_elsewhere)
      meant = {here};
    else if (close->starts_with(word))  // `run list`
      meant.insert(meant.begin(), here);
  }
  for (auto& name : meant) name = "`" + name + "`";
  usage_error("`" + word + "` is no command of " + full_name(app) +
              (meant.empty() ? "; its commands are " + listed(names, "and")
                             : "; did you mean " + listed(meant) + "?"));
}

Words option_names(const CLI::App& command) {
  Words names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

/// The option that `name` (without dashes) is likely to be: as it is written elsewhere
/// (`run_dir`), its beginning, or the nearest.
std::optional<std::string> likely_option(const CLI::App& command, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const Words names = option_names(command);
  Words begun;
  for (const auto& known : names) {
    if (known == name) return known;
    if (name.size() > 2 && known.starts_with(name)) begun.push_back(known);
  }
  return begun.size() == 1 ? std::optional(begun.front()) : nearest(name, names);
}

/// "--name=value" without dashes and value.
std::string option_name(const std::string& word) {
  const auto start = word.find_first_not_of('-');
  return start == std::string::npos ? word : word.substr(start, word.find('=') - start);
}

[[noreturn]] void no_such_option(const CLI::App& command, const std::string& word) {
  const auto close = likely_option(command, option_name(word));
  std::string hint = see_help(command);
  if (close) hint = "; did you mean `--" + *close + "`?";
  usage_error(full_name(command) + ": `" + word.substr(0, word.find('=')) + "` is no option of it" +
              hint);
}

/// The key of a config that a word says as OLMo's launch scripts do: `--save_overwrite`,
/// `--save-overwrite`, `--run-name=NAME`.
const config::KeyRow* key_of(const std::string& word) {
  std::string name = option_name(word);
  std::replace(name.begin(), name.end(), '-', '_');
  return config::find_key(name);
}

/// A word without a value that sets a key of a config, to true.
bool is_flag_of_config(const CLI::App& command, const std::string& word) {
  if (!command.get_allow_extras()) return false;
  const auto* row = key_of(word);
  return row != nullptr && !row->group &&
         (row->type.empty() || row->type.starts_with("true or false"));
}

bool is_option_word(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return !is_digit(word[1]) && word[1] != '.';  // -1 is a value
}

const CLI::Option* find_option(const CLI::App& command, const std::string& word) {
  for (const auto* option : command.get_options()) {
    if (option->nonpositional() && option->check_name(word.substr(0, word.find('='))))
      return option;
  }
  return nullptr;
}

/// The first word that names a command or an option that there is not. The parser itself would
/// often complain of something else first: that another option is missing.
void check_names(const CLI::App& app, const Words& words) {
  const CLI::App* command = &app;
  bool has_positional = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return;
    if (is_option_word(word)) {
      const auto* option = find_option(*command, word);
      if (option == nullptr) {
        const bool may_be_override =
            command->get_allow_extras() && word.find('=') != std::string::npos;
        if (!may_be_override && !is_flag_of_config(*command, word)) no_such_option(*command, word);
      } else if (option->get_expected_max() == 0 && word.find('=') != std::string::npos) {
        usage_error(full_name(*command) + ": " + option->get_name() +
                    " takes no value; give it alone");
      } else if (option->get_expected_min() > 0 && word.find('=') == std::string::npos) {
        ++i;  // its value
      }
      continue;
    }
    const auto commands = commands_of(*command);
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const auto* each) { return each->get_name() == word; });
    if (!has_positional && named != commands.end()) {
      command = *named;
    } else if (!commands.empty() && command->get_require_subcommand_min() > 0) {
      no_such_command(*command, word);
    } else {
      has_positional = true;
    }
  }
}

const CLI::App& parsed_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : parsed_command(*parsed.front());
}

std::string lower_first(std::string text) {
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

[[noreturn]] void refuse_missing(const CLI::App& command) {
  const auto commands = commands_of(command);
  if (command.get_require_subcommand_min() > 0)
    usage_error(full_name(command) + " needs one of its commands: " + listed(names_of(commands)) +
                see_help(command));
  Words missing;
  for (const auto* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    missing.push_back(option->get_name() + " (" + lower_first(option->get_description()) + ")");
  }
  usage_error(full_name(command) + ": " + listed(missing, "and") +
              (missing.size() == 1 ? " is missing" : " are missing") +
              "; usage: " + usage_of(command));
}

const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const auto* option : command.get_options()) {
    const auto name = option->get_name();
    if (message.starts_with(name) && (found == nullptr || name.size() > found->get_name().size()))
      found = option;
  }
  return found;
}

/// An option without a value, with too many, or twice.
[[noreturn]] void refuse_mismatch(const CLI::App& command, const std::string& message) {
  const auto* option = option_in(command, message);
  if (option == nullptr) usage_error(full_name(command) + ": " + message + see_help(command));
  const std::string of = full_name(command) + ": " + option->get_name();
  if (option->get_expected_max() == 0) usage_error(of + " takes no value; give it alone");
  if (option->count() > static_cast<std::size_t>(option->get_items_expected_max()))
    usage_error(of + " is given " + (option->count() == 2 ? "twice" : "several times") +
                "; expected it once");
  usage_error(of + " needs a value: " + lower_first(option->get_description()));
}

[[noreturn]] void refuse_extra(const CLI::App& command) {
  const Words extra = command.remaining();
  const std::string word = extra.empty() ? "" : replace_bad_utf8(extra.front());
  if (is_option_word(word)) no_such_option(command, word);
  // `eval shwo FILE.db arc_easy 3`: the first word was taken for an argument.
  for (const auto* option : command.get_options()) {
    if (option->nonpositional() || option->results().empty()) continue;
    if (const auto close = nearest(option->results().front(), names_of(commands_of(command))))
      usage_error("`" + option->results().front() + "` is no command of " + full_name(command) +
                  "; did you mean `" + full_name(command) + " " + *close + "`?");
  }
  usage_error(full_name(command) + ": `" + word +
              "` is one argument too many; usage: " + usage_of(command));
}

[[noreturn]] void explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed_command(app);
  const std::string name = full_name(command), message = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind == CLI::ExitCodes::RequiredError) refuse_missing(command);
  if (kind == CLI::ExitCodes::ExtrasError) refuse_extra(command);
  if (kind == CLI::ExitCodes::ArgumentMismatch) refuse_mismatch(command, message);
  if (kind == CLI::ExitCodes::ValidationError) usage_error(name + ": " + message);
  for (const auto& [middle, says] :
       {std::pair<std::string, std::string>{" requires ", " needs "}, {" excludes ", " and "}}) {
    const auto at = message.find(middle);
    if (at == std::string::npos) continue;
    const std::string other = message.substr(at + middle.size());
    usage_error(
        name + ": " + message.substr(0, at) + says + other +
        (says == " and " ? " exclude each other; give one of them" : ", which is not given"));
  }
  usage_error(name + ": " + message + see_help(command));
}

}  // namespace

void refuse_unknown_options(const CLI::App& command, const Words& words) {
  for (const auto& word : words) {
    if (!is_option_word(word)) continue;
    const std::string name = option_name(word);
    if (word.find('=') == std::string::npos && !is_flag_of_config(command, word))
      no_such_option(command, word);
    if (key_of(word) != nullptr) continue;
    std::string dashed = name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    for (const auto& known : option_names(command)) {
      if (known == dashed)
        usage_error(full_name(command) + ": `--" + name +
                    "` is no key of the config; did you mean `--" + known + "`?");
    }
  }
}

void parse_words(CLI::App& app, Words words) {
  // `help runs tag` is `runs tag --help`.
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  try {
    check_names(app, words);
    std::reverse(words.begin(), words.end());  // the parser takes them from the back
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) explain(app, error);
    app.exit(error, std::cout, std::cerr);
  }
}

std::string listed(const Words& words, const std::string& last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " " + last + " " : ", ") + words[i];
  return text;
}

}  // namespace olmo::cli
