// For scripts/check_gpu_kernels.sh: what a run on a GPU would compile, without one.
//   compile_kernels source FOLDER         writes the source that the binary carries
//   compile_kernels ptx compute_90 FILE   compiles it with NVRTC, as for device=cuda, and fails if
//                                         that warns
//   compile_kernels start sm_90 FOLDER    finds the code that was kept in FOLDER, or compiles it
//   and
//                                         keeps it there, as a start does; the processor's seconds
#include <fstream>
#include <iostream>

#include <sys/resource.h>

#include "core/error.h"
#include "ops/dispatch.h"

namespace {

constexpr auto kDevice = olmo::Device::kCuda;

void write_source(const std::filesystem::path& folder) {
  for (const auto& [name, text] : olmo::ops::gpu_program().files) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
}

olmo::GpuCompiler compiler;
std::string log_of_compiler;

/// The log, which has the warnings, goes with the program.
int keep_log_and_destroy(void** program) {
  std::size_t size = 0;
  if (compiler.log_size(*program, &size) == 0 && size > 1) {
    log_of_compiler.resize(size);
    compiler.log(*program, log_of_compiler.data());
    log_of_compiler.resize(size - 1);
  }
  return compiler.destroy(program);
}

void write_ptx(const std::string& architecture, const std::filesystem::path& file) {
  compiler = olmo::open_gpu_compiler(kDevice, olmo::gpu_library_folder());
  auto watched = compiler;
  watched.destroy = keep_log_and_destroy;
  const auto ptx =
      olmo::compile_gpu_program(kDevice, watched, olmo::ops::gpu_program(), architecture);
  std::ofstream(file) << ptx.c_str();
  if (!log_of_compiler.empty()) {
    throw olmo::Error(
        olmo::ErrorKind::kCheckFailed,
        compiler.name + " warns: " + log_of_compiler.substr(0, log_of_compiler.find('\n')));
  }
  std::cout << compiler.name << "\n";
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void time_start(const std::string& architecture, const std::filesystem::path& folder) {
  const double before = processor_seconds();
  compiler = olmo::open_gpu_compiler(kDevice, olmo::gpu_library_folder());
  const auto program = olmo::ops::gpu_program();
  const olmo::KeptGpuCode kept(folder);
  const auto key = olmo::gpu_code_key(kDevice, program, architecture, compiler.name);
  auto code = kept.find(key);
  const bool found = code.has_value();
  if (!found) {
    code = olmo::compile_gpu_program(kDevice, compiler, program, architecture);
    kept.keep(key, *code);
  }
  std::cout << (found ? "found " : "compiled ") << code->size() << " "
            << processor_seconds() - before << "\n";
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  try {
    if (arguments.size() == 2 && arguments[0] == "source") {
      write_source(arguments[1]);
    } else if (arguments.size() == 3 && arguments[0] == "ptx") {
      write_ptx(arguments[1], arguments[2]);
    } else if (arguments.size() == 3 && arguments[0] == "start") {
      time_start(arguments[1], arguments[2]);
    } else {
      std::cerr << "compile_kernels: source FOLDER, or ptx or start ARCHITECTURE PLACE\n";
      return 2;
    }
  } catch (const olmo::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  return 0;
}
