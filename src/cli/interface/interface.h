// What the program takes, as data: the commands, arguments and options that Command
// (cli/interface/command.h) has declared. The man page and the scripts that complete words in a
// shell are made from it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
class Option;
}  // namespace CLI

namespace olmo::cli {

/// What the value of an option or argument stands for, so that a shell can complete it.
enum class Takes {
  kNothing,    ///< a flag: no value
  kText,       ///< anything
  kWords,      ///< one of some words
  kFile,       ///< a file, or a folder on the way to one
  kFolder,     ///< a folder
  kPath,       ///< a file or a folder
  kRun,        ///< a RUN: a database or a run folder
  kConfig,     ///< a config of a training
  kTask,       ///< a task of eval
  kSuite,      ///< a suite of eval
  kTokenizer,  ///< a tokenizer.json, or the name of a known one
};

struct ValueFacts {
  Takes kind = Takes::kText;
  std::vector<std::string> words = {};  ///< that can stand there as they are
};

/// What the word for a value in the help says: "FILE" is a file, "latest|DIR" the word `latest` or
/// a folder, "NAME=PATH" a text.
ValueFacts value_named(const std::string& placeholder);

struct OptionFacts {
  std::vector<std::string> names;  ///< "--help", "-h"; of an argument its name alone, "RUN"
  std::string placeholder;         ///< "FILE"; empty for a flag
  std::string text;                ///< as help says it, with default and needs
  ValueFacts value;
  bool required = false;
  bool repeated = false;   ///< takes several values
  bool by_commas = false;  ///< `a,b` are two values
};

struct CommandFacts {
  std::string name;   ///< "list"
  std::string path;   ///< "runs list"; empty for the program
  std::string usage;  ///< "olmo-harness runs list DB ... [OPTIONS]"
  std::string description, footer;
  bool sets_keys = false;              ///< takes key.path=value behind its first argument
  std::vector<OptionFacts> arguments;  ///< by their place
  std::vector<OptionFacts> options;
  std::vector<CommandFacts> commands;
};

/// `values`: of the options that say more than their placeholder.
CommandFacts facts_of(const CLI::App& app, const std::map<const CLI::Option*, ValueFacts>& values);

/// The command and all below it, the program first.
std::vector<const CommandFacts*> all_commands(const CommandFacts& program);

}  // namespace olmo::cli
