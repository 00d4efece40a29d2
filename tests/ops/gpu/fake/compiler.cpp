// What our binary calls of NVRTC (libnvrtc.so), or with FAKE_HIP of hipRTC: a compiler that checks
// what it is given and makes an image for driver.cpp. FAKE_NVRTC_OLD: it is too old for ours.
// FAKE_COMPILED: a file that gets a line for every program that it compiles.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#if defined(FAKE_HIP)
#define NAME(name) hiprtc##name
#else
#define NAME(name) nvrtc##name
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kCompilation = 6;

struct Program {
  std::vector<std::string> texts;
  std::set<std::string> names;
  std::string log, code;
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
  const std::vector<std::string> wanted = {"--gpu-architecture=sm_90", "--fmad=false",
                                           "--ftz=false", "--prec-div=true", "-DOLMO_GPU"};
#endif
  for (const auto& option : wanted) {
    if (!options.contains(option)) program.log += "error: without " + option + "\n";
  }
  if (!program.log.empty()) return kCompilation;
  if (const char* file = std::getenv("FAKE_COMPILED"); file != nullptr)
    std::ofstream(file, std::ios::app) << words[0] << "\n";
  program.code = "emulated kernels of " + std::to_string(program.texts.size()) + " files";
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

static int code_size(void* program, std::size_t* size) {
  *size = static_cast<Program*>(program)->code.size() + 1;
  return 0;
}
static int code(void* program, char* to) {
  std::strcpy(to, static_cast<Program*>(program)->code.c_str());
  return 0;
}
#if defined(FAKE_HIP)
EXPORTED int hiprtcGetCodeSize(void* program, std::size_t* size) {
  return code_size(program, size);
}
EXPORTED int hiprtcGetCode(void* program, char* to) { return code(program, to); }
#else
EXPORTED int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return code_size(program, size);
}
EXPORTED int nvrtcGetCUBIN(void* program, char* to) { return code(program, to); }
EXPORTED int nvrtcGetPTXSize(void* program, std::size_t* size) { return code_size(program, size); }
EXPORTED int nvrtcGetPTX(void* program, char* to) { return code(program, to); }
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
