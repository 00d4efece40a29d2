# Writes OUT: the JSON files of EVALS/tasks and EVALS/suites as a C++ table (evaluation_files.h).
file(GLOB files RELATIVE "${EVALS}" "${EVALS}/suites/*.json" "${EVALS}/tasks/*.json")
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${EVALS}/${file}" text)
  # Compilers need not take longer literals than 64 KiB.
  string(LENGTH "${text}" length)
  if(length GREATER 60000)
    message(FATAL_ERROR "${file} is too long to be embedded: ${length} characters")
  endif()
  string(APPEND rows "    {\"${folder}\", \"${name}\", R\"json~(${text})json~\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made by embed_definitions.cmake.
#include \"eval/evaluation_files.h\"

namespace olmo::eval {
namespace {

constexpr EmbeddedDefinition kDefinitions[] = {
${rows}};

}  // namespace

std::span<const EmbeddedDefinition> embedded_definitions() { return kDefinitions; }

}  // namespace olmo::eval
")
