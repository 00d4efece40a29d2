#include "data/zip_file.h"

#include <memory>
#include <vector>

#include <zip.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxEntry = 1ULL << 30;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

[[noreturn]] void fail(const fs::path& file, const std::string& entry, const std::string& what) {
  throw Error(ErrorKind::kInput,
              file.string() + ": " + (entry.empty() ? "" : "entry " + entry + " ") + what);
}

std::unique_ptr<zip_t, CloseArchive> open_archive(const fs::path& file) {
  check_regular_file(file);
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(file.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail(file, "", "is not a readable zip file (" + reason + ")");
}

void unpack_entry(const fs::path& file, zip_t* archive, const zip_stat_t& facts,
                  const fs::path& target) {
  if (facts.size > kMaxEntry)
    fail(file, facts.name, "claims " + std::to_string(facts.size) + " bytes");
  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(archive, facts.index, 0));
  if (!entry) fail(file, facts.name, "cannot be opened");
  make_folders(target.parent_path());
  OutputFile out(target);
  std::vector<char> block(1 << 18);
  std::uint64_t total = 0;
  for (;;) {
    const zip_int64_t count = zip_fread(entry.get(), block.data(), block.size());
    if (count < 0) fail(file, facts.name, "is damaged");
    if (count == 0) break;
    // The stated size was checked against kMaxEntry, so a small file cannot unpack to fill the
    // disk.
    total += static_cast<std::uint64_t>(count);
    if (total > facts.size) fail(file, facts.name, "is longer than it claims");
    out.append({block.data(), static_cast<std::size_t>(count)});
  }
  if (total != facts.size) fail(file, facts.name, "is shorter than it claims");
  out.publish_unsynced();
}

}  // namespace

bool leads_out(const fs::path& name) {
  if (name.is_absolute()) return true;
  for (const auto& part : name) {
    if (part == "..") return true;
  }
  return false;
}

std::uint64_t unpack_zip(const fs::path& file, const fs::path& folder,
                         const std::function<std::string(std::string_view)>& rename) {
  const auto archive = open_archive(file);
  std::uint64_t files = 0;
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t facts;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive.get(), index, 0, &facts) != 0 ||
        (facts.valid & (ZIP_STAT_NAME | ZIP_STAT_SIZE)) == 0) {
      fail(file, std::to_string(i), "has no readable header");
    }
    const std::string name = rename(facts.name);
    if (name.empty() || name.back() == '/') continue;
    if (leads_out(name)) fail(file, facts.name, "would be unpacked outside of its folder");
    unpack_entry(file, archive.get(), facts, folder / name);
    ++files;
  }
  return files;
}

}  // namespace olmo::data
