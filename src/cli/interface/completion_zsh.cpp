#include "cli/interface/completion.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

constexpr char kHelpers[] = R"zsh(
# Some words, or what another function completes.
_olmo_harness_or() {
  local -a words=(${=1})
  shift
  local done=1
  compadd -a words && done=0
  "$@" && done=0
  return done
}

# Words that commas separate.
_olmo_harness_list() {
  local -a words=(${=1})
  compset -P '*,'
  compadd -qS , -a words
}

# Files as the value of a config key, also in a list: [a,b
_olmo_harness_key_files() {
  compset -P '*[\[,]'
  _files
}
)zsh";

/// A text within a specification of _arguments, in single quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out;
}

std::string function_name(const CommandFacts& command) {
  std::string name = "_olmo_harness";
  if (!command.path.empty()) name += "_" + command.path;
  for (char& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

std::string path_action(Takes kind) {
  const Paths paths = paths_of(kind);
  if (paths.folders) return "_files -/";
  if (!paths.files) return {};
  if (paths.endings.empty()) return "_files";
  // Without `|` zsh takes what stands in parentheses at a pattern's end for qualifiers.
  const std::string endings = joined(paths.endings, "|");
  return "_files -g \"*." + (paths.endings.size() == 1 ? endings : "(" + endings + ")") + "\"";
}

/// What _arguments does for a value. A leading space keeps it from adding options to the call.
std::string action_of(const Vocabulary& vocabulary, const ValueFacts& value, bool by_commas) {
  const std::string words = joined(vocabulary.words_of(value), " ");
  const std::string paths = path_action(value.kind);
  if (words.empty()) return paths.empty() ? " " : paths;
  if (!paths.empty()) return " _olmo_harness_or \"" + words + "\" " + paths;
  return by_commas ? " _olmo_harness_list \"" + words + "\"" : "(" + words + ")";
}

std::string specification(const Vocabulary& vocabulary, const OptionFacts& option) {
  const bool takes = option.value.kind != Takes::kNothing;
  const std::string text = "[" + escaped(brief(option.text)) + "]" +
                           (takes ? ":" + escaped(option.placeholder) + ":" +
                                        action_of(vocabulary, option.value, option.by_commas)
                                  : "");
  std::string lines;
  for (const auto& name : option.names) {
    const std::string others = option.repeated ? "*" : "(" + joined(option.names, " ") + ")";
    const bool is_long = name.starts_with("--");
    lines += "    '" + others + name + (takes && is_long ? "=" : "") + text + "' \\\n";
  }
  return lines;
}

/// The function that completes what stands behind a command.
std::string command_function(const Vocabulary& vocabulary, const CommandFacts& command) {
  std::string text = "\n" + function_name(command) + "() {\n";
  std::string commands, enter;
  for (const auto& each : command.commands) {
    enter += "      " + each.name + ") shift words; ((CURRENT--)); " + function_name(each) +
             "; return ;;\n";
    commands += "    " + quoted(each.name + ":" + brief(each.description)) + "\n";
  }
  if (command.path.empty()) commands += "    'help:Show the help of a command or a config key'\n";
  if (!enter.empty()) {
    text += "  if ((CURRENT > 2)); then\n    case $words[2] in\n" + enter + "    esac\n  fi\n" +
            "  local -a commands=(\n" + commands + "  )\n";
  }
  text += "  _arguments -S \\\n";
  for (const auto& option : command.options) text += specification(vocabulary, option);
  const std::string describe = " _describe command commands";
  std::size_t place = 0;
  for (const auto& argument : command.arguments) {
    const bool last = ++place == command.arguments.size();
    std::string action = action_of(vocabulary, argument.value, false);
    if (place == 1 && !enter.empty())
      action = " " + function_name(command) + "_first " +
               (path_action(argument.value.kind).empty() ? ":" : path_action(argument.value.kind));
    const std::string where = last && argument.repeated ? "*" : std::to_string(place);
    text += "    '" + where + ":" + escaped(argument.placeholder) + ":" + action + "' \\\n";
  }
  if (command.sets_keys) text += "    '*:key.path=value: _olmo_harness_settings' \\\n";
  if (command.arguments.empty() && !enter.empty()) text += "    '1:command:" + describe + "' \\\n";
  text.erase(text.size() - 3);  // the last line goes on nowhere
  text += "\n}\n";
  if (!command.arguments.empty() && !enter.empty())
    text +=
        "\n" + function_name(command) + "_first() {\n  _describe command commands\n  \"$@\"\n}\n";
  return text;
}

std::string settings_function(const Vocabulary& vocabulary) {
  std::string keys, values;
  for (const auto& key : vocabulary.keys) {
    keys += "    " + quoted(key.path + ":" + key.text) + "\n";
    const auto words = vocabulary.words_of(key.value);
    if (!words.empty()) {
      values += "      " + key.path + ") compadd " + joined(words, " ") + " ;;\n";
    } else if (key.value.kind == Takes::kPath) {
      values += "      " + key.path + ") _olmo_harness_key_files ;;\n";
    }
  }
  return "\n# key.path=value, or --key.path=value\n_olmo_harness_settings() {\n"
         "  if compset -P '*='; then\n"
         "    local key=${${IPREFIX%=}##*[= ]}\n    case ${key#--} in\n" +
         values + "    esac\n    return\n  fi\n  local -a keys=(\n" + keys +
         "  )\n  compset -P -- '--'\n  _describe 'key of the config' keys -S =\n}\n";
}

}  // namespace

std::string zsh_completion(const Vocabulary& vocabulary) {
  std::string text =
      "#compdef olmo-harness\n"
      "# Completion of olmo-harness in zsh, made by `olmo-harness completion zsh`.\n" +
      std::string(kHelpers) + settings_function(vocabulary);
  for (const auto* command : all_commands(vocabulary.program))
    text += command_function(vocabulary, *command);
  // Sourced, it registers itself; from a folder of $fpath, the file is the function.
  return text +
         "\nif [[ $funcstack[1] == _olmo-harness ]]; then\n  _olmo_harness \"$@\"\nelse\n"
         "  compdef _olmo_harness olmo-harness\nfi\n";
}

}  // namespace olmo::cli
