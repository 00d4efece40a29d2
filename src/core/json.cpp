#include "core/json.h"

#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/strict_json.h"

template class nlohmann::basic_json<>;  // see precompiled.h

namespace olmo {

Json read_json_file(const std::filesystem::path& path) {
  return parse_strict_json(read_file(path), {.where = path.string(), .is_file = true});
}

}  // namespace olmo
