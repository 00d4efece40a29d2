#include "core/compute/gpu_code.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/environment_variable.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "core/process/process.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

/// Every product, sum, quotient and root rounded to nearest by itself, subnormals kept.
std::vector<std::string> options_for(Device device, const std::string& architecture) {
  if (device == Device::kCuda) {
    return {"--gpu-architecture=" + architecture,
            "--std=c++17",
            "--fmad=false",
            "--ftz=false",
            "--prec-div=true",
            "--prec-sqrt=true",
            "--device-as-default-execution-space"};
  }
  std::vector<std::string> options = {"-std=c++17",
                                      "-O3",
                                      "-ffp-contract=off",
                                      "-fno-fast-math",
                                      "-fhip-fp32-correctly-rounded-divide-sqrt",
                                      "-fno-gpu-flush-denormals-to-zero"};
  if (!architecture.empty()) options.push_back("--offload-arch=" + architecture);
  return options;
}

struct Destroyer {
  const GpuCompiler* compiler;
  void operator()(void* program) const { compiler->destroy(&program); }
};

std::string complaint(const GpuCompiler& compiler, void* program) {
  std::size_t size = 0;
  if (compiler.log_size(program, &size) != 0 || size == 0) return "it does not say why";
  std::string log(size, '\0');
  if (compiler.log(program, log.data()) != 0) return "it does not say why";
  log.resize(std::min(log.find('\0'), log.size()));
  const auto error = log.find("error");
  const auto begin = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

/// The words that the compiler is started with.
std::vector<std::string> words_for(Device device, const GpuProgram& program,
                                   const std::string& architecture) {
  auto words = options_for(device, architecture);
  words.insert(words.end(), program.definitions.begin(), program.definitions.end());
  return words;
}

/// Where hipRTC finds further options.
constexpr std::array kVariablesOfHiprtc = {"HIPRTC_COMPILE_OPTIONS_APPEND",
                                           "HIPRTC_LINK_OPTIONS_APPEND"};

constexpr std::size_t kDigestSize = sizeof(Digest::bytes);

std::string seal_of(const std::string& key, std::string_view code) {
  const Digest digest = Sha256().update(key).update(code).finish();
  return {digest.bytes.begin(), digest.bytes.end()};
}

/// Time since a file was written or used.
auto age_of(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return error ? fs::file_time_type::duration::zero() : fs::file_time_type::clock::now() - written;
}

}  // namespace

std::string compile_gpu_program(Device device, const GpuCompiler& compiler,
                                const GpuProgram& program, const std::string& architecture) {
  std::vector<const char*> names, texts, words;
  for (const auto& file : program.files.subspan(1)) {
    names.push_back(file.name);
    texts.push_back(file.text);
  }
  const auto options = words_for(device, program, architecture);
  for (const auto& option : options) words.push_back(option.c_str());
  void* created = nullptr;
  if (compiler.create(&created, program.files[0].text, program.files[0].name,
                      static_cast<int>(names.size()), texts.data(), names.data()) != 0)
    throw Error(ErrorKind::kFailure, "device: the GPU compiler cannot be started");
  const std::unique_ptr<void, Destroyer> owner(created, {&compiler});
  if (compiler.compile(created, static_cast<int>(words.size()), words.data()) != 0) {
    throw Error(ErrorKind::kFailure, "device: the kernels do not compile for " + architecture +
                                         ": " + complaint(compiler, created));
  }
  const bool as_text = architecture.starts_with("compute_");
  std::size_t size = 0;
  std::string code;
  if ((as_text ? compiler.text_size : compiler.code_size)(created, &size) == 0) code.resize(size);
  if (code.empty() || (as_text ? compiler.text : compiler.code)(created, code.data()) != 0)
    throw Error(ErrorKind::kFailure, "device: the GPU compiler gave no code for " + architecture);
  return code;
}

std::string cuda_architecture(const GpuCompiler& compiler, int capability) {
  std::string own = "sm_" + std::to_string(capability);
  int count = 0;
  if (compiler.count_capabilities(&count) != 0 || count < 1) return own;
  std::vector<int> known(static_cast<std::size_t>(count));
  if (compiler.capabilities(known.data()) != 0) return own;
  std::ranges::sort(known);
  const auto newer = std::ranges::upper_bound(known, capability);
  if (newer == known.begin()) {
    throw Error(ErrorKind::kUsage,
                "`device` is cuda, but " + compiler.name + " compiles for GPUs from sm_" +
                    std::to_string(known.front()) + " on, and this is an " + own +
                    ": name the folder of an older NVRTC in OLMO_GPU_LIBRARIES");
  }
  const int nearest = *std::prev(newer);
  return nearest == capability ? own : "compute_" + std::to_string(nearest);
}

std::string gpu_code_key(Device device, const GpuProgram& program, const std::string& architecture,
                         std::string_view made_by) {
  Sha256 hash;
  const auto add = [&](std::string_view text) { hash.update_u64(text.size()).update(text); };
  add(to_string(device));
  add(made_by);
  auto words = words_for(device, program, architecture);
  for (const char* name : kVariablesOfHiprtc)
    words.push_back(device == Device::kRocm ? environment_variable(name) : "");
  hash.update_u64(words.size());
  for (const auto& word : words) add(word);
  for (const auto& file : program.files) {
    add(file.name);
    add(file.text);
  }
  return hash.finish().hex();
}

KeptGpuCode KeptGpuCode::of_user() {
  try {
    return KeptGpuCode(cache_directory() / "kernels");
  } catch (const Error&) {  // this user has no folder
    return KeptGpuCode({});
  }
}

std::optional<std::string> KeptGpuCode::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path file = folder_ / key;
  try {
    const std::string bytes = read_file(file);
    if (bytes.size() <= kDigestSize) return std::nullopt;
    std::string code = bytes.substr(kDigestSize);
    if (bytes.compare(0, kDigestSize, seal_of(key, code)) != 0) return std::nullopt;
    std::error_code ignored;  // of a cache that can only be read
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
    return code;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void KeptGpuCode::keep(const std::string& key, std::string_view code) const {
  if (folder_.empty()) return;
  try {
    make_folders(folder_);
    OutputFile file(folder_ / key);
    file.append(seal_of(key, code));
    file.append(code);
    file.publish_unsynced();
    remove_old();
  } catch (const Error&) {  // a full disk, or a folder that is not ours
  }
}

/// What others write meanwhile has another name than a key, and is left to them for an hour.
void KeptGpuCode::remove_old() const {
  constexpr std::size_t kKeyLength = 2 * kDigestSize;
  std::vector<std::pair<fs::file_time_type::duration, fs::path>> kept;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& file = entry->path();
    std::error_code ignored;
    if (file.filename().string().size() == kKeyLength) {
      kept.emplace_back(age_of(file), file);
    } else if (age_of(file) > std::chrono::hours(1)) {
      fs::remove(file, ignored);
    }
  }
  std::ranges::sort(kept);
  for (std::size_t i = kMost; i < kept.size(); ++i) fs::remove(kept[i].second, error);
}

}  // namespace olmo
