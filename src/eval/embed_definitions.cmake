# Writes OUT: the JSON files of EVALS/tasks and EVALS/suites as a C++ table (evaluation_files.h), and the texts of
# EVALS/samples as another (embedded_samples.h).
include(${CMAKE_CURRENT_LIST_DIR}/../embed.cmake)
file(GLOB files RELATIVE "${EVALS}" "${EVALS}/suites/*.json" "${EVALS}/tasks/*.json")
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(name "${file}" NAME_WE)
  olmo_literal("${EVALS}/${file}" literal)
  string(APPEND rows "    {\"${folder}\", \"${name}\", ${literal}},\n")
endforeach()
file(GLOB_RECURSE texts RELATIVE "${EVALS}" "${EVALS}/samples/*.jsonl")
list(SORT texts)
set(samples "")
foreach(file IN LISTS texts)
  olmo_literal("${EVALS}/${file}" literal)
  string(APPEND samples "    {\"${file}\", ${literal}},\n")
endforeach()
file(WRITE "${OUT}" "// Made by embed_definitions.cmake.
#include \"eval/embedded_samples.h\"
#include \"eval/evaluation_files.h\"

namespace olmo::eval {
namespace {

constexpr EmbeddedDefinition kDefinitions[] = {
${rows}};

constexpr EmbeddedSample kSamples[] = {
${samples}};

}  // namespace

std::span<const EmbeddedDefinition> embedded_definitions() { return kDefinitions; }

std::span<const EmbeddedSample> embedded_samples() { return kSamples; }

}  // namespace olmo::eval
")
