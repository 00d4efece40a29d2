# Writes OUT: the kernels' source for GPUs as a C++ table (gpu_program() in dispatch.h). FILES are relative to SOURCE_DIR, the first is
# compiled.
include(${CMAKE_CURRENT_LIST_DIR}/../../embed.cmake)
set(rows "")
foreach(file IN LISTS FILES)
  olmo_literal("${SOURCE_DIR}/${file}" literal)
  string(REPLACE "ops/gpu/cstdint" "cstdint" name "${file}")
  string(APPEND rows "    {\"${name}\", ${literal}},\n")
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
