#include "serve/routes.h"

#include "core/error.h"
#include "support/catch.h"

namespace serve = olmo::serve;

namespace {

serve::Response echo(const serve::Request& request) {
  std::string text = "parts:";
  for (const auto& part : request.parts) text += " " + part;
  return serve::plain_response(200, text);
}

serve::Routes routes() {
  serve::Routes made;
  made.add("/", [](const auto&) { return serve::plain_response(200, "first"); });
  made.add("/run/{}", echo);
  made.add("/run/{}/tasks/{}", echo);
  made.add("/absent", [](const auto&) -> serve::Response {
    throw serve::NotFound("No run is called <b>x</b>.");
  });
  made.add("/api/damaged", [](const auto&) -> serve::Response {
    throw olmo::Error(olmo::ErrorKind::kDamaged, "a \"b\": is damaged");
  });
  made.add("/failure", [](const auto&) -> serve::Response {
    throw olmo::Error(olmo::ErrorKind::kFailure, "the disk fails");
  });
  return made;
}

}  // namespace

TEST_CASE("a path finds its page, and the words that stand for something", "[serve]") {
  const auto made = routes();
  CHECK(made.answer({.path = "/"}).body == "first\n");
  CHECK(made.answer({.path = "/run/a b"}).body == "parts: a b\n");
  CHECK(made.answer({.path = "/run/a/tasks/b"}).body == "parts: a b\n");
  CHECK(made.answer({.path = "/run/a/"}).body == "parts: a\n");
  for (const char* path : {"/run", "/run/a/b", "/run/a/tasks", "/run/a/tasks/b/c", "/../etc/passwd",
                           "/run/../../etc/passwd"}) {
    INFO(path);
    CHECK(made.answer({.path = path}).status == 404);
  }
}

TEST_CASE("an error of a page is a page with its sentence, escaped", "[serve]") {
  const auto absent = routes().answer({.path = "/absent"});
  CHECK(absent.status == 404);
  CHECK(absent.body.find("No run is called &lt;b&gt;x&lt;/b&gt;.") != std::string::npos);
  CHECK(absent.body.find("<b>x") == std::string::npos);
  CHECK(routes().answer({.path = "/failure"}).status == 500);
}

TEST_CASE("an error of what programs read is JSON", "[serve]") {
  const auto damaged = routes().answer({.path = "/api/damaged"});
  CHECK(damaged.status == 422);
  CHECK(damaged.content_type == "application/json");
  CHECK(damaged.body == "{\"error\":\"a \\\"b\\\": is damaged\"}\n");
  CHECK(routes().answer({.path = "/api/nothing"}).content_type == "application/json");
}
