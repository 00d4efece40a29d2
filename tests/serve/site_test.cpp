#include "serve/site.h"

#include "serve/served_runs.h"
#include "store/run_fixture.h"
#include "support/catch.h"

namespace serve = olmo::serve;

TEST_CASE("no address leads to a file, whatever its path says", "[serve]") {
  const olmo::test::RecordedCurve run;
  const olmo::test::KnownSite site({run.path().parent_path()});
  for (const std::string path :
       {"/run.db", "/../run.db", "/%2e%2e/run.db", "/run/..%2frun.db", "/run/run.db", "/etc/passwd",
        "//etc/passwd", "/run/%2fetc%2fpasswd", "/style.css/../../run.db"}) {
    INFO(path);
    const auto request = serve::parse_target(path);
    REQUIRE(request);
    CHECK(site.answer(*request).status == 404);
  }
}
