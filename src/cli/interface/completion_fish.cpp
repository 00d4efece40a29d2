#include "cli/interface/completion.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

constexpr char kHelpers[] = R"fish(
# Whether the words before the cursor are in command $argv[1], with at least $argv[2] arguments.
function __olmo_harness_at
    set -l tokens (commandline -opc)
    set -l command
    set -l count 0
    set -l option
    for token in $tokens[2..-1]
        if test -n "$option"
            set option
            continue
        end
        switch "$command $token"
            case %ENTER%
                if test $count -eq 0
                    set command (string trim -- "$command $token")
                else
                    set count (math $count + 1)
                end
            case %TAKE%
                set option $token
            case '* -*'
            case '*'
                set count (math $count + 1)
        end
    end
    test "$command" = "$argv[1]"; and test $count -ge $argv[2]; and test $count -le $argv[3]
end

# The last of words that commas separate.
function __olmo_harness_list
    set -l before (commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '[^,]*$' '')
    printf '%s\n' $before$argv
end

# Files as the value of a config key, also in a list: [a,b
function __olmo_harness_key_files
    set -l before (string replace -r '[^=,[]*$' '' -- $argv[1])
    set -l begun (string replace -r '^.*[=,[]' '' -- $argv[1])
    printf '%s\n' $before(complete -C "'' $begun" | string replace -r '\t.*' '')
end
)fish";

/// What a fish script does for a value, as options of `complete`.
std::string value_options(const Vocabulary& vocabulary, const ValueFacts& value, bool by_commas) {
  const std::string words = joined(vocabulary.words_of(value), " ");
  std::string text;
  if (!words.empty())
    text += " -a " + quoted(by_commas ? "(__olmo_harness_list " + words + ")" : words, "\\'");
  const Paths paths = paths_of(value.kind);
  if (paths.files) return " -F" + text;
  return std::string(paths.folders ? " -f -a '(__fish_complete_directories)'" : " -f") + text;
}

/// "complete" of what stands in a command with so many arguments before it.
std::string complete_at(const CommandFacts& command, std::size_t least, std::size_t most) {
  return "complete -c olmo-harness -n \"__olmo_harness_at '" + command.path + "' " +
         std::to_string(least) + " " + std::to_string(most) + "\"";
}

constexpr std::size_t kMany = 9999;

std::string command_lines(const Vocabulary& vocabulary, const CommandFacts& command) {
  std::string text = "\n";
  for (const auto& each : command.commands)
    text += complete_at(command, 0, 0) + " -a " + each.name + " -d " +
            quoted(brief(each.description), "\\'") + "\n";
  for (const auto& option : command.options) {
    text += complete_at(command, 0, kMany);
    for (const auto& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.value.kind != Takes::kNothing)
      text += " -r" + value_options(vocabulary, option.value, option.by_commas);
    text += " -d " + quoted(brief(option.text), "\\'") + "\n";
  }
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const auto& argument = command.arguments[i];
    if (argument.value.kind == Takes::kText && argument.value.words.empty()) continue;
    const bool goes_on = i + 1 == command.arguments.size() && argument.repeated;
    text += complete_at(command, i, goes_on ? kMany : i) +
            value_options(vocabulary, argument.value, false) + "\n";
  }
  if (command.sets_keys)
    text +=
        complete_at(command, command.arguments.size(), kMany) + " -a '(__olmo_harness_settings)'\n";
  return text;
}

std::string settings_function(const Vocabulary& vocabulary) {
  std::string keys, values;
  for (const auto& key : vocabulary.keys) {
    keys += "                " + quoted(key.path) + " " + quoted(key.text, "\\'") + " \\\n";
    const auto words = vocabulary.words_of(key.value);
    if (!words.empty()) {
      values += "        case " + key.path +
                "\n            printf '%s\\n' $before=" + joined(words, " $before=") + "\n";
    } else if (key.value.kind == Takes::kPath) {
      values += "        case " + key.path + "\n            __olmo_harness_key_files $token\n";
    }
  }
  keys.erase(keys.size() - 3);
  return "\n# key.path=value, or --key.path=value\nfunction __olmo_harness_settings\n"
         "    set -l token (commandline -ct)\n"
         "    set -l before (string replace -r '=.*' '' -- $token)\n"
         "    set -l key (string replace -r '^--' '' -- $before)\n"
         "    string match -q '*=*' -- $token; or set key\n"
         "    switch \"$key\"\n" +
         values + "        case '*'\n            printf '%s=\\t%s\\n' \\\n" + keys +
         "\n    end\nend\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

}  // namespace

std::string fish_completion(const Vocabulary& vocabulary) {
  std::string enter, take, lines;
  for (const auto* command : all_commands(vocabulary.program)) {
    for (const auto& each : command->commands)
      enter += (enter.empty() ? "" : " ") + quoted(command->path + " " + each.name);
    for (const auto& option : command->options) {
      if (option.value.kind == Takes::kNothing) continue;
      for (const auto& name : option.names)
        take += (take.empty() ? "" : " ") + quoted(command->path + " " + name);
    }
    lines += command_lines(vocabulary, *command);
  }
  return "# Completion of olmo-harness in fish, made by `olmo-harness completion fish`.\n" +
         replaced(replaced(kHelpers, "%ENTER%", enter), "%TAKE%", take) +
         settings_function(vocabulary) + "\ncomplete -c olmo-harness -f\n" +
         "complete -c olmo-harness -n \"__olmo_harness_at '' 0 0\" -a help -d 'Show the help of a "
         "command or a config key'\n" +
         lines;
}

}  // namespace olmo::cli
