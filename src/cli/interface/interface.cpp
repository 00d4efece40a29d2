#include "cli/interface/interface.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/interface/help.h"

namespace olmo::cli {
namespace {

OptionFacts facts_of(const CLI::Option& option,
                     const std::map<const CLI::Option*, ValueFacts>& values) {
  OptionFacts facts;
  const bool is_argument = !option.nonpositional();
  if (is_argument) {
    facts.names = {option.get_name()};
  } else {
    for (const auto& name : option.get_lnames()) facts.names.push_back("--" + name);
    for (const auto& name : option.get_snames()) facts.names.push_back("-" + name);
  }
  const bool is_flag = option.get_expected_max() == 0;
  if (!is_flag) facts.placeholder = is_argument ? option.get_name() : option.get_type_name();
  const auto said = values.find(&option);
  facts.value = is_flag                ? ValueFacts{Takes::kNothing}
                : said != values.end() ? said->second
                                       : value_named(facts.placeholder);
  facts.text = option_text(option);
  facts.required = option.get_required();
  facts.repeated = option.get_items_expected_max() > 1;
  facts.by_commas = option.get_delimiter() == ',';
  return facts;
}

}  // namespace

ValueFacts value_named(const std::string& placeholder) {
  ValueFacts facts;
  std::size_t begin = 0;
  while (begin <= placeholder.size()) {
    const auto end = std::min(placeholder.find('|', begin), placeholder.size());
    const std::string word = placeholder.substr(begin, end - begin);
    begin = end + 1;
    if (word == "FILE" || word.starts_with("FILE.")) {
      facts.kind = Takes::kFile;
    } else if (word == "DIR" || word == "FOLDER") {
      facts.kind = Takes::kFolder;
    } else if (word == "PATH" || word == "INPUT" || word == "CHECKPOINT") {
      facts.kind = Takes::kPath;
    } else if (word == "DB" || word == "RUN") {
      facts.kind = Takes::kRun;
    } else if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos) {
      facts.words.push_back(word);
    }
  }
  return facts;
}

CommandFacts facts_of(const CLI::App& app, const std::map<const CLI::Option*, ValueFacts>& values) {
  CommandFacts facts;
  facts.name = app.get_name();
  for (const CLI::App* up = &app; up->get_parent() != nullptr; up = up->get_parent())
    facts.path = up->get_name() + (facts.path.empty() ? "" : " " + facts.path);
  facts.usage = usage_of(app);
  facts.description = app.get_description();
  facts.footer = app.get_footer();
  facts.sets_keys = app.get_allow_extras();
  for (const auto* option : app.get_options())
    (option->nonpositional() ? facts.options : facts.arguments)
        .push_back(facts_of(*option, values));
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    facts.commands.push_back(facts_of(*command, values));
  return facts;
}

std::vector<const CommandFacts*> all_commands(const CommandFacts& program) {
  std::vector<const CommandFacts*> all = {&program};
  for (const auto& command : program.commands)
    for (const auto* below : all_commands(command)) all.push_back(below);
  return all;
}

}  // namespace olmo::cli
