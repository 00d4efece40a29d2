#include "dist/c10d.h"

#include <c10/util/Exception.h>

#include "core/error.h"
#include "dist/store.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/temporary_directory.h"

namespace olmo::dist {
namespace {

TEST_CASE("a process that finds no store", "[.dist-no-store]") {
  TcpPlace place{"127.0.0.1", 0};
  { const auto closed = host_tcp_store(place); }
  CHECK_THROWS_AS(join_tcp_store(place, {.connect = std::chrono::milliseconds(50)}), Error);
}

TEST_CASE("c10d writes nothing of its own", "[dist]") {
  const test::TemporaryDirectory folder;
  const auto ended =
      test::Child({"/proc/self/exe", "a process that finds no store"}, folder / "child").wait();
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
}

TEST_CASE("the reason of an error of LibTorch is one line without a list of places", "[dist]") {
  try {
    TORCH_CHECK(false, "no\nway");
  } catch (const std::exception& error) {
    CHECK(reason(error).find('\n') == std::string::npos);
    CHECK(reason(error).size() < 20);
  }
}

}  // namespace
}  // namespace olmo::dist
