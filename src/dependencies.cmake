# Every external package, found and never fetched: builds must work offline.

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

find_package(OpenMP REQUIRED COMPONENTS CXX)  # at::parallel_for is a header: without it our files run on one thread
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)  # Boost.Math, headers only
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
