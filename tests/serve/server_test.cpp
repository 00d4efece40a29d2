#include "serve/server.h"

#include <atomic>
#include <future>
#include <memory>

#include "client.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/happens.h"

namespace serve = olmo::serve;
using olmo::test::Answer;
using olmo::test::ask;
using olmo::test::Client;
using olmo::test::happens;
using olmo::test::parsed_answer;
using olmo::test::RunningServer;

namespace {

serve::Response hello(const serve::Request& request) {
  return serve::html_response("hello " + request.path);
}

}  // namespace

TEST_CASE("a page is served with a policy that lets nothing else in", "[serve]") {
  const RunningServer running(hello);
  const Answer answer = ask(running.port(), "/a%20b?x=1");
  CHECK(answer.status == 200);
  CHECK(answer.body == "hello /a b");
  CHECK(answer.header("Content-Security-Policy")
            .starts_with("default-src 'none'; script-src 'self';"));
  CHECK(answer.header("X-Content-Type-Options") == "nosniff");
  CHECK(answer.header("Cross-Origin-Resource-Policy") == "same-origin");
  CHECK(answer.header("Access-Control-Allow-Origin").empty());
}

TEST_CASE("a program that asks again gets the answer only if it has changed", "[serve]") {
  std::atomic<int> version = 1;
  const RunningServer running([&](const serve::Request&) {
    return serve::html_response("version " + std::to_string(version.load()));
  });
  const auto tag = ask(running.port(), "/").header("ETag");
  REQUIRE_FALSE(tag.empty());
  const auto same = ask(running.port(), "/", "If-None-Match: " + tag + "\r\n");
  CHECK(same.status == 304);
  CHECK(same.body.empty());
  version = 2;
  CHECK(ask(running.port(), "/", "If-None-Match: " + tag + "\r\n").body == "version 2");
}

TEST_CASE("HEAD gets the header of GET and no body", "[serve]") {
  const RunningServer running(hello);
  const Answer answer = ask(running.port(), "/abc", "", "HEAD");
  CHECK(answer.status == 200);
  CHECK(answer.header("Content-Length") == "10");
  CHECK(answer.body.empty());
}

TEST_CASE("what changes things, or comes under another name, is refused over the wire", "[serve]") {
  std::atomic<int> calls = 0;
  const RunningServer running([&](const serve::Request& request) {
    ++calls;
    return hello(request);
  });
  CHECK(ask(running.port(), "/", "Content-Length: 3\r\n", "POST").status == 413);
  CHECK(ask(running.port(), "/", "", "DELETE").status == 405);
  CHECK(ask(running.port(), "/", "Host: evil.example\r\n").status == 421);
  CHECK(ask(running.port(), "/%zz").status == 400);
  CHECK(calls == 0);
}

