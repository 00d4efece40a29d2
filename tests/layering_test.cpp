#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/compute/tensor.h"
#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/test_cases.h"

namespace {

namespace fs = std::filesystem;

// Room -> rooms that it may include besides itself (src/README.md).
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"core", {}},
    {"launcher", {"core"}},
    {"dist", {"core"}},
    {"ops", {"core"}},
    {"data", {"core"}},
    {"model", {"ops", "core"}},
    {"optim", {"ops", "core"}},
    {"store", {"core"}},
    {"sharding", {"core", "dist", "ops", "model", "optim"}},
    {"config", {"core", "data", "model", "optim"}},
    {"import", {"core", "store"}},
    {"exports", {"core", "store"}},
    {"energy", {"core", "store"}},
    {"models", {"core", "data", "model", "store", "config"}},
    {"eval", {"core", "data"}},
    {"evaluation", {"core", "dist", "data", "model", "store", "config", "models", "eval"}},
    {"page", {"core"}},
    {"monitor", {"core", "store", "page"}},
    {"report", {"core", "page", "store", "config"}},
    {"train",
     {"core", "dist", "ops", "data", "model", "optim", "store", "sharding", "config", "energy",
      "models", "eval", "evaluation"}},
    {"audit",
     {"core", "dist", "ops", "data", "model", "optim", "store", "sharding", "config", "models",
      "train"}},
    {"serve",
     {"core", "data", "store", "config", "eval", "evaluation", "page", "monitor", "report"}},
    {"cli", {"core",       "dist",   "ops",     "data",    "model",  "optim",  "store",
             "sharding",   "config", "import",  "exports", "energy", "models", "eval",
             "evaluation", "page",   "monitor", "report",  "train",  "audit",  "serve"}},
};

// External header prefix -> the only rooms that may include it (torch/: none, core/compute/tensor.h
// is enough, but for the transports of ranks and the files of torch.save). Of two prefixes the
// longer one holds.
const std::map<std::string, std::set<std::string>> kHomes = {
    {"torch/csrc/distributed/", {"dist"}},
    {"torch/csrc/jit/serialization/", {"store"}},
    {"caffe2/serialize/", {"store"}},
    {"hdf5.h", {"store"}},
    {"sqlite3.h", {"store"}},
    {"CLI/", {"cli"}},
    {"torch/", {}},
    {"yaml-cpp/", {"config"}},
    {"zip.h", {"data"}},
    {"zlib.h", {"core", "data"}},
    {"zstd.h", {"data"}},
    {"utf8proc.h", {"data"}},
    {"omp.h", {"core"}},
    {"openssl/", {"core"}},
    {"boost/asio/", {"serve"}},
    {"boost/beast/", {"serve"}},
    {"boost/", {"report"}},
};

// The files that parse CLI11, whose header alone takes seconds to compile; the others use
// cli/interface/command.h.
const std::set<std::string> kParsers = {"command.cpp", "help.cpp", "interface.cpp", "usage.cpp"};

std::vector<fs::path> sources() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(OLMO_SOURCE_DIR) / "src")) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp" || extension == ".cu")
      files.push_back(entry.path());
  }
  return files;
}

std::string room_of(const fs::path& file) {
  const auto relative = fs::relative(file, fs::path(OLMO_SOURCE_DIR) / "src");
  return relative.has_parent_path() ? relative.begin()->string() : "main";
}

std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex kInclude("^\\s*#include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) found.push_back(match[1]);
  }
  return found;
}

/// The rooms that CTest has an entry for: those of the loop in tests/CMakeLists.txt, cli with one a
/// file, and layering. Cases with the tag [gpu] are run by the entry gpu instead, but those of cli;
/// those with [browser] by the entry browser.
std::set<std::string> rooms_of_ctest() {
  std::set<std::string> rooms = {"cli", "layering"};
  const auto text = olmo::read_file(fs::path(OLMO_SOURCE_DIR) / "tests/CMakeLists.txt");
  std::smatch loop;
  REQUIRE(std::regex_search(text, loop, std::regex("foreach\\(room ([a-z ]+)\\)")));
  std::istringstream names(loop[1]);
  for (std::string name; names >> name;) rooms.insert(name);
  return rooms;
}

