# Writes OUT: the kernels' source for GPUs as a C++ table (gpu_program() in dispatch.h). FILES are relative to SOURCE_DIR, the first is
# compiled.
set(rows "")
foreach(file IN LISTS FILES)
  file(READ "${SOURCE_DIR}/${file}" text)
  # Compilers need not take longer literals than 64 KiB.
  string(LENGTH "${text}" length)
  if(length GREATER 60000)
    message(FATAL_ERROR "${file} is too long to be embedded: ${length} characters")
  endif()
  string(REPLACE "ops/gpu/cstdint" "cstdint" name "${file}")
  string(APPEND rows "    {\"${name}\", R\"cpp~(${text})cpp~\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made by embed_program.cmake.
#include \"ops/dispatch.h\"

namespace olmo::ops {
namespace {

constexpr GpuProgram::File kFiles[] = {
${rows}};

constexpr const char* kDefinitions[] = {\"-DOLMO_GPU\", \"-DOLMO_ISA=isa_gpu\"};

}  // namespace

GpuProgram gpu_program() { return {kFiles, kDefinitions}; }

}  // namespace olmo::ops
")
