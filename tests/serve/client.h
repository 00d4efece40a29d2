// A client of the server under test: real sockets of the loopback address, every wait bounded.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/server.h"

namespace olmo::test {

/// A server that answers until the object is gone.
class RunningServer {
 public:
  explicit RunningServer(serve::Handler handler, serve::ServerOptions options = {.port = 0})
      : server_(options, std::move(handler)), thread_([this] { server_.run(); }) {}
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  [[nodiscard]] serve::Server& server() { return server_; }
  [[nodiscard]] int port() const { return server_.port(); }
  /// To which a path is appended.
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

 private:
  serve::Server server_;
  std::thread thread_;
};

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// What comes until the other side closes, at most so long; `closed`: it did.
  std::string read_all(int milliseconds = 100'000) {
    std::string got;
    char bytes[4096];
    for (pollfd wait{socket_, POLLIN, 0}; ::poll(&wait, 1, milliseconds) == 1;) {
      const auto size = ::recv(socket_, bytes, sizeof bytes, 0);
      if (size <= 0) {
        closed_ = true;
        break;
      }
      got.append(bytes, static_cast<std::size_t>(size));
    }
    return got;
  }
  [[nodiscard]] bool closed() const { return closed_; }
  /// Whether some of an answer is there to be read.
  [[nodiscard]] bool has_answer() const {
    pollfd wait{socket_, POLLIN, 0};
    return ::poll(&wait, 1, 0) == 1;
  }

 private:
  int socket_;
  bool connected_ = false;
  bool closed_ = false;
};

struct Answer {
  int status = 0;  ///< 0: none came
  std::string head, body;

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

inline Answer parsed_answer(const std::string& bytes) {
  Answer answer;
  const auto end = bytes.find("\r\n\r\n");
  if (end == std::string::npos || !bytes.starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::atoi(bytes.c_str() + std::strlen("HTTP/1.1 "));
  answer.head = bytes.substr(0, end + 2);
  answer.body = bytes.substr(end + 4);
  return answer;
}

/// `headers`: whole lines, each ended by CR and LF.
inline Answer ask(int port, const std::string& target, const std::string& headers = {},
                  const std::string& method = "GET") {
  Client client(port);
  const bool names_host = headers.find("Host:") != std::string::npos;
  client.send(method + " " + target + " HTTP/1.1\r\n" +
              (names_host ? "" : "Host: 127.0.0.1:" + std::to_string(port) + "\r\n") + headers +
              "Connection: close\r\n\r\n");
  return parsed_answer(client.read_all());
}

}  // namespace olmo::test
