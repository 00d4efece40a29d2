# Every external package, found and never fetched: builds must work offline. With OLMO_PROBE=FILE this is a question: LibTorch is left
# out, and the names of the packages that are missing are written into FILE (scripts/libraries.sh then builds them).

# need(PACKAGE [VERSION] [COMPONENTS ...]) and need_library(NAME HEADER LIBRARY) note what is missing, so that one message names all.
set(missing "")
macro(need package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND missing ${package})
  endif()
endmacro()
macro(need_library name header library)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
  if(NOT ${name}_INCLUDE_DIR OR NOT ${name}_LIBRARY)
    list(APPEND missing ${name})
  endif()
endmacro()

need(OpenMP COMPONENTS CXX)  # at::parallel_for is a header: without it our files run on one thread
need(HDF5 COMPONENTS C)
need(SQLite3 3.37)  # the first with STRICT tables
need(nlohmann_json 3.10)
need(CLI11 2.1)
need(yaml-cpp)
need(OpenSSL COMPONENTS Crypto)
need(ZLIB)
need(Boost 1.74)  # Boost.Math, Asio and Beast, headers only
need_library(ZSTD zstd.h zstd)
need_library(LIBZIP zip.h zip)
need_library(UTF8PROC utf8proc.h utf8proc)
if(BUILD_TESTING OR OLMO_PROBE)
  need(Catch2)
endif()
if(OLMO_PROBE)
  file(WRITE "${OLMO_PROBE}" "${missing}")
  return()
endif()
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "Not found: ${missing}. CMAKE_PREFIX_PATH=DIR names folders to search; scripts/build.sh installs or builds what is "
                      "missing, also without root.")
endif()

# LibTorch. Its own CMake package of a CUDA wheel demands the CUDA toolkit, which we do not need: the binary links
# libtorch_cpu and libc10 only and opens a GPU library at run time.
if(NOT OLMO_LIBTORCH AND Torch_DIR)
  get_filename_component(OLMO_LIBTORCH "${Torch_DIR}/../../.." ABSOLUTE)
endif()
find_library(TORCH_CPU_LIBRARY torch_cpu HINTS "${OLMO_LIBTORCH}/lib" "${OLMO_LIBTORCH}/torch/lib"
  NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
if(NOT TORCH_CPU_LIBRARY)
  message(FATAL_ERROR "LibTorch was not found: give its folder with -DOLMO_LIBTORCH=DIR (the folder that holds "
                      "include/ and lib/libtorch_cpu.so), or run scripts/build.sh, which fetches it.")
endif()
get_filename_component(TORCH_LIB_DIR "${TORCH_CPU_LIBRARY}" DIRECTORY)
get_filename_component(TORCH_ROOT "${TORCH_LIB_DIR}" DIRECTORY)
file(STRINGS "${TORCH_ROOT}/include/torch/headeronly/version.h" torch_version_lines REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
if(NOT torch_version_lines)  # before 2.10 the header lay elsewhere
  file(STRINGS "${TORCH_ROOT}/include/torch/csrc/api/include/torch/version.h" torch_version_lines REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
endif()
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" OLMO_TORCH_VERSION "${torch_version_lines}")
if(OLMO_TORCH_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "LibTorch in ${TORCH_ROOT} is ${OLMO_TORCH_VERSION}; 2.6 or newer is needed.")
endif()
message(STATUS "LibTorch ${OLMO_TORCH_VERSION} in ${TORCH_ROOT}")
add_library(libtorch INTERFACE)
target_include_directories(libtorch SYSTEM INTERFACE "${TORCH_ROOT}/include")
target_link_libraries(libtorch INTERFACE "${TORCH_CPU_LIBRARY}" "${TORCH_LIB_DIR}/libc10.so")
set(CMAKE_BUILD_RPATH "${TORCH_LIB_DIR}")
