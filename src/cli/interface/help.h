// How --help and the overview of the commands look.
#pragma once

#include <memory>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace olmo::cli {

/// Help no wider than the terminal (80 columns in a file), at most 100: usage, what the command
/// does, arguments and options in two columns, then the footer, whose lines that begin with the
/// program's name are commands to copy.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// `text` in lines of at most `width` columns, each after the first with `indent` spaces and all
/// but the last with `end` behind them. The first line has `used` columns already.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent,
                    std::size_t used = 0, const std::string& end = "");

/// Lines as wide as help is. What stands behind two spaces or more is a second column, in which its
/// line goes on.
std::string fitted(const std::string& text);

/// "olmo-harness runs list DB ... [OPTIONS]".
std::string usage_of(const CLI::App& command);
/// What help says of an option or argument: its description, its default, what it needs.
std::string option_text(const CLI::Option& option);

/// The commands by what they are for, one line each.
std::string overview(const CLI::App& app);

}  // namespace olmo::cli
