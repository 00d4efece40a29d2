#include "data/public/wheel.h"

#include <memory>
#include <vector>

#include <zip.h>

#include "core/error.h"
#include "core/input_file.h"
#include "core/output_file.h"

namespace olmo::data {
namespace {

constexpr std::uint64_t kMaxEntry = 1ULL << 30;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

[[noreturn]] void fail(const std::filesystem::path& wheel, const std::string& entry,
                       const std::string& what) {
  throw Error(ErrorKind::kInput,
              wheel.string() + ": " + (entry.empty() ? "" : "entry " + entry + " ") + what);
}

std::unique_ptr<zip_t, CloseArchive> open_archive(const std::filesystem::path& wheel) {
  check_regular_file(wheel);
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(wheel.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail(wheel, "", "is not a readable wheel (" + reason + "); fetch it again");
}

/// An archive names its entries itself: `../` in a name would write outside of the folder.
bool leads_out(const std::filesystem::path& name) {
  if (name.is_absolute()) return true;
  for (const auto& part : name) {
    if (part == "..") return true;
  }
  return false;
}

void unpack_entry(const std::filesystem::path& wheel, zip_t* archive, const zip_stat_t& facts,
                  const std::filesystem::path& target) {
  if (facts.size > kMaxEntry)
    fail(wheel, facts.name, "claims " + std::to_string(facts.size) + " bytes");
  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive, facts.index, 0));
  if (!entry) fail(wheel, facts.name, "cannot be opened");
  std::error_code error;
  std::filesystem::create_directories(target.parent_path(), error);
  if (error)
    throw Error(ErrorKind::kFailure,
                target.parent_path().string() + ": cannot be created: " + error.message());
  OutputFile out(target);
  std::vector<char> block(1 << 18);
  std::uint64_t total = 0;
  for (;;) {
    const zip_int64_t count = zip_fread(entry.get(), block.data(), block.size());
    if (count < 0) fail(wheel, facts.name, "is damaged");
    if (count == 0) break;
    // The stated size was checked against kMaxEntry, so a small file cannot unpack to fill the
    // disk.
    total += static_cast<std::uint64_t>(count);
    if (total > facts.size) fail(wheel, facts.name, "is longer than it claims");
    out.append({block.data(), static_cast<std::size_t>(count)});
  }
  if (total != facts.size) fail(wheel, facts.name, "is shorter than it claims");
  out.publish_unsynced();
}

}  // namespace

std::uint64_t unpack_wheel(const std::filesystem::path& wheel, const std::filesystem::path& folder,
                           const std::function<std::string(std::string_view)>& rename) {
  const auto archive = open_archive(wheel);
  std::uint64_t files = 0;
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t facts;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive.get(), index, 0, &facts) != 0 ||
        (facts.valid & (ZIP_STAT_NAME | ZIP_STAT_SIZE)) == 0) {
      fail(wheel, std::to_string(i), "has no readable header");
    }
    const std::string name = rename(facts.name);
    if (name.empty() || name.back() == '/') continue;
    if (leads_out(name)) fail(wheel, facts.name, "would be unpacked outside of its folder");
    unpack_entry(wheel, archive.get(), facts, folder / name);
    ++files;
  }
  return files;
}

}  // namespace olmo::data
