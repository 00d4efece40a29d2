#include <fstream>

#include "core/error.h"
#include "dist/store.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a store in a folder leaves a file a key and nothing else", "[dist]") {
  const test::TemporaryDirectory folder;
  const auto store = file_store(folder / "a/b");
  for (int i = 0; i < 3; ++i) store->set("beat/0", std::to_string(i));
  store->set_first("failure", "x");
  store->set_first("failure", "y");
  CHECK(std::distance(fs::directory_iterator(folder / "a/b"), {}) == 2);
}

TEST_CASE("the store's folder cannot be a file", "[dist]") {
  const test::TemporaryDirectory folder;
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_WITH(file_store(folder / "file"), Catch::Matchers::Contains("expected a folder"));
}

TEST_CASE("a store whose folder is gone says so", "[dist]") {
  const test::TemporaryDirectory folder;
  const auto store = file_store(folder / "store");
  fs::remove_all(folder / "store");
  CHECK_FALSE(store->get("a"));
  CHECK_THROWS_WITH(store->set("a", "1"), Catch::Matchers::Contains("no such folder"));
}

}  // namespace
}  // namespace olmo::dist
