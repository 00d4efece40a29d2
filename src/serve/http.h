// What a page is asked and what it answers, without the protocol around it (server.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace olmo::serve {

/// Values of an address's query by name, decoded, in the order of the address.
using Query = std::map<std::string, std::vector<std::string>>;

/// What is asked for. Texts come from anywhere and may hold anything but bad UTF-8 and control
/// characters.
struct Request {
  std::string path;  ///< decoded, begins with `/`
  Query query = {};
  std::vector<std::string> parts = {};  ///< what `{}` stands for in the pattern of the route

  /// The first value of a name; empty: there is none.
  [[nodiscard]] std::string value(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> values(const std::string& name) const;
  /// Whether the answer is for a program: the path begins with /api/.
  [[nodiscard]] bool wants_json() const { return path.starts_with("/api/"); }
};

struct Response {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/html; charset=utf-8";
  /// In place of kContentPolicy, for a page that brings its script with it.
  std::string content_policy = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Nothing from outside, no script or form but ours, in nobody's frame. Styles of single elements
/// are part of the charts.
inline constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
    "data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

Response html_response(std::string html);
Response json_response(const nlohmann::ordered_json& json);
/// {"error": SENTENCE}, or a plain text for what is no API.
Response plain_response(int status, const std::string& sentence, bool json = false);
Response redirect_to(const std::string& address);

/// Path and query of an address as a request line has it (`/run/a?x=1&y=%20`). Nothing if it cannot
/// be understood: no `/` at its start, a wrong escape, what is no UTF-8, control characters.
std::optional<Request> parse_target(std::string_view target);

/// A text as a part of a path or query.
std::string url_encoded(std::string_view text);
/// `path`, which is encoded, with the values behind it: /curves?run=A&run=B.
std::string address_of(const std::string& path, const Query& query);

}  // namespace olmo::serve
