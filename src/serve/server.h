// The HTTP server below the pages: it listens, lets in what gate.h lets in, has pages made by a few
// threads, and bounds what a client may take: bytes of a request, time, connections.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/http.h"

namespace olmo::serve {

inline constexpr int kDefaultPort = 8321;

struct ServerOptions {
  std::string host = {};          ///< address or name to listen at; empty: the loopback addresses
  int port = kDefaultPort;        ///< 0: any that is free
  bool next_free = true;          ///< if the port is taken, one of the next
  bool token = false;             ///< demanded at the loopback address, too
  double request_seconds = 10;    ///< for a request to arrive whole
  double idle_seconds = 60;       ///< for the next request of a connection
  double response_seconds = 120;  ///< for a response to be taken
  std::size_t connections = 256;  ///< at a time
};

/// Makes the answer to a request that was let in; called by several threads at once. An exception
/// becomes a page with status 500.
using Handler = std::function<Response(const Request&)>;

class Server {
 public:
  /// Listens from here on. Throws Error(kUsage) if that cannot be: the port is taken, or the
  /// address is not this machine's.
  Server(const ServerOptions& options, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] int port() const;
  /// Empty: none is demanded.
  [[nodiscard]] const std::string& token() const;
  /// The address of the first page, with the token if there is one.
  [[nodiscard]] std::string url() const;

  /// Answers until `should_stop`, which is asked five times a second, or until stop(). Answers that
  /// are being made are waited for.
  void run(const std::function<bool()>& should_stop = {});
  /// Ends run(); from any thread.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace olmo::serve
