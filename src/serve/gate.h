// Who may look: which requests are answered at all. Pages are read by people on this machine, and,
// if it was asked for, by those who know a token. A browser also sends requests that another web
// page made it send; none of those may read a run.
//
// - A web page's host name may lead to this machine's own address (DNS rebinding). Its pages would
//   then be of one origin with ours. So the Host header must be a name or address of this machine.
// - A page elsewhere may make a browser load ours as a picture, script or frame. It cannot read
//   it, and such loads are refused as well, since they make work.
// - Away from the loopback address everybody on the network could look. There a token is demanded:
//   it is part of the address that is printed, and kept in a cookie afterwards.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"

namespace olmo::serve {

struct Gate {
  std::vector<std::string> names = {};  ///< of this machine, in small letters; addresses are known
  std::string token = {};               ///< empty: none is demanded
  int port = 0;                         ///< part of the cookie's name: ports share cookies
};

/// What of a request decides. A header that is not there is empty.
struct RequestFacts {
  std::string method;
  std::string target;
  std::string host;
  std::string cookie = {};
  std::string authorization = {};
  std::string fetch_site = {};  ///< Sec-Fetch-Site
  std::string fetch_mode = {};  ///< Sec-Fetch-Mode
};

/// The answer to a request that is not let in, or that only brings the token; nothing: let in.
/// `request`: what the target was parsed to, without the token.
std::optional<Response> refusal(const Gate& gate, const RequestFacts& facts, Request& request);

/// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);
/// 128 random bits as 32 hexadecimal digits.
std::string new_token();
/// Of a Host header: `name`, `name:port`, `1.2.3.4:port`, `[::1]:port`, in small letters.
std::string host_name(std::string_view host);
/// Whether a text is an IPv4 or IPv6 address, without brackets.
bool is_address(const std::string& text);

}  // namespace olmo::serve
