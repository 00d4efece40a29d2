// A folder with a file a value. A value is written under another name first, so that readers see it
// whole; hard links make of several first values the one that came first.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>

#include "core/error.h"
#include "core/files/output_file.h"
#include "dist/store.h"

namespace olmo::dist {
namespace {

namespace fs = std::filesystem;

/// A key as the name of a file: letters, digits, '-' and '_' stand for themselves, and every other
/// byte for two digits after '%'. No key has a name with '.', which temporary files have.
std::string file_name(const std::string& key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (const char letter : key) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_';
    if (plain) {
      name += letter;
    } else {
      name += {'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
  }
  return name;
}

std::string unique_ending() {
  std::random_device random;
  return ".first-" + std::to_string(random()) + "-" + std::to_string(random());
}

class FileStore final : public Store {
 public:
  explicit FileStore(fs::path folder) : folder_(std::move(folder)) {}

  std::string name() const override { return "the store in " + folder_.string(); }

  void set(const std::string& key, const std::string& value) override { write(path(key), value); }

  std::string set_first(const std::string& key, const std::string& value) override {
    OLMO_CHECK(!value.empty());
    fs::path other = path(key);
    other += unique_ending();
    write(other, value);
    std::error_code error, ignored;
    fs::create_hard_link(other, path(key), error);
    fs::remove(other, ignored);
    if (!error) return value;
    if (error != std::errc::file_exists) fail(path(key), error.message());
    return get(key).value_or(value);
  }

  std::optional<std::string> get(const std::string& key) override {
    // On a network's disk, reading fails if the file is replaced meanwhile.
    constexpr int kTries = 5;
    for (int i = 0; i < kTries; ++i) {
      errno = 0;
      std::ifstream file(path(key), std::ios::binary);
      if (!file.is_open() && errno == ENOENT) return std::nullopt;
      if (!file.is_open()) continue;
      std::string value{std::istreambuf_iterator<char>(file), {}};
      if (!file.bad()) return value;
    }
    fail(path(key), std::string("cannot be read: ") + std::strerror(errno));
  }

  void erase(const std::string& key) override {
    std::error_code error;
    fs::remove(path(key), error);
    if (error) fail(path(key), error.message());
  }

  std::unique_ptr<Store> again() const override { return std::make_unique<FileStore>(folder_); }

 private:
  [[noreturn]] void fail(const fs::path& path, const std::string& why) const {
    throw Error(ErrorKind::kFailure, name() + ": " + path.filename().string() + ": " + why);
  }
  [[nodiscard]] fs::path path(const std::string& key) const { return folder_ / file_name(key); }
  static void write(const fs::path& path, const std::string& value) {
    OutputFile file(path);
    file.append(value);
    file.publish_unsynced();
  }

  fs::path folder_;
};

}  // namespace

std::unique_ptr<Store> file_store(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw Error(ErrorKind::kUsage, folder.string() +
                                       ": expected a folder for the ranks to meet in: " +
                                       (error ? error.message() : "it is something else"));
  }
  return std::make_unique<FileStore>(fs::absolute(folder));
}

}  // namespace olmo::dist
