#include <map>

#include "cli/interface/completion.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

constexpr char kHelpers[] = R"bash(
# Candidates, one a line of stdin, with what stands before them in the word.
_olmo_harness_add() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$before$line"); done
}

_olmo_harness_words() {
  local IFS=$' \t\n'
  _olmo_harness_add < <(compgen -W "$1" -- "$current")
}

# The last of words that commas separate.
_olmo_harness_list() {
  local head=${current%"${current##*,}"}
  before+=$head
  current=${current#"$head"}
  _olmo_harness_words "$1"
}

_olmo_harness_folders() {
  compopt -o filenames 2>/dev/null
  _olmo_harness_add < <(compgen -d -- "$current")
}

# Files of the given patterns, or all, and folders.
_olmo_harness_files() {
  local name pattern
  compopt -o filenames 2>/dev/null
  while IFS= read -r name; do
    if (($# == 0)) || [[ -d ${name/#\~/$HOME} ]]; then
      COMPREPLY+=("$before$name")
      continue
    fi
    for pattern; do
      [[ $name == $pattern ]] && COMPREPLY+=("$before$name")
    done
  done < <(compgen -f -- "$current")
}

# Files as the value of a config key, also in a list: [a,b
_olmo_harness_key_files() {
  local name head=${current%"${current##*[[,]}"}
  before+=$head
  current=${current#"$head"}
  compopt -o nospace 2>/dev/null
  while IFS= read -r name; do
    [[ -d $name ]] && name+=/
    COMPREPLY+=("$before$name")
  done < <(compgen -f -- "$current")
}
)bash";

constexpr char kMainBegin[] = R"bash(
_olmo_harness() {
  COMPREPLY=()
  # Bash cuts words at = and : (COMP_WORDBREAKS); here they are put together again.
  local -a words=()
  local n=-1 i word glued=
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]-}
    if ((n >= 0)) && [[ $word == [=:]* || $glued ]]; then
      words[n]+=$word
    else
      words[++n]=$word
    fi
    glued=
    [[ $word == *[=:] ]] && glued=1
  done
  ((n >= 0)) || return 0
  local current=${words[n]} before='' command='' option='' count=0 helping=
  for ((i = 0; i < n; i++)); do
    word=${words[i]}
    if [[ $option ]]; then
      option=
      continue
    fi
    case "$command $word" in
      ' help') helping=1 ;;
)bash";

