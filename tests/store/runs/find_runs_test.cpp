#include "store/runs/find_runs.h"

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

fs::path make_database(const fs::path& path) {
  fs::create_directories(path.parent_path());
  RunDb::open(path, OpenMode::kCreate);
  return path;
}

fs::path write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

using Paths = std::vector<fs::path>;

}  // namespace

TEST_CASE("databases are found at any level of a folder, in the order of their paths", "[store]") {
  const TemporaryDirectory folder;
  const auto c = make_database(folder / "c" / "run.db");
  const auto a = make_database(folder / "a" / "b" / "run.db");
  const auto all = make_database(folder / "all.db");
  const auto found = find_databases({folder.path()});
  CHECK(found.databases == Paths{a, all, c});
  CHECK(found.warnings.empty());
}

TEST_CASE("a run.db is found whatever it holds, another file only if it says it is ours",
          "[store]") {
  const TemporaryDirectory folder;
  const auto damaged = write(folder / "a" / "run.db", "no database");
  write(folder / "thumbs.db", "no database");
  const Database foreign(folder / "foreign.db", OpenMode::kCreate);
  Database(folder / "foreign.db", OpenMode::kCreate).execute("CREATE TABLE t (a)");
  CHECK(find_databases({folder.path()}).databases == Paths{damaged});
  CHECK(find_databases({folder / "thumbs.db"}).databases == Paths{folder / "thumbs.db"});
}

TEST_CASE("a database whose pages lie in its journal still is found", "[store]") {
  const TemporaryDirectory folder;
  const RunDb being_made = RunDb::open(folder / "new.db", OpenMode::kCreate);
  const Database foreign(folder / "other.db", OpenMode::kCreate);
  Database(folder / "other.db", OpenMode::kCreate)
      .execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
  CHECK(find_databases({folder.path()}).databases == Paths{folder / "new.db"});
}

TEST_CASE("links are followed, in circles too, and each file is found once", "[store]") {
  const TemporaryDirectory folder, elsewhere;
  const auto one = make_database(folder / "a" / "run.db");
  make_database(elsewhere / "far" / "run.db");
  fs::create_directory_symlink(folder / "a", folder / "a_link_before_it");
  fs::create_directory_symlink(folder / "a", folder / "latest");
  fs::create_directory_symlink(elsewhere.path(), folder / "link");
  fs::create_directory_symlink(folder.path(), folder / "a" / "circle");
  fs::create_symlink(one, folder / "again.db");
  fs::create_symlink(folder / "nothing", folder / "a" / "broken");
  const auto found = find_databases({folder.path(), folder / "a"});
  CHECK(found.databases == Paths{one, folder / "link" / "far" / "run.db"});
  CHECK(found.warnings.empty());
}

TEST_CASE("checkpoints and folders with a dot are not looked into", "[store]") {
  const TemporaryDirectory folder;
  make_database(folder / ".cache" / "run.db");
  make_database(folder / "step10" / "run.db");
  write(folder / "step10" / "manifest.json", "{}");
  const auto found_below = make_database(folder / "steps" / "run.db");
  CHECK(find_databases({folder.path()}).databases == Paths{found_below});
}

TEST_CASE("a search has an end, and says where it ended", "[store]") {
  const TemporaryDirectory folder;
  make_database(folder / "1" / "2" / "3" / "run.db");
  make_database(folder / "1" / "2" / "4" / "run.db");
  const auto deep = find_databases({folder.path()}, {.depth = 2});
  CHECK(deep.databases.empty());
  CHECK(deep.warnings == std::vector<std::string>{
                             (folder / "1").string() +
                             "/2/3: lies 3 levels down, where no runs are looked for (and 1 other "
                             "folder)"});
  const auto many = find_databases({folder.path()}, {.folders = 4});
  CHECK(many.databases == Paths{folder / "1" / "2" / "3" / "run.db"});
  CHECK(many.warnings == std::vector<std::string>{(folder / "1").string() +
                                                  "/2/4: was not looked into, after 4 folders"});
}

TEST_CASE("a pipe in a database's place is named, and not waited for", "[store]") {
  const TemporaryDirectory folder;
  REQUIRE(::mkfifo((folder / "run.db").c_str(), 0600) == 0);
  const auto found = find_databases({folder.path()});
  CHECK(found.databases.empty());
  REQUIRE(found.warnings.size() == 1);
  CHECK(found.warnings[0].find("is a pipe or a device") != std::string::npos);
}

TEST_CASE("what cannot be read is named, and the rest is found", "[store]") {
  const TemporaryDirectory folder;
  const auto sound = make_database(folder / "a" / "run.db");
  fs::create_symlink(folder / "nothing", folder / "lost.db");
  auto found = find_databases({folder.path(), folder / "missing"});
  CHECK(found.databases == Paths{sound});
  CHECK(found.warnings ==
        std::vector<std::string>{
            (folder / "lost.db").string() + ": cannot be looked at: No such file or directory",
            (folder / "missing").string() + ": cannot be looked at: No such file or directory"});
  if (::geteuid() == 0) return;  // may read everything
  fs::permissions(folder / "a", fs::perms::none);
  found = find_databases({folder.path()});
  fs::permissions(folder / "a", fs::perms::owner_all);
  CHECK(found.databases.empty());
  CHECK(found.warnings.back() ==
        (folder / "a").string() + ": cannot be read whole: Permission denied");
}
