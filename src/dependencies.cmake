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

need(OpenMP COMPONENTS CXX)  # core/compute/parallel.h
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

include("${CMAKE_CURRENT_LIST_DIR}/libtorch.cmake")
