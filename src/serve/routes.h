// Which page or answer belongs to which path.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serve/http.h"

namespace olmo::serve {

/// A path is a list of words between slashes; in a pattern `{}` stands for one word, which becomes
/// a part of the request: "/run/{}/curves".
struct Route {
  std::string pattern;
  std::function<Response(const Request&)> answer;
};

class Routes {
 public:
  void add(std::string pattern, std::function<Response(const Request&)> answer);
  /// The answer of the first route that fits; a page with one sentence if there is none, or for an
  /// Error of a route.
  [[nodiscard]] Response answer(const Request& request) const;

 private:
  std::vector<Route> routes_;
};

/// What is asked for is not there: becomes status 404 with this sentence.
class NotFound : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace olmo::serve
