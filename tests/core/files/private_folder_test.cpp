#include "core/files/private_folder.h"

#include <fstream>
#include <optional>

#include "support/catch.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a private folder is its user's alone, and goes with what is in it", "[core]") {
  std::optional<PrivateFolder> folder(std::in_place, "olmo-harness-test");
  const fs::path path = folder->path();
  CHECK(fs::status(path).permissions() == fs::perms::owner_all);
  std::ofstream(path / "file") << "text";
  folder.reset();
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a private folder lies where it is to lie", "[core]") {
  const PrivateFolder place("olmo-harness-test");
  const PrivateFolder folder("below", place.path());
  CHECK(folder.path().parent_path() == place.path());
  CHECK(folder.path().filename().string().starts_with("below-"));
}

TEST_CASE("a private folder that was moved goes once, with its last owner", "[core]") {
  std::optional<PrivateFolder> last;
  fs::path path;
  {
    PrivateFolder first("olmo-harness-test");
    path = first.path();
    last.emplace(std::move(first));
  }
  CHECK(fs::exists(path));
  last.reset();
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace olmo
