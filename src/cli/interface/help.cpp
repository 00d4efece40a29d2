#include "cli/interface/help.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "core/process/terminal.h"

namespace olmo::cli {
namespace {

constexpr std::size_t kNameColumn = 24;

std::size_t help_width() {
  const auto columns = terminal_width(STDOUT_FILENO).value_or(80);
  return std::clamp<std::size_t>(columns, 40, 100);
}

/// A line of a footer: a command stays one, with the shell's backslashes where it is folded.
std::string footer_line(const std::string& line, std::size_t width) {
  const auto indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string text = line.substr(indent);
  const auto command = text.find("olmo-harness ");
  const bool is_command = command == 0 || text.substr(0, command) == "Example: ";
  if (!is_command) return std::string(indent, ' ') + wrapped(text, width, indent, indent);
  return line.substr(0, indent + command) +
         wrapped(text.substr(command), width, indent + 4, indent + command, " \\");
}

/// A name, and beside it in its column what there is to say of it: below, where the name is long.
std::string entry(const std::string& name, const std::string& text, std::size_t width,
                  std::size_t column = kNameColumn) {
  const std::string line = "  " + name;
  const auto used = display_width(line);
  const bool has_room = used + 2 <= column;
  return line + (has_room ? "" : "\n") + std::string(has_room ? column - used : column, ' ') +
         wrapped(text, width, column, column) + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (app->get_parent() == nullptr)
      return overview(*app) + "\n" + make_groups(app, mode) + make_footer(app);
    return make_usage(app, std::move(name)) + "\n" + wrapped(app->get_description(), width_, 0) +
           ".\n" + make_positionals(app) + overrides(*app) + make_groups(app, mode) +
           make_subcommands(app, mode) + make_footer(app);
  }

  std::string make_usage(const CLI::App* app, std::string) const override {
    return wrapped("Usage: " + usage_of(*app), width_, 8) + "\n";
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = "\n" + (is_positional ? std::string("Arguments") : group) + "\n";
    for (const auto* option : options) text += make_option(option, is_positional);
    return text;
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = is_positional ? option->get_name() : option->get_name(false, true);
    if (!is_positional && option->get_expected_max() > 0) name += " " + option->get_type_name();
    return entry(name, option_text(*option), width_);
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode) const override {
    const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty()) return {};
    std::string text = "\nCommands\n";
    for (const auto* command : commands) text += make_subcommand(command);
    return text;
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description(), width_);
  }

  std::string make_footer(const CLI::App* app) const override {
    if (app->get_footer().empty()) return {};
    std::string text = "\n";
    std::istringstream lines(app->get_footer());
    for (std::string line; std::getline(lines, line);) text += footer_line(line, width_) + "\n";
    return text;
  }

 private:
  /// What Command::overrides() takes is no argument to the parser.
  [[nodiscard]] std::string overrides(const CLI::App& app) const {
    if (!app.get_allow_extras()) return {};
    return entry("key.path=value", "Sets a key of the config; a list is [a, b]", width_);
  }

  std::size_t width_ = help_width();
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent,
                    std::size_t used, const std::string& end) {
  std::string out;
  std::size_t column = used;
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    const auto size = display_width(word);
    if (!first && column + 1 + size + end.size() > width) {
      out += end + "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += " ";
      ++column;
    }
    out += word;
    column += size;
  }
  return out;
}

std::string fitted(const std::string& text) {
  const auto width = help_width();
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto begin = std::min(line.find_first_not_of(' '), line.size());
    const auto gap = line.find("  ", begin);
    const auto second = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
    if (second == std::string::npos) {
      out += std::string(begin, ' ') + wrapped(line.substr(begin), width, begin, begin) + "\n";
    } else {
      out += entry(line.substr(begin, gap - begin), line.substr(second), width,
                   std::min(second, kNameColumn));
    }
  }
  return out;
}

std::string usage_of(const CLI::App& command) {
  std::string text = command.get_name();
  for (const CLI::App* up = command.get_parent(); up != nullptr; up = up->get_parent())
    text = up->get_name() + " " + text;
  for (const auto* option : command.get_options()) {
    if (option->nonpositional()) continue;
    const std::string more = option->get_items_expected_max() > 1 ? " ..." : "";
    text += option->get_required() ? " " + option->get_name() + more
                                   : " [" + option->get_name() + more + "]";
  }
  if (command.get_allow_extras()) text += " [key.path=value ...]";
  for (const auto* option : command.get_options()) {
    if (option->nonpositional() && option->get_required())
      text += " " + option->get_name() + " " + option->get_type_name();
  }
  const bool needs_command = command.get_require_subcommand_min() > 0;
  return text + (needs_command ? " COMMAND" : " [OPTIONS]");
}

std::string option_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  if (option.nonpositional() && option.get_required()) text += " (required)";
  for (const auto* needed : option.get_needs()) text += " (with " + needed->get_name() + ")";
  return text;
}

std::string overview(const CLI::App& app) {
  const auto width = help_width();
  std::string text =
      wrapped(app.get_description(), width, 0) + "\n\nUsage: " + app.get_name() + " COMMAND ...\n";
  std::string group;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group() != group) text += "\n" + command->get_group() + "\n";
    group = command->get_group();
    std::string line = "  " + command->get_name();
    line.resize(14, ' ');
    text += line + wrapped(command->get_description(), width, 14, 14) + "\n";
  }
  return text + "\n" +
         wrapped(
             app.get_name() + " help COMMAND shows a command's arguments, options and examples.",
             width, 0);
}

}  // namespace olmo::cli
