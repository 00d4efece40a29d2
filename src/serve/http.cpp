#include "serve/http.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/text/text.h"

namespace olmo::serve {
namespace {

std::optional<int> hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// `plus`: a `+` is a blank, as in a form's fields.
std::optional<std::string> decoded(std::string_view text, bool plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus) c = ' ';
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const auto high = hexadecimal(text[i + 1]), low = hexadecimal(text[i + 2]);
      if (!high || !low) return std::nullopt;
      c = static_cast<char>(*high * 16 + *low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  if (!is_utf8(out)) return std::nullopt;
  return out;
}

bool parse_query(std::string_view text, Query& query) {
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    if (field.empty()) continue;
    const std::size_t equals = std::min(field.find('='), field.size());
    const auto name = decoded(field.substr(0, equals), true);
    const auto value = decoded(field.substr(std::min(field.size(), equals + 1)), true);
    if (!name || !value) return false;
    query[*name].push_back(*value);
  }
  return true;
}

}  // namespace

std::string Request::value(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second.front();
}

std::vector<std::string> Request::values(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::vector<std::string>() : found->second;
}

Response html_response(std::string html) {
  Response response;
  response.body = std::move(html);
  return response;
}

Response json_response(const nlohmann::ordered_json& json) {
  Response response;
  response.body = json_text(json) + "\n";
  response.content_type = "application/json";
  return response;
}

Response plain_response(int status, const std::string& sentence, bool json) {
  Response response = json ? json_response(nlohmann::ordered_json{{"error", sentence}})
                           : html_response(sentence + "\n");
  if (!json) response.content_type = "text/plain; charset=utf-8";
  response.status = status;
  return response;
}

Response redirect_to(const std::string& address) {
  Response response = plain_response(303, "See " + address);
  response.headers.emplace_back("Location", address);
  return response;
}

std::optional<Request> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  target = target.substr(0, target.find('#'));
  const std::size_t mark = std::min(target.find('?'), target.size());
  const auto path = decoded(target.substr(0, mark), false);
  if (!path) return std::nullopt;
  Request request{.path = *path};
  if (!parse_query(target.substr(std::min(target.size(), mark + 1)), request.query))
    return std::nullopt;
  return request;
}

std::string url_encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain)
      out += c;
    else
      (out += '%', out += kDigits[byte >> 4U], out += kDigits[byte & 15U]);
  }
  return out;
}

std::string address_of(const std::string& path, const Query& query) {
  std::string address = path;
  char separator = '?';
  for (const auto& [name, values] : query) {
    for (const auto& value : values) {
      address += separator + url_encoded(name) + "=" + url_encoded(value);
      separator = '&';
    }
  }
  return address;
}

}  // namespace olmo::serve
