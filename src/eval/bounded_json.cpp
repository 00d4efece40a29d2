#include "eval/bounded_json.h"

#include "core/strict_json.h"

namespace olmo::eval {

Json parse_bounded(std::string_view text, const std::string& where, ErrorKind kind,
                   std::string_view left_out) {
  constexpr int kMaxDepth = 32;
  Json json = parse_strict_json(
      text, {.where = where, .kind = kind, .max_depth = kMaxDepth, .left_out = left_out});
  if (!json.is_object()) throw Error(kind, where + ": is not a JSON object");
  return json;
}

}  // namespace olmo::eval
