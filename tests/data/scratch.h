// What the tests of this room share: a scratch folder, files in it, and the sentence that an error
// carries.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// A folder that vanishes with the object.
class ScratchFolder {
 public:
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return path() / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    // Written anew: ext4 waits for the disk where a file is cut to nothing and written again.
    std::filesystem::remove(path() / name);
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return path() / name;
  }

  template <typename Id>
  std::filesystem::path write_ids(std::string_view name, const std::vector<Id>& ids) const {
    return write(name, {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)});
  }

 private:
  TemporaryDirectory folder_;
};

/// `before`, `count` times `c`, `after`. (A loop: GCC 12 warns wrongly about joining constant
/// strings of these sizes.)
inline std::string padded(std::string before, std::size_t count, char c,
                          std::string_view after = "") {
  for (std::size_t i = 0; i < count; ++i) before.push_back(c);
  return before.append(after);
}

/// Kind and sentence of the Error that `call` throws; nothing if it throws none.
struct Thrown {
  ErrorKind kind;
  std::string text;
  [[nodiscard]] bool says(std::string_view part) const {
    return text.find(part) != std::string::npos;
  }
};

template <typename Call>
std::optional<Thrown> thrown_by(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return Thrown{error.kind(), error.what()};
  }
  return std::nullopt;
}

}  // namespace olmo::test
