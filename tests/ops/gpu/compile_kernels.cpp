// For scripts/check_gpu_kernels.sh: what a run on a GPU would compile, without one.
//   compile_kernels source FOLDER         writes the source that the binary carries
//   compile_kernels ptx compute_90 FILE   compiles it with NVRTC, as for device=cuda
#include <fstream>
#include <iostream>

#include "core/error.h"
#include "ops/dispatch.h"

namespace {

void write_source(const std::filesystem::path& folder) {
  for (const auto& [name, text] : olmo::ops::gpu_program().files) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
}

void write_ptx(const std::string& architecture, const std::filesystem::path& file) {
  const auto device = olmo::Device::kCuda;
  const auto compiler = olmo::open_gpu_compiler(device, olmo::gpu_library_folder());
  std::cout << compiler.name << "\n";
  const auto ptx =
      olmo::compile_gpu_program(device, compiler, olmo::ops::gpu_program(), architecture);
  std::ofstream(file) << ptx.c_str();
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  try {
    if (arguments.size() == 2 && arguments[0] == "source") {
      write_source(arguments[1]);
    } else if (arguments.size() == 3 && arguments[0] == "ptx") {
      write_ptx(arguments[1], arguments[2]);
    } else {
      std::cerr << "compile_kernels: source FOLDER, or ptx ARCHITECTURE FILE\n";
      return 2;
    }
  } catch (const olmo::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  return 0;
}
