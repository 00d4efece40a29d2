// What our binary calls of NVRTC (libnvrtc.so), or with FAKE_HIP of hipRTC: a compiler that checks
// what it is given and makes an image for driver.cpp. FAKE_NVRTC_OLD: it is too old for ours.
// FAKE_COMPILED: a file that gets a line for every program that it compiles.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#if defined(FAKE_HIP)
#define NAME(name) hiprtc##name
#else
#define NAME(name) nvrtc##name
#define nvrtcGetCode nvrtcGetCUBIN
#define nvrtcGetCodeSize nvrtcGetCUBINSize
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kCompilation = 6;
#if !defined(FAKE_HIP)
constexpr int kCapabilities[] = {75, 80, 90};
const std::string kArchitecture = "--gpu-architecture=";
#endif

struct Program {
  std::vector<std::string> texts;
  std::set<std::string> names;
  std::string log, code, text;  ///< text: PTX
};

/// Every file that is included must have been given.
void check_includes(Program& program) {
  static const std::regex kInclude("#include [<\"]([^>\"]+)[>\"]");
  for (const auto& text : program.texts) {
    for (std::sregex_iterator i(text.begin(), text.end(), kInclude), end; i != end; ++i) {
      const std::string name = (*i)[1];
      const bool elsewhere = name == "emulator.h" || name == "ops/simd_avx512.h" ||
                             name == "ops/simd_avx2.h" || name == "ops/simd_plain.h";
      if (!elsewhere && !program.names.contains(name)) program.log += "error: no " + name + "\n";
    }
  }
}

}  // namespace

EXPORTED int NAME(CreateProgram)(void** created, const char* source, const char*, int headers,
                                 const char* const* texts, const char* const* names) {
  auto* program = new Program;
  program->texts.emplace_back(source);
  program->texts.insert(program->texts.end(), texts, texts + headers);
  program->names.insert(names, names + headers);
  *created = program;
  return 0;
}

EXPORTED int NAME(CompileProgram)(void* compiled, int count, const char* const* words) {
  auto& program = *static_cast<Program*>(compiled);
  check_includes(program);
  const std::set<std::string> options(words, words + count);
#if defined(FAKE_HIP)
  const std::vector<std::string> wanted = {"-ffp-contract=off", "-DOLMO_GPU"};
#else
  const std::vector<std::string> wanted = {"--fmad=false", "--ftz=false", "--prec-div=true",
                                           "-DOLMO_GPU"};
  const bool as_text = options.contains(kArchitecture + "compute_90");
  if (!as_text && !options.contains(kArchitecture + "sm_90") &&
      !options.contains(kArchitecture + "sm_80"))
    program.log += "error: invalid value for --gpu-architecture\n";
#endif
  for (const auto& option : wanted) {
    if (!options.contains(option)) program.log += "error: without " + option + "\n";
  }
  if (!program.log.empty()) return kCompilation;
  if (const char* file = std::getenv("FAKE_COMPILED"); file != nullptr)
    std::ofstream(file, std::ios::app) << words[0] << "\n";
  const std::string image =
      "emulated kernels of " + std::to_string(program.texts.size()) + " files";
#if defined(FAKE_HIP)
  program.code = image;
#else
  (as_text ? program.text : program.code) = image;
#endif
  return 0;
}

EXPORTED int NAME(GetProgramLogSize)(void* program, std::size_t* size) {
  *size = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
EXPORTED int NAME(GetProgramLog)(void* program, char* log) {
  std::strcpy(log, static_cast<Program*>(program)->log.c_str());
  return 0;
}

static int size_of(const std::string& image, std::size_t* size) {
  *size = image.empty() ? 0 : image.size() + 1;
  return 0;
}
static int copy_of(const std::string& image, char* to) {
  std::strcpy(to, image.c_str());
  return 0;
}
EXPORTED int NAME(GetCodeSize)(void* program, std::size_t* size) {
  return size_of(static_cast<Program*>(program)->code, size);
}
EXPORTED int NAME(GetCode)(void* program, char* to) {
  return copy_of(static_cast<Program*>(program)->code, to);
}
#if !defined(FAKE_HIP)
EXPORTED int nvrtcGetPTXSize(void* program, std::size_t* size) {
  return size_of(static_cast<Program*>(program)->text, size);
}
EXPORTED int nvrtcGetPTX(void* program, char* to) {
  return copy_of(static_cast<Program*>(program)->text, to);
}
EXPORTED int nvrtcGetNumSupportedArchs(int* count) {
  *count = std::size(kCapabilities);
  return 0;
}
EXPORTED int nvrtcGetSupportedArchs(int* capabilities) {
  std::copy(std::begin(kCapabilities), std::end(kCapabilities), capabilities);
  return 0;
}
#endif
EXPORTED int NAME(DestroyProgram)(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
EXPORTED int NAME(Version)(int* major, int* minor) {
  *major = 12;
  *minor = std::getenv("FAKE_NVRTC_OLD") != nullptr ? 1 : 4;
  return 0;
}