constexpr char kMainMiddle[] = R"bash(      *)
        [[ $word == -* ]] || ((count++)) ;;
    esac
  done
  if [[ ! $option && $current == --*=* ]]; then
    option=${current%%=*}
    before=$option=
    current=${current#*=}
  fi
  if [[ $option ]]; then
    _olmo_harness_value "$command $option"
  fi
  # An option that takes no value here is a key of a config: --seed=1
  if [[ ! $option || ( $before && ${#COMPREPLY[@]} == 0 ) ]]; then
    current=$before$current
    before=
    if [[ $current == -* && $current != *=* ]]; then
      _olmo_harness_options
    else
      ((count == 0)) && _olmo_harness_commands
      [[ $helping ]] || _olmo_harness_argument
    fi
  fi
  # What bash replaces is the last piece of the word alone.
  word=${COMP_WORDS[COMP_CWORD]-}
  [[ $word == [=:] ]] && word=
  local head=${words[n]%"$word"}
  for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do
    COMPREPLY[i]=${COMPREPLY[i]#"$head"}
  done
}

complete -F _olmo_harness olmo-harness
)bash";

/// Patterns of a `case` that do the same, by what they do.
class Cases {
 public:
  void add(const std::string& pattern, const std::string& action) {
    if (!action.empty()) patterns_[action].push_back(quoted(pattern));
  }
  /// The cases, each on a line of its own.
  [[nodiscard]] std::string text(const std::string& indent) const {
    std::string lines;
    for (const auto& [action, patterns] : patterns_)
      lines.append(indent).append(joined(patterns, " | ") + ") ").append(action + " ;;\n");
    return lines;
  }

 private:
  std::map<std::string, std::vector<std::string>> patterns_;
};

std::string words_action(const std::vector<std::string>& words, bool by_commas) {
  if (words.empty()) return {};
  return (by_commas ? "_olmo_harness_list " : "_olmo_harness_words ") + quoted(joined(words, " "));
}

std::string path_action(Takes kind) {
  const Paths paths = paths_of(kind);
  if (paths.folders) return "_olmo_harness_folders";
  if (!paths.files) return {};
  std::string action = "_olmo_harness_files";
  for (const auto& ending : paths.endings) action += " '*." + ending + "'";
  return action;
}

std::string action_of(const Vocabulary& vocabulary, const ValueFacts& value, bool by_commas) {
  std::string action = words_action(vocabulary.words_of(value), by_commas);
  const std::string paths = path_action(value.kind);
  if (!action.empty() && !paths.empty()) action += "; ";
  return action + paths;
}

/// A function that is a `case` over "$command".
std::string function(const std::string& name, const std::string& over, const std::string& cases) {
  return "\n" + name + "() {\n  case " + over + " in\n" + cases + "  esac\n}\n";
}

std::string settings_function(const Vocabulary& vocabulary) {
  Cases values;
  std::vector<std::string> keys;
  for (const auto& key : vocabulary.keys) {
    keys.push_back(key.path + "=");
    values.add(key.path, key.value.kind == Takes::kPath ? "_olmo_harness_key_files"
                                                        : action_of(vocabulary, key.value, false));
  }
  return R"bash(
# key.path=value, or --key.path=value
_olmo_harness_settings() {
  if [[ $current != *=* ]]; then
    [[ $current == -* ]] && before=-- current=${current#--}
    compopt -o nospace 2>/dev/null
    _olmo_harness_words )bash" +
         quoted(joined(keys, " ")) + R"bash(
    return
  fi
  local key=${current%%=*}
  before=$key=
  current=${current#*=}
  case ${key#--} in
)bash" + values.text("    ") +
         "  esac\n}\n";
}

}  // namespace

std::string bash_completion(const Vocabulary& vocabulary) {
  Cases options, commands, values, arguments;
  std::string enter, take;
  for (const auto* command : all_commands(vocabulary.program)) {
    std::vector<std::string> names, below;
    for (const auto& option : command->options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.value.kind == Takes::kNothing) continue;
      for (const auto& name : option.names) {
        take += (take.empty() ? "" : " | ") + quoted(command->path + " " + name);
        values.add(command->path + " " + name,
                   action_of(vocabulary, option.value, option.by_commas));
      }
    }
    options.add(command->path, words_action(names, false));
    for (const auto& each : command->commands) {
      below.push_back(each.name);
      enter += (enter.empty() ? "" : " | ") + quoted(command->path + " " + each.name);
    }
    if (command->path.empty()) below.emplace_back("help");
    commands.add(command->path, words_action(below, false));
    for (std::size_t i = 0; i < command->arguments.size(); ++i) {
      const auto& argument = command->arguments[i];
      arguments.add(command->path + " " + std::to_string(i),
                    action_of(vocabulary, argument.value, false));
    }
  }
  // Behind the last argument: more of it, or keys of a config.
  std::string more;
  for (const auto* command : all_commands(vocabulary.program)) {
    const auto& last = command->arguments;
    std::string action;
    if (!last.empty() && last.back().repeated)
      action = action_of(vocabulary, last.back().value, false);
    if (command->sets_keys) action = "_olmo_harness_settings";
    if (!action.empty()) more += "    " + quoted(command->path + " ") + "*) " + action + " ;;\n";
  }
  return "# Completion of olmo-harness in bash, made by `olmo-harness completion bash`.\n" +
         std::string(kHelpers) + settings_function(vocabulary) +
         function("_olmo_harness_options", "$command", options.text("    ")) +
         function("_olmo_harness_commands", "$command", commands.text("    ")) +
         function("_olmo_harness_value", "$1", values.text("    ")) +
         function("_olmo_harness_argument", "\"$command $count\"", arguments.text("    ") + more) +
         kMainBegin + "      " + enter +
         ")\n        if ((count == 0)); then command=${command:+$command }$word; else ((count++)); "
         "fi ;;\n      " +
         take + ")\n        option=$word ;;\n" + kMainMiddle;
}

}  // namespace olmo::cli
