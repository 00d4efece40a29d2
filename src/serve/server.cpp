#include "serve/server.h"

#include <atomic>
#include <chrono>
#include <list>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "serve/gate.h"

namespace olmo::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

constexpr std::size_t kHeaderBytes = 16'384;
/// Answers that wait for a thread; a page asks for a few at once.
constexpr int kWaitingRequests = 512;
/// For pages, and as many for data: a page never waits until data have been read for another.
constexpr std::size_t kThreads = 4;
/// By how much data stand back for pages and for what else runs here, such as a training.
constexpr int kDataNiceness = 10;
constexpr int kPortsTried = 20;
constexpr auto kAskEvery = std::chrono::milliseconds(200);

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

using HttpRequest = http::request<http::empty_body>;
using HttpResponse = http::response<http::string_body>;

RequestFacts facts_of(const HttpRequest& request) {
  return {.method = text_of(request.method_string()),
          .target = text_of(request.target()),
          // Of two, another program on the way may have believed the other one.
          .host = request.count(http::field::host) == 1 ? text_of(request[http::field::host]) : "",
          .cookie = text_of(request[http::field::cookie]),
          .authorization = text_of(request[http::field::authorization]),
          .fetch_site = text_of(request["Sec-Fetch-Site"]),
          .fetch_mode = text_of(request["Sec-Fetch-Mode"])};
}

/// A response as it goes out. An answer that the client has already is not sent again: pages ask
/// for their parts every few seconds.
HttpResponse http_response(Response&& answer, const HttpRequest& request) {
  HttpResponse out;
  out.version(11);
  const std::string tag = "\"" + sha256(answer.body).hex().substr(0, 32) + "\"";
  const bool known = answer.status == 200 && text_of(request[http::field::if_none_match]) == tag;
  out.result(known ? 304U : static_cast<unsigned>(answer.status));
  out.set(http::field::content_type, answer.content_type);
  out.set("Content-Security-Policy",
          answer.content_policy.empty() ? kContentPolicy : answer.content_policy);
  out.set("X-Content-Type-Options", "nosniff");
  out.set("X-Frame-Options", "DENY");
  out.set("Referrer-Policy", "no-referrer");
  out.set("Cross-Origin-Resource-Policy", "same-origin");
  out.set("Cross-Origin-Opener-Policy", "same-origin");
  out.set(http::field::cache_control, "private, no-cache");
  if (answer.status == 200) out.set(http::field::etag, tag);
  for (const auto& [name, value] : answer.headers) out.set(name, value);
  out.keep_alive(request.keep_alive());
  if (known) return out;
  out.content_length(answer.body.size());
  if (request.method() != http::verb::head) out.body() = std::move(answer.body);
  return out;
}

class Connection;

/// What all connections share; the thread of run() alone touches it, but `handler` and the pools.
struct Shared {
  ServerOptions options;
  Handler handler;
  Gate gate = {};
  asio::thread_pool pages{kThreads}, data{kThreads};
  int data_niceness = std::min(19, ::getpriority(PRIO_PROCESS, 0) + kDataNiceness);
  std::size_t connections = 0;
  std::list<Connection*> quiet = {};  ///< that wait for their client; the longest first
  int waiting = 0;

  void join() {
    pages.join();
    data.join();
  }
};

Response made(const Shared& shared, const Request& request) {
  if (request.wants_json())  // on Linux of this thread alone
    ::setpriority(PRIO_PROCESS, 0, shared.data_niceness);
  try {
    return shared.handler(request);
  } catch (const std::exception& error) {
    return plain_response(500, error.what(), request.wants_json());
  }
}

