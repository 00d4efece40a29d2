// The config page of a run, as the site answers it.
#include "site_pages.h"

#include "store/run_fixture.h"
#include "support/catch.h"
#include "support/says.h"

namespace serve = olmo::serve;
using namespace olmo::test;

TEST_CASE("the config is shown by section, and what is as usual is dimmed", "[serve]") {
  RecordedCurve run;
  run.sql(
      "UPDATE runs SET config = '{\"seed\": 77, \"model\": {\"d_model\": 768, \"rope\": false}, "
      "\"odd\": [1, {\"a\": 2}], \"empty\": {}}'");
  KnownSite site({run.path()});
  const auto html = answer(site, "/run/" + key_of(site, run.id()) + "/config").body;
  CHECK(says(html, "<h2>model</h2>"));
  CHECK(says(html,
             "<tr><th scope=\"row\"><code>seed</code></th><td data-h=\"Value\"><code>77</code>"));
  CHECK(says(html, "<tr class=\"usual\"><th scope=\"row\"><code>model.d_model</code>"));
  CHECK(says(html, "[1,{&quot;a&quot;:2}]"));
  CHECK(says(html, "<code>empty</code>"));
}

TEST_CASE("the config comes back as the JSON that a training reads", "[serve]") {
  RecordedCurve run;
  run.sql("UPDATE runs SET config = '{\"seed\": 77}'");
  KnownSite site({run.path()});
  const auto json = answer(site, "/run/" + key_of(site, run.id()) + "/config.json");
  CHECK(json.content_type == "application/json");
  CHECK(json.body == "{\"seed\": 77}\n");
}

TEST_CASE("a run without a config says so", "[serve]") {
  RecordedCurve run;
  KnownSite site({run.path()});
  CHECK(says(answer(site, "/run/" + key_of(site, run.id()) + "/config").body,
             "No config is recorded."));
}

TEST_CASE("a config that is nested a million times ends no server", "[serve]") {
  RecordedCurve run;
  run.sql("PRAGMA ignore_check_constraints = ON; UPDATE runs SET config = '{\"a\":" +
          std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}'");
  serve::Site site({run.path()});
  const std::string page = "/run/" + key_of(site, run.id());
  CHECK(says(answer(site, page + "/config").body, "The config cannot be read."));
  CHECK(answer(site, page).status == 200);
  CHECK(answer(site, "/compare?run=" + key_of(site, run.id())).status == 404);
}
