# Toolchain for scripts/build_arm64.sh: Debian's cross compiler, libraries from $OLMO_ARM64_SYSROOT, tests under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT $ENV{OLMO_ARM64_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})

set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Debian's HDF5 lies in folders of its own, which this machine's h5cc would name wrongly.
set(HDF5_C_COMPILER_EXECUTABLE OFF)
set(CMAKE_INCLUDE_PATH /usr/include/hdf5/serial)
set(CMAKE_LIBRARY_PATH /usr/lib/aarch64-linux-gnu/hdf5/serial)
