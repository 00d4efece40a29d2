#include "serve/gate.h"

#include "serve/site_pages.h"
#include "support/catch.h"

namespace serve = olmo::serve;
using olmo::test::header;

namespace {

serve::RequestFacts facts(const std::string& target, const std::string& host = "127.0.0.1:8321") {
  return {.method = "GET", .target = target, .host = host};
}

/// The status of a refusal; 0: let in.
int status(const serve::Gate& gate, const serve::RequestFacts& facts) {
  serve::Request request;
  const auto refused = serve::refusal(gate, facts, request);
  return refused ? refused->status : 0;
}

const serve::Gate kOpen = {.names = {"nid007", "nid007.cluster"}, .port = 8321};
const serve::Gate kClosed = {.names = {"nid007"}, .token = "0123456789abcdef", .port = 8321};

}  // namespace

TEST_CASE("this machine's names and all addresses are answered for", "[serve]") {
  for (const char* host : {"localhost", "localhost:9000", "LOCALHOST:1", "127.0.0.1:8321",
                           "[::1]:8321", "10.0.0.7", "nid007:8321", "nid007.cluster.:8321"}) {
    INFO(host);
    CHECK(status(kOpen, facts("/", host)) == 0);
  }
}

TEST_CASE("a name that another page had resolved to this machine is not answered for", "[serve]") {
  for (const char* host : {"evil.example", "evil.example:8321", "localhost.evil.example",
                           "127.0.0.1.evil.example", "nid007.evil.example", "[evil]", "0x7f.1"}) {
    INFO(host);
    CHECK(status(kOpen, facts("/", host)) == 421);
  }
  CHECK(status(kOpen, facts("/", "")) == 400);
}

TEST_CASE("only GET and HEAD are answered", "[serve]") {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH"}) {
    auto asked = facts("/");
    asked.method = method;
    CHECK(status(kOpen, asked) == 405);
  }
  auto asked = facts("/");
  asked.method = "HEAD";
  CHECK(status(kOpen, asked) == 0);
}

TEST_CASE("what another site's page loads is refused, a link that leads here is not", "[serve]") {
  auto asked = facts("/parity?a=1&b=2");
  asked.fetch_site = "cross-site";
  asked.fetch_mode = "no-cors";
  CHECK(status(kOpen, asked) == 403);
  asked.fetch_mode = "navigate";
  CHECK(status(kOpen, asked) == 0);
  asked = facts("/");
  asked.fetch_site = "same-origin";
  asked.fetch_mode = "cors";
  CHECK(status(kOpen, asked) == 0);
}

TEST_CASE("without the token nothing is shown, whatever else is right", "[serve]") {
  CHECK(status(kClosed, facts("/")) == 401);
  CHECK(status(kClosed, facts("/?token=0123456789abcdee")) == 401);
  CHECK(status(kClosed, facts("/?token=0123456789abcde")) == 401);
  CHECK(status(kClosed, facts("/?token=")) == 401);
  auto asked = facts("/style.css");
  asked.cookie = "olmo_harness_8321=; olmo_harness_1=0123456789abcdef; x=0123456789abcdef";
  CHECK(status(kClosed, asked) == 401);
}

TEST_CASE("the token in the address becomes a cookie, and leaves the address", "[serve]") {
  serve::Request request;
  const auto redirect =
      serve::refusal(kClosed, facts("/run/a%20b?x=1&token=0123456789abcdef&y=%26"), request);
  REQUIRE(redirect);
  CHECK(redirect->status == 303);
  CHECK(header(*redirect, "Location") == "/run/a%20b?x=1&y=%26");
  CHECK(header(*redirect, "Set-Cookie") ==
        "olmo_harness_8321=0123456789abcdef; Path=/; HttpOnly; SameSite=Lax");
  auto asked = facts("/run/a%20b?x=1");
  asked.cookie = "other=1; olmo_harness_8321=0123456789abcdef";
  CHECK(status(kClosed, asked) == 0);
  asked = facts("/");
  asked.authorization = "Bearer 0123456789abcdef";
  CHECK(status(kClosed, asked) == 0);
}

TEST_CASE("the address after the token leads to no other machine", "[serve]") {
  for (const char* target :
       {"//evil.example/?token=0123456789abcdef", "/%2F/evil.example?token=0123456789abcdef",
        "///evil.example?token=0123456789abcdef"}) {
    serve::Request request;
    const auto redirect = serve::refusal(kClosed, facts(target), request);
    REQUIRE(redirect);
    const auto location = header(*redirect, "Location");
    INFO(location);
    CHECK(location.starts_with("/"));
    CHECK_FALSE(location.starts_with("//"));
  }
}

TEST_CASE("tokens are long and never the same", "[serve]") {
  const auto token = serve::new_token();
  CHECK(token.size() == 32);
  CHECK(token != serve::new_token());
}
