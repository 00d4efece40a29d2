#include "serve/gate.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <sys/random.h>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::serve {
namespace {

std::string cookie_name(const Gate& gate) { return "olmo_harness_" + std::to_string(gate.port); }

std::string cookie_value(std::string_view cookies, const std::string& name) {
  while (!cookies.empty()) {
    const std::string_view whole = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), whole.size() + 1));
    const std::string_view pair = trimmed(whole);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
      return std::string(pair.substr(name.size() + 1));
  }
  return {};
}

bool is_own_host(const Gate& gate, const std::string& host) {
  const std::string name = host_name(host);
  return name == "localhost" || is_address(name) ||
         std::find(gate.names.begin(), gate.names.end(), name) != gate.names.end();
}

/// The same address without the token, which then is in no history and no screenshot.
std::string address_without_token(const Request& request) {
  std::string address;
  std::size_t begin = 1;
  while (begin <= request.path.size()) {
    const std::size_t end = std::min(request.path.find('/', begin), request.path.size());
    address += "/" + url_encoded(request.path.substr(begin, end - begin));
    begin = end + 1;
  }
  // `//name` would lead to another machine.
  while (address.starts_with("//")) address.erase(0, 1);
  Query others = request.query;
  others.erase("token");
  return address_of(address.empty() ? "/" : address, others);
}

std::optional<Response> token_refusal(const Gate& gate, const RequestFacts& facts,
                                      Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = facts.authorization;
  if (authorization.starts_with(kBearer) &&
      same_secret(authorization.substr(kBearer.size()), gate.token))
    return std::nullopt;
  if (same_secret(request.value("token"), gate.token)) {
    Response response = redirect_to(address_without_token(request));
    response.headers.emplace_back(
        "Set-Cookie", cookie_name(gate) + "=" + gate.token + "; Path=/; HttpOnly; SameSite=Lax");
    return response;
  }
  if (same_secret(cookie_value(facts.cookie, cookie_name(gate)), gate.token)) return std::nullopt;
  return plain_response(401,
                        "This page needs the token. Open the address that `olmo-harness serve` "
                        "printed: it ends in ?token=…",
                        request.wants_json());
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
  return differs == 0;
}

std::string new_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw Error(ErrorKind::kFailure,
                std::string("serve: the system gives no random numbers: ") + std::strerror(errno));
  std::string token;
  for (const unsigned char byte : bytes) token += formatted("%02x", unsigned{byte});
  return token;
}

std::string host_name(std::string_view host) {
  std::string name;
  if (host.starts_with('['))
    name = host.substr(1, std::min(host.find(']'), host.size()) - 1);
  else
    name = host.substr(0, host.find(':'));
  if (name.ends_with('.')) name.pop_back();  // a full name's root
  return ascii_lower(name);
}

bool is_address(const std::string& text) {
  in6_addr place{};
  return ::inet_pton(AF_INET, text.c_str(), &place) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &place) == 1;
}

std::optional<Response> refusal(const Gate& gate, const RequestFacts& facts, Request& request) {
  const auto parsed = parse_target(facts.target);
  const bool json = parsed && parsed->wants_json();
  if (facts.method != "GET" && facts.method != "HEAD") {
    Response response =
        plain_response(405, "Only GET and HEAD are answered: nothing is changed here.", json);
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (!parsed) return plain_response(400, "This address cannot be understood.");
  if (facts.host.empty()) return plain_response(400, "The request must name one host.", json);
  if (!is_own_host(gate, facts.host))
    return plain_response(421,
                          "This server does not answer for the host name in the address. Use the "
                          "address that `olmo-harness serve` printed.",
                          json);
  if (facts.fetch_site == "cross-site" && facts.fetch_mode != "navigate")
    return plain_response(403, "Another site's page may not load this.", json);
  request = *parsed;
  std::optional<Response> refused;
  if (!gate.token.empty()) refused = token_refusal(gate, facts, request);
  request.query.erase("token");
  return refused;
}

}  // namespace olmo::serve
