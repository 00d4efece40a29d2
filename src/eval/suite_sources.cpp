#include "eval/suite_sources.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "core/text/number.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

bool cut_ending(std::string_view& name, std::string_view ending) {
  if (name.size() <= ending.size() || !name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return true;
}

bool cut_beginning(std::string_view& name, std::string_view beginning) {
  if (!name.starts_with(beginning)) return false;
  name.remove_prefix(beginning.size());
  return true;
}

std::string_view without_compression(std::string_view name) {
  if (!cut_ending(name, ".gz")) cut_ending(name, ".zst");
  return name;
}

/// Whether a file of a folder is read. (A file that is named by itself may have any name.)
bool is_suite_file(const fs::path& path) {
  const std::string file = path.filename().string();
  const auto name = without_compression(file);
  return name.ends_with(".jsonl") || name.ends_with(".npy") || name.ends_with(".txt") ||
         (name.ends_with(".json") && name.size() < file.size());
}

bool is_separator(char c) { return c == '_' || c == '-' || c == '.'; }

/// What a file's name says beside source, split and number:
/// `c4_100_domains_5_www.theguardian.com_00000000.jsonl.gz` -> `5_www.theguardian.com`,
/// `val_00000000.jsonl.gz` -> nothing.
std::string subdomain_of(const fs::path& file, std::string_view source, std::string_view split) {
  if (file_kind(file) == FileKind::kTokens) return {};
  const std::string name = file.filename().string();
  std::string_view rest = without_compression(name);
  for (const std::string_view ending : {".jsonl", ".json", ".txt"})
    if (cut_ending(rest, ending)) break;
  constexpr std::size_t kShardDigits = 5;  // at least: `books-2` is a name
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[rest.size() - 1 - digits])) ++digits;
  if (digits >= kShardDigits) rest.remove_suffix(digits);
  for (const std::string_view known : {split, source}) {
    std::string_view after = rest;
    if (!known.empty() && cut_beginning(after, known) && (after.empty() || is_separator(after[0])))
      rest = after;
  }
  while (!rest.empty() && is_separator(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_separator(rest.back())) rest.remove_suffix(1);
  return std::string(rest);
}

[[noreturn]] void cannot_list(const fs::path& folder, const std::error_code& error) {
  throw Error(ErrorKind::kInput, folder.string() + ": cannot be listed: " + error.message());
}

/// Entries of a folder by name.
std::vector<fs::path> list_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error) cannot_list(folder, error);
  std::ranges::sort(entries);
  return entries;
}

/// Files below `folder` at every depth, by path. Links to folders are not followed: they may loop.
std::vector<fs::path> list_files(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (is_suite_file(it->path()) && fs::is_regular_file(it->status(error)))
      files.push_back(it->path());
  }
  if (error) cannot_list(folder, error);
  std::ranges::sort(files);
  return files;
}

/// Files of one split of a source's folder: `folder/SPLIT/…`, or `folder/SPLIT.npy` and the like;
/// nothing if it is not cut into splits that way.
std::vector<fs::path> split_files(const fs::path& folder, const std::string& split) {
  if (fs::is_directory(folder / split)) return list_files(folder / split);
  std::vector<fs::path> files;
  for (const fs::path& entry : list_folder(folder)) {
    if (is_suite_file(entry) && entry.filename().string().starts_with(split + "."))
      files.push_back(entry);
  }
  return files;
}

SuiteSource make_source(const std::string& name, const std::vector<fs::path>& files,
                        const std::string& split) {
  SuiteSource source{.name = name, .named_by_documents = false, .files = {}};
  for (const fs::path& file : files) {
    source.files.push_back({.path = file, .subdomain = subdomain_of(file, name, split)});
    if ((file_kind(file) == FileKind::kTokens) != (file_kind(files.front()) == FileKind::kTokens))
      throw Error(ErrorKind::kInput,
                  file.string() + ": token files and text files in one source (" + name + ")");
  }
  return source;
}

/// Name of the source that `folder` is: its own, or that of the folder around a split.
std::string folder_name(const fs::path& folder, const std::string& split) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == split) path = path.parent_path();
  return path.filename().string();
}

/// Files that are in no split: those below each folder are its source's, the others of `folder`'s.
std::vector<SuiteSource> unsplit_sources(const fs::path& folder, const std::string& split) {
  std::map<std::string, std::vector<fs::path>> files;
  for (const fs::path& file : list_files(folder)) {
    const fs::path below = file.lexically_relative(folder);
    const std::string first = below.begin()->string();
    files[below.has_parent_path() ? first : folder_name(folder, split)].push_back(file);
  }
  std::vector<SuiteSource> sources;
  for (const auto& [name, paths] : files) sources.push_back(make_source(name, paths, split));
  return sources;
}

/// Whether `folder` is cut into other splits, so that reading all of it would mix them.
bool has_other_split(const fs::path& folder) {
  constexpr std::array<const char*, 4> kSplits = {"val", "validation", "test", "train"};
  return std::any_of(kSplits.begin(), kSplits.end(),
                     [&](const std::string& split) { return !split_files(folder, split).empty(); });
}

std::vector<SuiteSource> folder_sources(const fs::path& folder, const std::string& split) {
  if (auto files = split_files(folder, split); !files.empty())
    return {make_source(folder_name(folder, split), files, split)};
  std::vector<SuiteSource> sources;
  bool other_split = has_other_split(folder);
  for (const fs::path& entry : list_folder(folder)) {
    if (!fs::is_directory(entry)) continue;
    if (auto files = split_files(entry, split); !files.empty())
      sources.push_back(make_source(entry.filename().string(), files, split));
    else
      other_split = other_split || has_other_split(entry);
  }
  if (!sources.empty()) return sources;
  if (other_split)
    throw Error(ErrorKind::kInput, folder.string() + ": has no split `" + split + "`, but others");
  return unsplit_sources(folder, split);
}

}  // namespace

FileKind file_kind(const fs::path& file) {
  const std::string whole = file.filename().string();
  const auto name = without_compression(whole);
  if (name.ends_with(".npy")) return FileKind::kTokens;
  const bool only_compressed = name.size() < whole.size() && name.find('.') == name.npos;
  return name.ends_with(".jsonl") || name.ends_with(".json") || only_compressed
             ? FileKind::kJsonLines
             : FileKind::kText;
}

std::vector<SuiteSource> find_sources(const std::string& name, const fs::path& path,
                                      const std::string& split) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error(ErrorKind::kInput, path.string() + ": does not exist or cannot be reached");
  if (!fs::is_directory(status))
    return {{.name = name, .named_by_documents = true, .files = {{.path = path, .subdomain = {}}}}};
  auto sources = folder_sources(path, split);
  if (sources.empty())
    throw Error(ErrorKind::kInput,
                path.string() + ": holds no .jsonl, .jsonl.gz, .jsonl.zst, .txt or .npy file");
  return sources;
}

Digest sources_digest(const std::vector<SuiteSource>& sources) {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.update_u64(text.size()).update(text); };
  for (const SuiteSource& source : sources) {
    add(source.name);
    hash.update_u64(source.files.size());
    for (const SuiteFile& file : source.files) {
      add(file.path.filename().string());
      add(file.subdomain);
      add(sha256_file(file.path).hex());
    }
  }
  return hash.finish();
}

}  // namespace olmo::eval
