#!/usr/bin/env bash
# Cross-builds for ARM64 on a Debian x86-64 machine, so that its bits can be checked under qemu-user where no such machine is at
# hand. The last line printed is the command prefix that runs the binary. On an ARM64 machine, use scripts/build.sh.
#   scripts/build_arm64.sh [--tests] [--build-dir DIR] [--jobs N]
# The libraries and the aarch64 LibTorch are fetched once into the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
script=build_arm64.sh
source scripts/needs.sh
if [ "${1:-}" = --help ]; then usage scripts/build_arm64.sh && exit; fi

targets=(olmo-harness)
build_dir=$root/build/arm64
jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --tests) targets+=(olmo_tests) ;;
    *) refuse "unknown option '$1' (known: --build-dir DIR, --jobs N, --tests)" ;;
  esac
  shift
done

install g++-aarch64-linux-gnu qemu-user-static mmdebstrap cmake ninja-build python3-pip

place=$cache/arm64
sysroot=$place/sysroot
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ ! -d "$sysroot" ]; then
  say "fetching ARM64 libraries of Debian $release (once, into $place)"
  rm -rf "$sysroot.part"
  mkdir -p "$place"
  mmdebstrap --quiet --variant=extract --arch=arm64 \
    --include="$(IFS=,; echo "libc6-dev,libstdc++-12-dev,libgomp1,${libraries[*]}")" "$release" "$sysroot.part" >&2
  mv "$sysroot.part" "$sysroot"
fi
torch=$place/libtorch-$torch_version
fetch_libtorch "$torch" --platform manylinux_2_28_aarch64 --platform manylinux_2_25_aarch64 --platform manylinux2014_aarch64
rm -f "$torch"/torch/lib/libtorch_cuda*.so  # most of the wheel, and never opened

export OLMO_ARM64_SYSROOT=$sysroot
build "$build_dir" "-DCMAKE_TOOLCHAIN_FILE=$root/scripts/arm64.cmake" "-DOLMO_LIBTORCH=$torch/torch" -DOLMO_BENCH=OFF \
  -DCMAKE_CXX_FLAGS_RELEASE=-O1 -- -j "$jobs" "${targets[@]}"  # -O1 builds in half the time; kernels bring flags of their own
# The whole program: what the other one becomes, the emulator would not emulate.
echo "qemu-aarch64-static -L $sysroot $build_dir/lib/olmo-harness/olmo-harness"
