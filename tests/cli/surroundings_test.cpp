#include "cli/surroundings.h"

#include <regex>
#include <set>

#include "core/files/input_file.h"
#include "support/catch.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;

/// All of src/ but the tables themselves.
const std::string& source() {
  static const std::string kText = [] {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(OLMO_SOURCE_DIR "/src")) {
      const auto kind = entry.path().extension();
      if ((kind == ".cpp" || kind == ".h") && entry.path().stem() != "surroundings")
        text += read_file(entry.path());
    }
    return text;
  }();
  return kText;
}

/// Names of environment variables that the source reads, by what stands around them or by their
/// beginnings. A name that ends in `_` is a pattern of variables that are recorded only.
std::set<std::string> variables_read() {
  const std::regex read(
      "(?:getenv|variable)\\(\"([A-Z][A-Z_]*[A-Z])\"\\)|"
      "\"((?:SLURM|OMPI|PMIX?|OLMO|MASTER|TORCHELASTIC|GLOO|OMP|GOMP|KMP)_[A-Z_]*[A-Z])\"|"
      "\"((?:GROUP_|LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE)\"");
  std::set<std::string> names;
  for (std::sregex_iterator found(source().begin(), source().end(), read), end; found != end;
       ++found)
    for (std::size_t group = 1; group < found->size(); ++group)
      if ((*found)[group].matched) names.insert((*found)[group]);
  return names;
}

/// Those of the table, each by itself.
std::set<std::string> variables_told() {
  const std::regex name("[A-Z][A-Z_]+");
  std::set<std::string> names;
  for (const auto& row : environment_variables()) {
    const std::string text = row.name;
    if (text.starts_with("any other")) continue;
    for (std::sregex_iterator found(text.begin(), text.end(), name), end; found != end; ++found)
      names.insert(found->str());
  }
  return names;
}

}  // namespace

TEST_CASE("every environment variable that the source reads is in the table", "[cli]") {
  const auto told = variables_told();
  for (const auto& name : variables_read()) {
    INFO(name);
    CHECK(told.count(name) == 1);
  }
}

TEST_CASE("the table of environment variables has none that nothing reads", "[cli]") {
  for (const auto& name : variables_told()) {
    INFO(name);
    const bool is_read = source().find("\"" + name + "\"") != std::string::npos;
    CHECK((is_read || name == "TMPDIR"));  // that one the C++ library reads
  }
}

TEST_CASE("exit codes are told in their order, each once", "[cli]") {
  int before = -1;
  for (const auto& row : exit_codes()) {
    CHECK(row.code > before);
    before = row.code;
  }
  CHECK(exit_codes_text().find("75 stopped on request (resume it)") != std::string::npos);
}

}  // namespace olmo::cli