/// True if the CMakeLists.txt beside the file, or the next one above, compiles it.
bool is_compiled(const fs::path& file) {
  fs::path folder = file.parent_path();
  while (!fs::exists(folder / "CMakeLists.txt")) folder = folder.parent_path();
  const auto list = olmo::read_file(folder / "CMakeLists.txt");
  const std::regex word("[^\\s()]+");
  const std::set<std::string> words{std::sregex_token_iterator(list.begin(), list.end(), word), {}};
  return words.contains(fs::relative(file, folder).string());
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("every include follows the table of rooms", "[layering]") {
  for (const auto& file : sources()) {
    const auto room = room_of(file);
    if (room == "main") continue;
    REQUIRE(kAllowed.count(room) == 1);
    for (const auto& include : includes_of(file)) {
      const auto target = include.substr(0, include.find('/'));
      if (include.find('/') == std::string::npos || kAllowed.count(target) == 0) continue;
      INFO(file << " includes " << include);
      CHECK((target == room || kAllowed.at(room).count(target) == 1));
    }
  }
}

TEST_CASE("folders of a room do not include each other in circles", "[layering]") {
  // Folder -> folders of the same room that it includes; a room's own files may use all of them.
  std::map<fs::path, std::set<fs::path>> uses;
  for (const auto& file : sources()) {
    const auto own = fs::relative(file, fs::path(OLMO_SOURCE_DIR) / "src").parent_path();
    if (!own.has_parent_path()) continue;
    for (const auto& include : includes_of(file)) {
      const auto other = fs::path(include).parent_path();
      if (other == "ops/gpu")
        continue;  // kernels' sources include it where they are compiled for it
      if (other != own && other.parent_path() == own.parent_path()) uses[own].insert(other);
    }
  }
  CHECK(uses.size() > 5);
  for (bool grown = true; grown;) {
    grown = false;
    for (auto& [folder, all] : uses) {
      for (const auto& direct : std::set<fs::path>(all)) {
        if (!uses.contains(direct)) continue;
        for (const auto& next : uses[direct]) grown = all.insert(next).second || grown;
      }
    }
  }
  for (const auto& [folder, all] : uses) {
    INFO(folder);
    CHECK_FALSE(all.contains(folder));
  }
}

TEST_CASE("only the store speaks SQL", "[layering]") {
  const std::regex statement(
      "\"[^\"\n]*\\b(SELECT [a-z*1(]|INSERT (OR [A-Z]+ )?INTO |UPDATE [a-z_]+ SET |DELETE FROM "
      "|PRAGMA )");
  const std::regex connection("[.>]connection\\(\\)|[.>]prepare\\(\"");
  for (const auto& file : sources()) {
    if (room_of(file) == "store") continue;
    INFO(file << ": queries are functions of store, see src/README.md");
    const auto text = olmo::read_file(file);
    CHECK_FALSE(std::regex_search(text, statement));
    CHECK_FALSE(std::regex_search(text, connection));
    for (const auto& include : includes_of(file))
      CHECK((include != "store/database/table.h" && include != "store/runs/run_tables.h"));
  }
}

TEST_CASE("each external package has its home", "[layering]") {
  for (const auto& file : sources()) {
    for (const auto& include : includes_of(file)) {
      const auto found = std::find_if(kHomes.rbegin(), kHomes.rend(), [&](const auto& entry) {
        return include.starts_with(entry.first);
      });
      if (found == kHomes.rend()) continue;
      INFO(file << " includes " << include);
      CHECK(found->second.contains(room_of(file)));
      if (found->first == "CLI/") CHECK(kParsers.contains(file.filename().string()));
      if (room_of(file) == "dist" || room_of(file) == "serve")
        CHECK(file.extension() == ".cpp");  // they take 10 s to compile
    }
  }
}

// Parsing the library takes most of a second in each file that sees such a header.
TEST_CASE("no header but a precompiled one includes the whole JSON library", "[layering]") {
  for (const auto& file : sources()) {
    if (file.extension() != ".h" || file.parent_path().filename() == "precompiled") continue;
    INFO(file.string());
    for (const auto& include : includes_of(file)) CHECK(include != "nlohmann/json.hpp");
  }
}

// Parts of one unit, and the header that declares them.
const std::map<std::string, std::string> kParts = {
    {"axis", "chart"},        {"forest", "chart"},      {"findings", "sections"},
    {"parity_json", "pages"}, {"parity_text", "pages"}, {"style", "html"}};
/// claims_section.cpp, tasks_section.cpp, … are parts of sections.h.
std::string header_of(const std::string& unit) {
  if (unit.ends_with("_section")) return "sections.h";
  const auto part = kParts.find(unit);
  return (part == kParts.end() ? unit : part->second) + ".h";
}

TEST_CASE(
    "each file of report has a header of its own name or that of its unit, which a caller finds",
    "[layering]") {
  for (const auto& file : sources()) {
    if (room_of(file) != "report" || file.extension() != ".cpp") continue;
    const auto header = header_of(file.stem().string());
    INFO(file.string());
    CHECK(fs::exists(file.parent_path() / header));
    const auto includes = includes_of(file);
    const auto own = fs::relative(file.parent_path() / header, fs::path(OLMO_SOURCE_DIR) / "src");
    CHECK(std::count(includes.begin(), includes.end(), own.string()) == 1);
  }
}

TEST_CASE("src/README.md states the table of rooms that the includes are held to", "[layering]") {
  std::map<std::string, std::set<std::string>> stated;
  std::ifstream readme(fs::path(OLMO_SOURCE_DIR) / "src/README.md");
  const std::regex row("^\\| `([a-z]+)` \\| ([a-z, ]+|-) \\|.*");
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    auto& rooms = stated[match[1]];
    const std::string list = match[2];
    const std::regex word("[a-z]+");
    for (std::sregex_iterator it(list.begin(), list.end(), word), end; it != end; ++it)
      rooms.insert(it->str());
  }
  CHECK(stated == kAllowed);
}