/// One connection: a request is read, answered, and the next is read.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Tcp::socket&& socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
    ++shared_.connections;
  }
  ~Connection() {
    speaks();
    --shared_.connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Ends it for another client: whoever opens connections, and then says nothing or takes no
  /// answer, keeps nobody out.
  void give_way() {
    speaks();
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

  void read(double seconds) {
    falls_quiet();
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(milliseconds(seconds));
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->on_read(error);
                     });
  }

 private:
  void falls_quiet() { place_ = shared_.quiet.insert(shared_.quiet.end(), this); }
  void speaks() {
    if (place_) shared_.quiet.erase(*place_);
    place_.reset();
  }

  void on_read(beast::error_code error) {
    speaks();
    if (!error) return answer();
    // Only what was said in HTTP and is wrong gets an answer; a lost or late client gets none.
    if (error.category() != http::make_error_code(http::error::bad_version).category() ||
        error == http::error::end_of_stream || error == http::error::partial_message)
      return close();
    const bool long_header = error == http::error::header_limit;
    const bool body = error == http::error::body_limit || error == http::error::unexpected_body;
    HttpRequest closing;
    closing.keep_alive(false);
    write(plain_response(long_header ? 431
                         : body      ? 413
                                     : 400,
                         long_header ? "The request's header is too long."
                         : body      ? "A request brings no body here."
                                     : "This is no request that can be understood."),
          closing);
  }

  void answer() {
    Request request;
    HttpRequest asked = parser_->release();
    if (auto refused = refusal(shared_.gate, facts_of(asked), request))
      return write(std::move(*refused), asked);
    if (shared_.waiting >= kWaitingRequests)
      return write(plain_response(503, "Too many requests wait. Try again in a moment.",
                                  request.wants_json()),
                   asked);
    ++shared_.waiting;
    stream_.expires_never();
    auto& pool = request.wants_json() ? shared_.data : shared_.pages;
    asio::post(pool, [self = shared_from_this(), request = std::move(request),
                      asked = std::move(asked)]() mutable {
      auto response = http_response(made(self->shared_, request), asked);
      // The connection belongs to the other thread, where its last owner must let go of it, too.
      auto executor = self->stream_.get_executor();
      asio::post(executor, [self = std::move(self), response = std::move(response)]() mutable {
        --self->shared_.waiting;
        self->send(std::move(response));
      });
    });
  }

  void write(Response&& response, const HttpRequest& asked) {
    send(http_response(std::move(response), asked));
  }

  void send(HttpResponse&& response) {
    falls_quiet();
    response_ = std::move(response);
    stream_.expires_after(milliseconds(shared_.options.response_seconds));
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        self->speaks();
                        if (error || !self->response_.keep_alive()) return self->close();
                        self->read(self->shared_.options.idle_seconds);
                      });
  }

  void close() {
    beast::error_code ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  std::optional<std::list<Connection*>::iterator> place_;  ///< among the quiet ones
  beast::flat_buffer buffer_{kHeaderBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  HttpResponse response_;
};

/// One address that is listened at.
class Listener {
 public:
  Listener(asio::io_context& context, Shared& shared)
      : acceptor_(context), retry_(context), shared_(shared) {}

  beast::error_code open(const Tcp::endpoint& place) {
    beast::error_code error;
    acceptor_.open(place.protocol(), error);
    if (!error && place.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(true), error);
    // A port whose last connections are dying may be used again.
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(place, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      beast::error_code ignored;
      acceptor_.close(ignored);
    }
    return error;
  }

  [[nodiscard]] int port() const { return acceptor_.local_endpoint().port(); }

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later();  // no descriptor is free, or the client is gone already
      bool room = shared_.connections < shared_.options.connections;
      if (!room && !shared_.quiet.empty()) {
        shared_.quiet.front()->give_way();
        room = true;
      }
      if (room)
        std::make_shared<Connection>(std::move(socket), shared_)
            ->read(shared_.options.request_seconds);
      accept();
    });
  }

 private:
  void accept_later() {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](beast::error_code error) {
      if (!error) accept();
    });
  }

  Tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  Shared& shared_;
};

std::vector<asio::ip::address> addresses_of(asio::io_context& context, const std::string& host) {
  if (host.empty() || host == "localhost")
    return {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
  beast::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return {address};
  Tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty())
    throw Error(ErrorKind::kUsage,
                "serve: --host: expected an address or a name of this machine, got `" + host + "`");
  return {found.begin()->endpoint().address()};
}

/// The names by which people reach this machine: its own, with and without its domain.
std::vector<std::string> machine_names(const std::string& host) {
  std::vector<std::string> names;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && *name != '\0') {
    names.push_back(host_name(name));
    names.push_back(names[0].substr(0, names[0].find('.')));
  }
  if (!host.empty()) names.push_back(host_name(host));
  return names;
}