TEST_CASE("a request that is too long or no HTTP is answered and closed", "[serve]") {
  const RunningServer running(hello);
  CHECK(ask(running.port(), "/" + std::string(100'000, 'a')).status == 431);
  CHECK(ask(running.port(), "/", "X: " + std::string(100'000, 'a') + "\r\n").status == 431);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "X-" + std::to_string(i) + ": 1\r\n";
  CHECK(ask(running.port(), "/", many).status == 431);
  Client client(running.port());
  client.send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  CHECK(parsed_answer(client.read_all()).status == 400);
  CHECK(client.closed());
  CHECK(ask(running.port(), "/").status == 200);
}

TEST_CASE("a client that never ends its request is let go, and others are answered meanwhile",
          "[serve]") {
  const RunningServer running(hello, {.port = 0, .request_seconds = 0.3});
  Client slow(running.port());
  Client silent(running.port());
  // Each piece comes in time; the whole does not.
  std::thread sending([&] {
    const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
    for (std::size_t i = 0; i < 2000 && slow.send(request.substr(i % request.size(), 1)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  // This one, too, is let go if it does not come in time.
  CHECK(happens([&] { return ask(running.port(), "/").status == 200; }));
  slow.read_all();
  CHECK(slow.closed());
  silent.read_all();
  CHECK(silent.closed());
  sending.join();
}

TEST_CASE("clients that open connections and say nothing keep nobody out", "[serve]") {
  const RunningServer running(hello, {.port = 0, .request_seconds = 600, .idle_seconds = 600});
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(std::make_unique<Client>(running.port()));
    silent.back()->send("GET / HT");
  }
  CHECK(ask(running.port(), "/").status == 200);
}

TEST_CASE("clients that ask and take no answer keep nobody out", "[serve]") {
  const RunningServer running(
      [](const serve::Request& request) {
        // More than what the system takes for a client that reads nothing.
        return serve::html_response(std::string(request.path == "/" ? 1 : 20'000'000, 'x'));
      },
      {.port = 0, .response_seconds = 600, .connections = 4});
  std::vector<std::unique_ptr<Client>> deaf;
  for (int i = 0; i < 4; ++i) {
    deaf.push_back(std::make_unique<Client>(running.port()));
    deaf.back()->send("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  for (const auto& client : deaf) REQUIRE(happens([&] { return client->has_answer(); }));
  CHECK(ask(running.port(), "/").status == 200);
}

TEST_CASE("a request that names two hosts is refused", "[serve]") {
  const RunningServer running(hello);
  Client client(running.port());
  client.send(
      "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
  CHECK(parsed_answer(client.read_all()).status == 400);
}

TEST_CASE("fifty clients at once each get their own page", "[serve]") {
  const RunningServer running(hello);
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 50; ++i)
    answers.push_back(std::async(
        std::launch::async, [&, i] { return ask(running.port(), "/page" + std::to_string(i)); }));
  for (int i = 0; i < 50; ++i)
    CHECK(answers[static_cast<std::size_t>(i)].get().body == "hello /page" + std::to_string(i));
}

TEST_CASE("a page does not wait until data have been read for another", "[serve]") {
  std::promise<void> read;
  const RunningServer running([&, done = read.get_future().share()](const serve::Request& request) {
    if (request.wants_json()) done.wait();
    return hello(request);
  });
  std::vector<std::unique_ptr<Client>> reading;
  for (int i = 0; i < 20; ++i) {
    reading.push_back(std::make_unique<Client>(running.port()));
    reading.back()->send("GET /api/curves HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  CHECK(ask(running.port(), "/page").body == "hello /page");
  read.set_value();
}

TEST_CASE("one connection serves several requests", "[serve]") {
  const RunningServer running(hello, {.port = 0, .idle_seconds = 5});
  Client client(running.port());
  client.send(  // at once: the second need not come in time
      "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto got = client.read_all();
  CHECK(got.find("hello /1") != std::string::npos);
  CHECK(got.find("hello /2") != std::string::npos);
  CHECK(client.closed());
}

TEST_CASE("an exception in a page is a page, and the server goes on", "[serve]") {
  const RunningServer running([](const serve::Request& request) -> serve::Response {
    if (request.path == "/bad") throw std::runtime_error("no <luck>");
    return hello(request);
  });
  const Answer bad = ask(running.port(), "/bad");
  CHECK(bad.status == 500);
  CHECK(bad.header("Content-Type") == "text/plain; charset=utf-8");
  CHECK(ask(running.port(), "/").status == 200);
}

TEST_CASE("a port that is taken is passed over, or named where it was asked for", "[serve]") {
  const RunningServer first(hello);
  const RunningServer second(hello, {.port = first.port()});
  CHECK(second.port() > first.port());
  CHECK(second.port() < first.port() + 20);
  try {
    const serve::Server third({.port = first.port(), .next_free = false}, hello);
    FAIL("the port is taken");
  } catch (const olmo::Error& error) {
    CHECK(error.kind() == olmo::ErrorKind::kUsage);
    CHECK(std::string(error.what()) == "serve: port " + std::to_string(first.port()) +
                                           " is taken by another program; --port 0 takes any that "
                                           "is free");
  }
}

TEST_CASE("an address of another machine is refused in one sentence", "[serve]") {
  try {
    const serve::Server server({.host = "192.0.2.1", .port = 0}, hello);
    FAIL("192.0.2.1 is nobody's");
  } catch (const olmo::Error& error) {
    CHECK(std::string(error.what()) ==
          "serve: --host: 192.0.2.1 is not an address of this machine");
  }
}

TEST_CASE("away from the loopback address a token is demanded", "[serve]") {
  RunningServer open(hello);
  CHECK(open.server().token().empty());
  CHECK(open.server().url() == "http://127.0.0.1:" + std::to_string(open.port()) + "/");
  RunningServer running(hello, {.host = "0.0.0.0", .port = 0});
  const auto token = running.server().token();
  REQUIRE(token.size() == 32);
  CHECK(running.server().url().ends_with("/?token=" + token));
  CHECK(ask(running.port(), "/").status == 401);
  const Answer redirect = ask(running.port(), "/?token=" + token);
  CHECK(redirect.status == 303);
  const auto cookie = redirect.header("Set-Cookie");
  CHECK(ask(running.port(), "/", "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n").status ==
        200);
}

TEST_CASE("a stop ends the server while clients are connected", "[serve]") {
  std::unique_ptr<Client> idle;
  {
    const RunningServer running(hello);
    idle = std::make_unique<Client>(running.port());
    CHECK(idle->connected());
  }
  idle->read_all();
  CHECK(idle->closed());
}