TEST_CASE(
    "tensors' elements are reached through the host's door, the operations' and that between GPUs "
    "alone",
    "[layering]") {
  const std::set<std::string> doors = {"core/compute/named_tensors.cpp", "ops/dispatch.h",
                                       "dist/gpu_ranks.cpp"};
  const std::regex reach("data_ptr|accessor|\\.item<|\\.item\\(");
  for (const auto& file : sources()) {
    const auto name = fs::relative(file, fs::path(OLMO_SOURCE_DIR) / "src").string();
    INFO(name);
    CHECK(std::regex_search(olmo::read_file(file), reach) == doors.contains(name));
  }
}

TEST_CASE("no memory is shared between host and device, and one place asks LibTorch for CUDA",
          "[layering]") {
  const std::regex shared("Managed|MEM_ATTACH|MemAttach|SetCPUAllocator");
  for (const auto& file : sources()) {
    const auto name = fs::relative(file, fs::path(OLMO_SOURCE_DIR) / "src").string();
    const auto text = olmo::read_file(file);
    INFO(name);
    CHECK_FALSE(std::regex_search(text, shared));
    // Asked before its half is loaded, LibTorch answers no for good.
    CHECK((text.find("hasCUDA()") != std::string::npos) == (name == "core/compute/gpu.cpp"));
  }
}

TEST_CASE("the policy alone names the precision that numbers are computed in", "[layering]") {
  const std::set<std::string> homes = {"core/compute/policy.cpp",
                                       "cli/checkpoint_convert.cpp"};  // a format of files
  for (const auto& file : sources()) {
    const auto name = fs::relative(file, fs::path(OLMO_SOURCE_DIR) / "src").string();
    INFO(name);
    CHECK((olmo::read_file(file).find("\"fp32\"") != std::string::npos) == homes.contains(name));
  }
}

TEST_CASE("no source file is longer than 500 lines", "[layering]") {
  for (const auto& file : sources()) {
    const auto text = olmo::read_file(file);
    INFO(file.string());
    CHECK(std::count(text.begin(), text.end(), '\n') <= 500);
  }
}

TEST_CASE("every test case belongs to one entry of CTest: that of its folder", "[layering]") {
  const fs::path tests = fs::path(OLMO_SOURCE_DIR) / "tests";
  const auto rooms = rooms_of_ctest();
  const std::regex tag("\\[([^\\]]+)\\]");
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    const auto& file = entry.path();
    if (!file.string().ends_with("_test.cpp")) continue;
    INFO(file.string());
    CHECK(is_compiled(file));
    const auto relative = fs::relative(file, tests);
    const auto folder = relative.has_parent_path() ? relative.begin()->string() : "layering";
    const auto cases = olmo::test::declared_cases(file);
    CHECK(cases.size() == count_of(olmo::read_file(file), "\nTEST_CASE"));
    for (const auto& declared : cases) {
      INFO(declared.name);
      if (declared.tags.find("[.") != std::string::npos) continue;  // run by hand only
      std::set<std::string> entries;
      for (std::sregex_iterator at(declared.tags.begin(), declared.tags.end(), tag), end; at != end;
           ++at)
        if (rooms.contains((*at)[1])) entries.insert((*at)[1]);
      CHECK(entries == std::set<std::string>{folder});
    }
  }
}
