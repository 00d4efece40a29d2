#include "core/json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"

namespace olmo {

Json read_json_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto* begin = reinterpret_cast<const char*>(file.bytes().data());
  const auto* end = begin + file.bytes().size();
  try {
    return Json::parse(begin, end);
  } catch (const Json::parse_error& error) {
    const auto stop = std::min<std::size_t>(error.byte, file.bytes().size());
    const auto line = 1 + std::count(begin, begin + stop, '\n');
    throw Error(ErrorKind::kInput, path.string() + ":" + std::to_string(line) +
                                       ": is not valid JSON (" + error.what() + ")");
  } catch (const Json::out_of_range& error) {  // a number beyond double
    throw Error(ErrorKind::kInput, path.string() + ": is not valid JSON (" + error.what() + ")");
  }
}

}  // namespace olmo
