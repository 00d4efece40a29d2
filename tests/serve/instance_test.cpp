#include "serve/instance.h"

#include "serve/evaluated_run.h"
#include "support/catch.h"

namespace olmo::serve {

using test::Evaluated;
using test::says;

TEST_CASE("one instance is shown with its prompt, continuations and scores", "[serve]") {
  Evaluated evaluated;
  Query query = evaluated.beside();
  query["doc"] = {"0"};
  const Response page = evaluated.get("/instance", query);
  REQUIRE(page.status == 200);
  CHECK(says(page, "<pre class=\"prompt\""));
  CHECK(says(page, "chosen"));
  CHECK(says(page, "right"));
  CHECK(says(page, "Log-likelihood"));
}

TEST_CASE("without the data set an instance has its scores and says why it has no text",
          "[serve]") {
  Evaluated evaluated(false);
  const Response page = evaluated.get("/instance", {{"doc", {"0"}}});
  CHECK(page.status == 200);
  CHECK(says(page, "option 0"));
  CHECK(says(page, "Prompt and continuations cannot be shown"));
}

TEST_CASE("from one instance to the next, and back to the list, the filter is kept", "[serve]") {
  Evaluated evaluated(false);
  const Response page = evaluated.get("/instance", {{"doc", {"0"}}, {"show", {"wrong"}}});
  REQUIRE(page.status == 200);
  for (const char* address : {"/instance?doc=1&amp;", "/instances?"}) {
    INFO(address);
    const auto at = page.body.find(address);
    REQUIRE(at != std::string::npos);
    CHECK(page.body.substr(at, page.body.find('"', at) - at).find("show=wrong") !=
          std::string::npos);
  }
}

TEST_CASE("an instance that is not there is a page that says so", "[serve]") {
  Evaluated evaluated;
  const Response page = evaluated.get("/instance", {{"doc", {"100000"}}});
  CHECK(page.status == 404);
  CHECK(says(page, "has no instance 100000"));
}

}  // namespace olmo::serve
