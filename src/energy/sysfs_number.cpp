#include "energy/sysfs_number.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace olmo::energy {

std::optional<std::string> read_line(const std::filesystem::path& path, std::string* problem) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, 128> text{};
  const ssize_t size = file < 0 ? -1 : ::read(file, text.data(), text.size());
  if (size < 0) *problem = path.string() + ": " + std::strerror(errno);
  if (file >= 0) ::close(file);
  if (size < 0) return std::nullopt;
  const std::string line(text.data(), static_cast<std::size_t>(size));
  return line.substr(0, line.find('\n'));
}

std::optional<double> read_number(const std::filesystem::path& path, std::string* problem) {
  const auto line = read_line(path, problem);
  if (!line) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), number);
  if (error == std::errc{} && (end == line->data() + line->size() || *end == ' '))
    return static_cast<double>(number);
  *problem = path.string() + ": does not hold a number";
  return std::nullopt;
}

}  // namespace olmo::energy
