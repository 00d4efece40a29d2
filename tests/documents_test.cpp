// Links and file names in the documents lead somewhere.
#include "support/documents.h"

#include <regex>
#include <set>

#include "support/catch.h"

namespace olmo::test {
namespace {

namespace fs = std::filesystem;

/// The anchor that GitHub gives a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80)
      anchor += static_cast<char>(std::tolower(byte));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& path) {
  std::set<std::string> anchors;
  for (const auto& line : read_document(path).prose) {
    const auto marks = line.find_first_not_of('#');
    if (marks != 0 && marks != std::string::npos && line[marks] == ' ')
      anchors.insert(anchor_of(line.substr(marks + 1)));
  }
  return anchors;
}

void check_link(const fs::path& document, const std::string& link) {
  if (link.find("://") != std::string::npos) return;
  const auto hash = link.find('#');
  const auto file = link.substr(0, hash);
  const fs::path target = file.empty() ? document : document.parent_path() / file;
  INFO(document.string() << " links to " << link);
  REQUIRE(fs::exists(target));
  if (hash != std::string::npos) CHECK(anchors_of(target).contains(link.substr(hash + 1)));
}

/// A name with a folder that is written out: one of a file of this repository, with no words in
/// capitals that stand for something.
bool is_file_name(const std::string& code) {
  static const std::regex kName("[a-z0-9_.]+(/[A-Za-z0-9_.]+)+\\.(h|cpp|cu|sh|py|md)");
  static const std::regex kStandsFor("[A-Z]{2,}");
  if (code.starts_with("olmo/") || code.starts_with("torch/")) return false;  // of others
  return std::regex_match(code, kName) &&
         (code.ends_with(".md") || !std::regex_search(code, kStandsFor));
}

}  // namespace

TEST_CASE("every relative link of a document leads to a file, and to a heading of it",
          "[layering]") {
  static const std::regex kLink("\\]\\(([^)\\s]+)\\)");
  int links = 0;
  for (const auto& document : all_documents()) {
    for (const auto& line : document.prose) {
      for (std::sregex_iterator at(line.begin(), line.end(), kLink), end; at != end; ++at, ++links)
        check_link(document.path, (*at)[1]);
    }
  }
  CHECK(links > 20);
}

TEST_CASE("every source file, script and document that a document names exists", "[layering]") {
  const fs::path root = OLMO_SOURCE_DIR;
  int names = 0;
  for (const auto& document : all_documents()) {
    for (const auto& line : document.prose) {
      for (const auto& code : code_spans(line)) {
        if (!is_file_name(code)) continue;
        ++names;
        INFO(document.path.string() << " names " << code);
        CHECK((fs::exists(root / code) || fs::exists(document.path.parent_path() / code) ||
               fs::exists(root / "src" / code)));
      }
    }
  }
  CHECK(names > 50);
}

TEST_CASE("src/report/README.md has a place for every unit of its room", "[layering]") {
  const fs::path room = fs::path(OLMO_SOURCE_DIR) / "src/report";
  const std::string map = olmo::read_file(room / "README.md");
  for (const auto& file : fs::recursive_directory_iterator(room)) {
    const std::string folder = file.path().parent_path().filename().string();
    if (file.path().extension() != ".cpp" || folder == "stats" || folder == "page") continue;
    const std::string name = file.path().stem().string();
    INFO(name);
    CHECK((map.find("`" + name + "`") != map.npos || map.find("`" + name + ".cpp`") != map.npos));
  }
}

TEST_CASE("README.md is short enough to be read", "[layering]") {
  const auto readme = olmo::read_file(fs::path(OLMO_SOURCE_DIR) / "README.md");
  CHECK(std::count(readme.begin(), readme.end(), '\n') <= 150);
}

TEST_CASE("every source file has a test of its own or is in the list of those that do not",
          "[layering]") {
  const fs::path root = OLMO_SOURCE_DIR;
  const std::string list = "tests/units_without_test.txt";
  std::set<std::string> without;
  std::istringstream in(olmo::read_file(root / list));
  for (std::string line; std::getline(in, line);) {
    INFO(list << ": " << line);
    if (line.starts_with("tests/")) CHECK(fs::exists(root / line));
    if (line.starts_with("  ")) CHECK(without.insert(line.substr(2)).second);
  }
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    const auto file = fs::relative(entry.path(), root);
    if (file.extension() != ".cpp" || file.parent_path() == "src") continue;
    // What a command does is tested with its declaration, which has its name.
    if (file.parent_path() == "src/cli/compute" && fs::exists(root / "src/cli" / file.filename()))
      continue;
    auto test = root / "tests" / fs::relative(file, "src");
    test.replace_filename(file.stem().string() + "_test.cpp");
    const bool listed = without.erase(file.string()) == 1;
    INFO(file.string() << (listed ? " has a test of its own: take it out of "
                                  : " has no test of its own, and must not be added to ")
                       << list);
    CHECK(fs::exists(test) != listed);
  }
  for (const auto& gone : without) FAIL_CHECK(gone << " is gone: take it out of " << list);
}

}  // namespace olmo::test
