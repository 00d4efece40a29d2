#include "launcher/find_libtorch.h"

#include <algorithm>
#include <fstream>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/libraries/needed_libraries.h"
#include "core/process/process.h"
#include "core/text/text.h"

namespace olmo::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "libtorch_cpu.so";
/// Of version.py; the rest of a long file is of no use here.
constexpr std::size_t kMostBytes = 1 << 16;

std::string beginning_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

/// The part of the text after `before` that a version is made of.
std::string word_after(const std::string& text, const std::string& before) {
  const auto found = text.find(before);
  if (found == std::string::npos) return "";
  const auto begin = found + before.size();
  const auto end = text.find_first_not_of(
      "0123456789.+-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", begin);
  return text.substr(begin, std::min(end, begin + 64) - begin);
}

/// `root` has lib/: the folder torch/ of a Python package, or one that PyTorch gives C++ users.
std::string version_of(const fs::path& root) {
  if (auto version = word_after(beginning_of(root / "version.py"), "__version__ = '");
      !version.empty())
    return version;
  if (auto version = word_after(beginning_of(root / "build-version"), ""); !version.empty())
    return version;
  const std::string header = beginning_of(root / "include/torch/headeronly/version.h");
  std::string version;
  for (const char* part : {"MAJOR ", "MINOR ", "PATCH "}) {
    const auto number = word_after(header, std::string("#define TORCH_VERSION_") + part);
    if (number.empty()) return "";
    version += (version.empty() ? "" : ".") + number;
  }
  return version;
}

/// "2.11" of "2.11.0+cu130".
std::string minor_of(const std::string& version) {
  const auto dot = version.find('.');
  if (dot == std::string::npos) return version;
  return version.substr(0, version.find_first_not_of("0123456789", dot + 1));
}

/// Each once, whatever links (lib64 to lib) and variables lead to it.
void add(std::optional<LibTorch> libtorch, std::vector<LibTorch>& found) {
  std::error_code error;
  const bool is_new = libtorch && std::ranges::none_of(found, [&](const LibTorch& each) {
                        return fs::equivalent(each.libraries, libtorch->libraries, error);
                      });
  if (is_new) found.push_back(*std::move(libtorch));
}

/// A PyTorch in an environment, whichever its Python is.
void add_installed(const fs::path& environment, std::vector<LibTorch>& found) {
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code error;  // what cannot be read has none
    std::vector<fs::path> folders;
    for (fs::directory_iterator each(environment / lib, error), end; !error && each != end;
         each.increment(error)) {
      if (each->path().filename().string().starts_with("python3")) folders.push_back(each->path());
    }
    std::sort(folders.begin(), folders.end());
    for (const auto& folder : folders) {
      for (const char* packages : {"site-packages", "dist-packages"})
        add(libtorch_in(folder / packages), found);
    }
  }
}

std::string described(const LibTorch& libtorch) {
  return (libtorch.version.empty() ? "one of unknown version" : libtorch.version) + " in " +
         libtorch.libraries.parent_path().string();
}

/// What a LibTorch of the right version lacks: PyPI's wheel needs two libraries of CUDA, which a
/// --no-deps leaves out; a copy onto a full disk has no end, on which the loader crashes.
std::string lack_of(const LibTorch& libtorch) {
  const fs::path library = libtorch.libraries / kLibrary;
  if (const auto cut = cut_libraries(library); !cut.empty())
    return "the end of " + cut.front().filename().string() + ": delete this cut copy";
  return joined(missing_libraries(library));
}

LibTorch named_libtorch(const std::string& folder, const std::string& minor) {
  const auto libtorch = libtorch_in(folder);
  if (!libtorch) {
    throw Error(ErrorKind::kUsage, "OLMO_LIBTORCH: " + folder + " has no lib/" + kLibrary +
                                       "; the folder of a LibTorch " + minor + " was expected");
  }
  if (minor_of(libtorch->version) != minor) {
    throw Error(ErrorKind::kUsage, "OLMO_LIBTORCH: LibTorch " + minor +
                                       " is needed, here is another: " + described(*libtorch));
  }
  if (const auto lack = lack_of(*libtorch); !lack.empty()) {
    throw Error(ErrorKind::kUsage,
                "OLMO_LIBTORCH: " + described(*libtorch) + " lacks what it needs: " + lack);
  }
  return *libtorch;
}

}  // namespace

std::optional<LibTorch> libtorch_in(const fs::path& folder) {
  for (const auto& root : {folder, folder / "torch"}) {
    std::error_code error;
    if (fs::is_regular_file(root / "lib" / kLibrary, error))
      return LibTorch{fs::absolute(root / "lib", error), version_of(root)};
  }
  return std::nullopt;
}

Places places_of(const fs::path& prefix) {
  Places places{environment_variable("OLMO_LIBTORCH"), {prefix}, {}};
  for (const char* active : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto folder = environment_variable(active); !folder.empty())
      places.environments.push_back(folder);
  }
  try {
    places.cache = cache_directory();
  } catch (const Error&) {  // no home: a LibTorch elsewhere is good enough
  }
  return places;
}

LibTorch find_libtorch(const Places& places, const std::string& needed,
                       const std::string& fetcher) {
  const std::string minor = minor_of(needed);
  if (!places.named.empty()) return named_libtorch(places.named, minor);
  std::vector<LibTorch> found;
  for (const auto& environment : places.environments) add_installed(environment, found);
  if (!places.cache.empty()) add(libtorch_in(places.cache / ("libtorch-" + needed)), found);
  std::string others;
  for (const auto& libtorch : found) {
    std::string lack;
    if (minor_of(libtorch.version) == minor) {
      lack = lack_of(libtorch);
      if (lack.empty()) return libtorch;
      lack = ", which lacks " + lack;
    }
    others += (others.empty() ? "" : "; ") + described(libtorch) + lack;
  }
  throw Error(ErrorKind::kUsage,
              "LibTorch " + minor + " is needed and was not found" +
                  (others.empty() ? "" : " (but " + others + ")") + ": `" + fetcher +
                  "` fetches it (700 MB, once" +
                  (places.cache.empty() ? "" : ", into " + places.cache.string()) + ")");
}

}  // namespace olmo::launcher
