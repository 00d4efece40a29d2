#include "eval/embedded_samples.h"

#include <fstream>

#include "core/files/input_file.h"
#include "eval/selection.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/temporary_directory.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

/// A cache of its own, in a folder where no evals/ lies.
class Elsewhere {
 public:
  Elsewhere() : cache_("OLMO_HARNESS_CACHE", (folder_ / "cache").string()) {
    fs::current_path(folder_.path());
  }
  ~Elsewhere() { fs::current_path(before_); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  fs::path before_ = fs::current_path();
  test::TemporaryDirectory folder_;
  test::Environment cache_;
};

}  // namespace

TEST_CASE("the binary carries the texts of evals/samples, byte by byte", "[eval]") {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(OLMO_SOURCE_DIR "/evals/samples"))
    files += entry.path().extension() == ".jsonl" ? 1 : 0;
  CHECK(embedded_samples().size() == files);
  for (const auto& sample : embedded_samples())
    CHECK(read_file(fs::path(OLMO_SOURCE_DIR "/evals") / sample.path) == sample.text);
}

TEST_CASE("the suite `sample` is whole in any folder", "[eval]") {
  const Elsewhere elsewhere;
  const std::vector<std::string> names = {"sample"};
  const auto found = select(load_catalog(), names, {});
  CHECK(found.missing.empty());
  REQUIRE(found.suites.size() == 1);
  CHECK(found.suites.front().sources.size() == 3);
}

TEST_CASE("a sample that was altered in the cache is written again", "[eval]") {
  const Elsewhere elsewhere;
  const auto sample = embedded_samples().front();
  std::ofstream(unpacked_samples() / sample.path) << "another text";
  CHECK(read_file(unpacked_samples() / sample.path) == sample.text);
}

}  // namespace olmo::eval
