#include "eval/bounded_json.h"

namespace olmo::eval {

Json parse_bounded(std::string_view text, const std::string& where, ErrorKind kind,
                   std::string_view left_out) {
  constexpr int kMaxDepth = 32;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) throw Error(kind, where + ": is nested too deep");
    return event != Json::parse_event_t::key || depth != 1 || left_out.empty() ||
           parsed != left_out;
  };
  Json json;
  try {
    json = Json::parse(text, keep);
  } catch (const Json::exception& error) {
    throw Error(kind, where + ": is not valid JSON (" + error.what() + ")");
  }
  if (!json.is_object()) throw Error(kind, where + ": is not a JSON object");
  return json;
}

}  // namespace olmo::eval
