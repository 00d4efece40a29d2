#include "cli/interface/man_page.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <sstream>

#include "cli/commands.h"
#include "cli/surroundings.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

/// Characters that mean something else to roff: a minus that can be copied is no hyphen, and quotes
/// would be curved.
struct Sign {
  char character;
  const char* roff;
};
constexpr std::array<Sign, 7> kSigns = {{{'\\', "\\e"},
                                         {'-', "\\-"},
                                         {'~', "\\(ti"},
                                         {'^', "\\(ha"},
                                         {'`', "\\(ga"},
                                         {'\'', "\\(aq"},
                                         {'\n', " "}}};

/// Text as roff shows it, on one line.
std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      const char c = text[at++];
      const auto sign = std::ranges::find(kSigns, c, &Sign::character);
      out += sign == kSigns.end() ? std::string(1, c) : sign->roff;
      continue;
    }
    const auto [code, size] = decode_utf8(std::string_view(text).substr(at));
    at += size;
    if (code == 0x2026) {  // which a terminal without UTF-8 does not have
      out += "...";
      continue;
    }
    std::ostringstream hex;
    hex << std::hex << std::uppercase;
    hex.width(4);
    hex.fill('0');
    hex << code;
    out += "\\[u" + hex.str() + "]";
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string section(const std::string& title) { return ".SH " + title + "\n"; }

/// A paragraph that hangs on what it explains.
std::string entry(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + text + "\n";
}

std::string sentence(const std::string& text) {
  return roff(text) + (text.empty() || text.ends_with('.') ? "" : ".");
}

/// A footer: its sentences are paragraphs, its examples are to be copied.
std::string footer(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Example: ")) {
      out += ".PP\nExample:\n";
      line = "  " + line.substr(9);
    }
    out += line.starts_with("  ") ? ".PP\n.RS 4\n.nf\n" + roff(line.substr(2)) + "\n.fi\n.RE\n"
                                  : ".PP\n" + roff(line) + "\n";
  }
  return out;
}

std::string tag_of(const OptionFacts& option) {
  std::string tag;
  for (const auto& name : option.names) tag += (tag.empty() ? "" : ", ") + bold(name);
  return option.placeholder.empty() ? tag : tag + " " + italic(option.placeholder);
}

std::string command_text(const CommandFacts& command) {
  std::string text = ".SS \"" + roff(command.path) + "\"\n" + sentence(command.description) +
                     "\n.PP\n" + bold(command.usage) + "\n";
  for (const auto& argument : command.arguments)
    text += entry(italic(argument.names.front()), sentence(argument.text));
  if (command.sets_keys)
    text += entry(italic("key.path=value"), "Sets a key of the config; a list is [a, b].");
  for (const auto& option : command.options) {
    if (option.names.front() != "--help") text += entry(tag_of(option), sentence(option.text));
  }
  return text + footer(command.footer);
}

}  // namespace

std::string man_page(const CommandFacts& program, const BuildInfo& build) {
  std::string text =
      ".\\\" Made by `olmo-harness man`.\n.TH OLMO\\-HARNESS 1 \"" + build.commit_date +
      "\" \"olmo\\-harness " + roff(build.version) + "\" \"User Commands\"\n" + section("NAME") +
      "olmo\\-harness \\- train, evaluate, compare and audit OLMo models\n" + section("SYNOPSIS") +
      bold("olmo-harness") + " " + italic("COMMAND") + " ...\n" + section("DESCRIPTION") +
      sentence(program.description) + "\n.PP\n" + bold("olmo-harness help") + " " +
      italic("COMMAND") + " shows a command's arguments, options and examples, and " +
      bold("olmo-harness help") + " " + italic("KEY") + " explains a key of a config.\n";
  for (const auto& command : program.commands)
    text += entry(bold(command.name), sentence(command.description));
  text += section("OPTIONS");
  for (const auto& option : program.options) text += entry(tag_of(option), sentence(option.text));
  text += section("COMMANDS");
  for (const auto* command : all_commands(program)) {
    const bool only_groups = !command->commands.empty() && command->arguments.empty();
    if (!command->path.empty() && !only_groups) text += command_text(*command);
  }
  text += section("\"EXIT STATUS\"");
  for (const auto& [code, meaning] : exit_codes())
    text += entry(bold(std::to_string(code)), sentence(meaning));
  text += ".PP\n" + bold("report parity") + " has codes of its own, see there.\n" +
          section("ENVIRONMENT");
  for (const auto& [name, meaning] : environment_variables())
    text += entry(bold(name), sentence(meaning));
  text += section("FILES");
  for (const auto& [path, meaning] : used_files()) text += entry(italic(path), sentence(meaning));
  return text;
}

void add_man(const Command& program, const char* group,
             const std::function<CommandFacts()>& facts) {
  const Command command = program.add("man", "Print the man page", group);
  command.footer("Example: olmo-harness man > olmo-harness.1 && man ./olmo-harness.1");
  command.action([facts] { std::cout << man_page(facts(), build_info()); });
}

}  // namespace olmo::cli
