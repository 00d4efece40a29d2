#include "core/libraries/needed_libraries.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <dlfcn.h>
#include <elf.h>

#include "core/environment_variable.h"
#include "core/libraries/loader_cache.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

/// Part of the dynamic section of an ELF file.
struct Needs {
  std::vector<std::string> libraries;
  std::vector<fs::path> folders;  ///< of RPATH and RUNPATH
};

/// Reads from a file; what lies beyond its end is zero.
class Reader {
 public:
  explicit Reader(const fs::path& file) : in_(file, std::ios::binary) {}

  template <class T>
  T at(std::uint64_t offset) {
    T value{};
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    if (!in_.read(reinterpret_cast<char*>(&value), sizeof value)) value = T{};
    return value;
  }
  std::string text(std::uint64_t offset) {
    std::string value;
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    std::getline(in_, value, '\0');
    return value;
  }

 private:
  std::ifstream in_;
};

std::vector<Elf64_Phdr> segments_of(Reader& file) {
  const auto header = file.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i)
    segments.push_back(file.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
  return segments;
}

/// Where the file keeps what will lie at `address` in memory.
std::uint64_t offset_of(std::uint64_t address, const std::vector<Elf64_Phdr>& segments) {
  for (const auto& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address < s.p_vaddr + s.p_filesz)
      return address - s.p_vaddr + s.p_offset;
  }
  return address;
}

std::vector<Elf64_Dyn> dynamic_entries(Reader& file, const std::vector<Elf64_Phdr>& segments) {
  std::vector<Elf64_Dyn> entries;
  for (const auto& s : segments) {
    if (s.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t i = 0; i < s.p_filesz / sizeof(Elf64_Dyn); ++i)
      entries.push_back(file.at<Elf64_Dyn>(s.p_offset + i * sizeof(Elf64_Dyn)));
  }
  return entries;
}

std::vector<fs::path> folders_in(const std::string& list, const fs::path& origin) {
  std::vector<fs::path> folders;
  std::istringstream in(list);
  for (std::string folder; std::getline(in, folder, ':');) {
    for (const std::string name : {"$ORIGIN", "${ORIGIN}"}) {
      if (const auto at = folder.find(name); at != std::string::npos)
        folder.replace(at, name.size(), origin.string());
    }
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

Needs needs_of(const fs::path& library) {
  Reader file(library);
  const auto segments = segments_of(file);
  const auto entries = dynamic_entries(file, segments);
  std::uint64_t strings = 0;
  for (const auto& entry : entries)
    if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr, segments);
  Needs needs;
  for (const auto& entry : entries) {
    const auto text = [&] { return file.text(strings + entry.d_un.d_val); };
    if (entry.d_tag == DT_NEEDED) needs.libraries.push_back(text());
    if (entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
    for (auto& folder : folders_in(text(), library.parent_path()))
      needs.folders.push_back(std::move(folder));
  }
  return needs;
}

std::optional<fs::path> find_in(const std::vector<fs::path>& folders, const std::string& name) {
  std::error_code error;
  for (const auto& folder : folders)
    if (fs::exists(folder / name, error)) return folder / name;
  return std::nullopt;
}

class Search {
 public:
  /// `asks_loader`: whether what is in no named folder is loaded, to see whether that can be done.
  explicit Search(bool asks_loader) : asks_loader_(asks_loader) {}

  /// `inherited`: the folders that the libraries which led here name; the loader takes those of
  /// RPATH for all that follows.
  void visit(const fs::path& library, std::vector<fs::path> inherited = {}) {
    if (!visited_.insert(library).second) return;
    if (is_cut(library)) {  // what it needs cannot be told
      cut_.push_back(library);
      return;
    }
    const Needs needs = needs_of(library);
    inherited.insert(inherited.begin(), needs.folders.begin(), needs.folders.end());
    for (const auto& name : needs.libraries) {
      if (!known_.insert(name).second) continue;
      if (const auto file = find(name, inherited)) {
        visit(*file, inherited);
      } else if (asks_loader_) {
        if (const auto absent = missed_by_loader(name)) missing_.insert(*absent);
      }
    }
  }
  [[nodiscard]] std::vector<std::string> missing() const {
    return {missing_.begin(), missing_.end()};
  }
  [[nodiscard]] const std::vector<fs::path>& cut() const { return cut_; }

 private:
  static std::optional<fs::path> find(const std::string& name,
                                      const std::vector<fs::path>& folders) {
    const auto file = find_in(folders, name);
    return file ? file : find_library(name);
  }
  /// The loader's message begins with the library that it lacks: this one or one that it needs.
  static std::optional<std::string> missed_by_loader(const std::string& name) {
    void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle != nullptr) {
      ::dlclose(handle);
      return std::nullopt;
    }
    const char* said = ::dlerror();
    const std::string message = said != nullptr ? said : "";
    const auto end = message.find(": cannot open shared object file");
    return end == std::string::npos ? name : message.substr(0, end);
  }

  bool asks_loader_;
  std::set<fs::path> visited_;
  std::set<std::string> known_, missing_;
  std::vector<fs::path> cut_;
};

}  // namespace

bool is_cut(const fs::path& library) {
  Reader file(library);
  const auto header = file.at<Elf64_Ehdr>(0);
  const auto segments = segments_of(file);
  if (segments.empty()) return false;
  std::uint64_t end = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  for (const auto& s : segments) end = std::max(end, s.p_offset + s.p_filesz);
  std::error_code error;
  const auto bytes = fs::file_size(library, error);
  return !error && bytes < end;
}

std::optional<fs::path> find_library(const std::string& name) {
  std::error_code error;
  const std::string path = environment_variable("LD_LIBRARY_PATH");
  if (auto file = find_in(folders_in(path, {}), name)) return file;
  for (const auto& file : cached_libraries(name))
    if (fs::exists(file, error)) return file;
  return std::nullopt;
}

std::vector<std::string> missing_libraries(const fs::path& library) {
  Search search(/*asks_loader=*/true);
  search.visit(library);
  return search.missing();
}

std::vector<fs::path> cut_libraries(const fs::path& library) {
  Search search(/*asks_loader=*/false);
  search.visit(library);
  return search.cut();
}

}  // namespace olmo