std::string url_host(const asio::ip::address& address, const std::string& host) {
  if (address.is_unspecified()) {
    const auto names = machine_names("");
    return names.empty() ? "localhost" : names[0];
  }
  if (!host.empty() && !is_address(host)) return host;
  return address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
}

}  // namespace

struct Server::Parts {
  Shared shared;  // outlives the connections, which the context holds
  asio::io_context context{1};
  std::list<Listener> listeners;
  asio::steady_timer ask{context};
  std::string url;
  std::atomic<bool> stopping = false;

  /// Listens at all addresses, or at none. The loopback address of IPv6 may be missing.
  beast::error_code listen(const std::vector<asio::ip::address>& addresses, int port) {
    listeners.clear();
    for (const auto& address : addresses) {
      listeners.emplace_back(context, shared);
      const auto number = listeners.size() == 1 ? port : listeners.front().port();
      const auto error = listeners.back().open({address, static_cast<std::uint16_t>(number)});
      if (!error) continue;
      listeners.pop_back();
      const bool other_has_it = error == asio::error::address_in_use;
      if (listeners.empty() || other_has_it) {
        listeners.clear();
        return error;
      }
    }
    return {};
  }

  void bind() {
    const auto& options = shared.options;
    const auto addresses = addresses_of(context, options.host);
    beast::error_code error;
    const int tries = options.port == 0 || options.next_free ? kPortsTried : 1;
    for (int i = 0; i < tries; ++i) {
      const int port = options.port == 0 ? 0 : options.port + i;
      if (port > 65'535) break;
      error = listen(addresses, port);
      if (error != asio::error::address_in_use) break;
    }
    if (error) refuse(error, addresses[0].to_string());
    if (!addresses[0].is_loopback() || options.token) shared.gate.token = new_token();
    shared.gate.port = listeners.front().port();
    shared.gate.names = machine_names(options.host);
    url = "http://" + url_host(addresses[0], options.host) + ":" +
          std::to_string(shared.gate.port) + "/" +
          (shared.gate.token.empty() ? "" : "?token=" + shared.gate.token);
  }

  [[noreturn]] void refuse(beast::error_code error, const std::string& address) const {
    const auto& options = shared.options;
    const std::string port = std::to_string(options.port);
    std::string sentence =
        "serve: cannot listen at " + address + ", port " + port + ": " + error.message();
    if (error == asio::error::address_in_use)
      sentence = options.next_free
                     ? "serve: ports " + port + " to " +
                           std::to_string(options.port + kPortsTried - 1) +
                           " are taken; --port 0 takes any that is free"
                     : "serve: port " + port +
                           " is taken by another program; --port 0 takes any that is free";
    else if (error == asio::error::access_denied)
      sentence += "; ports below 1024 are the administrator's";
    else if (error == boost::system::errc::address_not_available)
      sentence = "serve: --host: " + address + " is not an address of this machine";
    throw Error(ErrorKind::kUsage, sentence);
  }

  void ask_again(const std::function<bool()>& should_stop) {
    ask.expires_after(kAskEvery);
    ask.async_wait([this, &should_stop](beast::error_code error) {
      if (error) return;
      if (stopping || (should_stop && should_stop())) return context.stop();
      ask_again(should_stop);
    });
  }
};

Server::Server(const ServerOptions& options, Handler handler) : parts_(std::make_unique<Parts>()) {
  parts_->shared.options = options;
  parts_->shared.handler = std::move(handler);
  parts_->bind();
}

Server::~Server() {
  // Answers hold connections, which belong to the context.
  parts_->context.stop();
  parts_->shared.join();
}

int Server::port() const { return parts_->shared.gate.port; }
const std::string& Server::token() const { return parts_->shared.gate.token; }
std::string Server::url() const { return parts_->url; }

void Server::run(const std::function<bool()>& should_stop) {
  for (auto& listener : parts_->listeners) listener.accept();
  parts_->ask_again(should_stop);
  parts_->context.run();
  parts_->shared.join();
}

void Server::stop() {
  parts_->stopping = true;
  parts_->context.stop();
}

}  // namespace olmo::serve
