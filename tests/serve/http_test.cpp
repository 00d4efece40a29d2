#include "serve/http.h"

#include "support/catch.h"

namespace serve = olmo::serve;

TEST_CASE("an address is taken apart into its path and its decoded values", "[serve]") {
  const auto request = serve::parse_target("/run/a%20b?x=1&x=2&y=%C3%A4+b&empty=&bare");
  REQUIRE(request);
  CHECK(request->path == "/run/a b");
  CHECK(request->values("x") == std::vector<std::string>{"1", "2"});
  CHECK(request->value("y") == "ä b");
  CHECK(request->value("empty").empty());
  CHECK(request->query.contains("bare"));
  CHECK(request->value("nothing").empty());
}

TEST_CASE("an address with wrong escapes, control characters or no text is not understood",
          "[serve]") {
  for (const char* target : {"", "run", "http://elsewhere/", "*", "/%", "/%4", "/%zz", "/a%00b",
                             "/a%0d%0aSet-Cookie:x", "/%ff", "/?x=%ff", "/?%0a=1", "/\x01"}) {
    INFO(target);
    CHECK_FALSE(serve::parse_target(target));
  }
}

TEST_CASE("an address names the values of its query, encoded", "[serve]") {
  CHECK(serve::address_of("/", {}) == "/");
  CHECK(serve::address_of("/x", {{"run", {"a&b", "c"}}, {"y", {""}}}) == "/x?run=a%26b&run=c&y=");
}

TEST_CASE("a text survives being part of an address", "[serve]") {
  const std::string text = "a b/ä?&=#%+\"<'";
  const auto request =
      serve::parse_target("/?x=" + serve::url_encoded(text) + "&y=" + serve::url_encoded("…"));
  REQUIRE(request);
  CHECK(request->value("x") == text);
  CHECK(request->value("y") == "…");
}
