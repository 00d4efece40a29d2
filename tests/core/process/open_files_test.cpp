#include "core/process/open_files.h"

#include <vector>

#include <fcntl.h>
#include <sys/resource.h>

#include "core/error.h"
#include "core/files/descriptor.h"
#include "support/catch.h"

namespace olmo {
namespace {

/// The soft limit while the object lives.
class SoftLimit {
 public:
  explicit SoftLimit(rlim_t files) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lower{files, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~SoftLimit() { static_cast<void>(::setrlimit(RLIMIT_NOFILE, &before_)); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

  static rlim_t now() {
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    return limit.rlim_cur;
  }
  [[nodiscard]] rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST_CASE("a soft limit on open files is raised as far as is needed", "[core]") {
  constexpr int kMore = 100;
  const SoftLimit low(64);
  make_room_for_files(kMore, "the connections of 100 ranks");
  std::vector<Descriptor> opened;
  for (int i = 0; i < kMore; ++i) {
    opened.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(opened.back().number() >= 0);
  }
}

TEST_CASE("a limit that leaves room enough stays as it is", "[core]") {
  const SoftLimit low(256);
  make_room_for_files(10, "a few");
  CHECK(SoftLimit::now() == 256);
}

TEST_CASE("a hard limit that leaves no room is named, with what needs it", "[core]") {
  const SoftLimit low(256);
  const auto hard = static_cast<std::int64_t>(low.hard());
  CHECK_THROWS_WITH(
      make_room_for_files(hard, "the connections of all ranks"),
      Catch::Matchers::StartsWith("the connections of all ranks need ") &&
          Catch::Matchers::Contains(" and this process may have " + std::to_string(hard) + ": "));
  CHECK(SoftLimit::now() == 256);
}

}  // namespace
}  // namespace olmo
