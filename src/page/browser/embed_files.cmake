# Writes OUT: a function for each of FILES, which lie beside this script (files.h): charts.js is charts_js().
include(${CMAKE_CURRENT_LIST_DIR}/../../embed.cmake)
set(functions "")
foreach(file IN LISTS FILES)
  olmo_literal(${CMAKE_CURRENT_LIST_DIR}/${file} literal)
  string(REPLACE "." "_" name ${file})
  string(APPEND functions "const char* ${name}() { return ${literal}; }\n")
endforeach()
file(WRITE "${OUT}" "// Made by embed_files.cmake.
#include \"page/browser/files.h\"

namespace olmo::page {

${functions}
}  // namespace olmo::page
")
