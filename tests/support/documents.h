// The documents of the repository, taken apart for tests that hold them to what is true.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/input_file.h"

namespace olmo::test {

/// A fenced block of a document.
struct Fence {
  std::string info;  ///< after the backticks: "sh", "text", "sh needs the network", …
  std::vector<std::string> lines;
  int line = 0;  ///< of the document, from 1: of the opening backticks
};

struct Document {
  std::filesystem::path path;
  std::vector<Fence> fences;
  std::vector<std::string> prose;  ///< the other lines; those of fences are empty here
};

inline Document read_document(const std::filesystem::path& path) {
  Document document{path, {}, {}};
  std::istringstream in(olmo::read_file(path));
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    const bool mark = line.starts_with("```");
    if (mark && !inside)
      document.fences.push_back({line.substr(3), {}, static_cast<int>(document.prose.size()) + 1});
    if (!mark && inside) document.fences.back().lines.push_back(line);
    document.prose.push_back(mark || inside ? "" : line);
    if (mark) inside = !inside;
  }
  return document;
}

/// Every .md file that is kept: those in folders for outputs are not.
inline std::vector<Document> all_documents() {
  namespace fs = std::filesystem;
  const fs::path root = OLMO_SOURCE_DIR;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.path().extension() == ".md") paths.push_back(entry.path());
  for (const char* folder : {"docs", "src", "tests", "bench", "evals", "configs"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".md") paths.push_back(entry.path());
  for (const char* page :
       {"reports/README.md", "reports/against_olmo.md", "reports/against_olmo_core.md",
        "reports/against_olmo_on_ranks.md", "reports/against_older_olmo.md",
        "reports/determinism.md", "reports/same_bits.md", "reports/tasks_against_olmo.md",
        "reports/sample/parity.md", "checkpoints/README.md"})
    paths.push_back(root / page);
  std::sort(paths.begin(), paths.end());
  std::vector<Document> documents;
  for (const auto& path : paths) documents.push_back(read_document(path));
  return documents;
}

/// The texts between single backticks of a line.
inline std::vector<std::string> code_spans(const std::string& line) {
  std::vector<std::string> spans;
  for (auto begin = line.find('`'); begin != std::string::npos;) {
    const auto end = line.find('`', begin + 1);
    if (end == std::string::npos) break;
    spans.push_back(line.substr(begin + 1, end - begin - 1));
    begin = line.find('`', end + 1);
  }
  return spans;
}

/// The commands of a block: a line each, joined where a line ends in a backslash.
inline std::vector<std::string> commands_of(const Fence& fence) {
  std::vector<std::string> commands;
  bool more = false;
  for (std::string line : fence.lines) {
    const bool continues = line.ends_with('\\');
    if (continues) line.pop_back();
    if (more)
      commands.back() += " " + line;
    else if (!line.empty())
      commands.push_back(line);
    more = continues;
  }
  return commands;
}

}  // namespace olmo::test
