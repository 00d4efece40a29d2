#!/usr/bin/env bash
# Cross-builds for ARM64 on a Debian x86-64 machine, so that its bits can be checked under qemu-user where no such machine is at
# hand. The last line printed is the command prefix that runs the binary. On an ARM64 machine, use scripts/build.sh.
#   scripts/build_arm64.sh [--tests] [--build-dir DIR] [--jobs N]
# The libraries and the aarch64 LibTorch are fetched once into the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
source scripts/needs.sh

targets=(olmo-harness)
build_dir=$root/build/arm64
jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --tests) targets+=(olmo_tests) ;;
    *) echo "build_arm64.sh: unknown option '$1' (known: --build-dir DIR, --jobs N, --tests)" >&2; exit 2 ;;
  esac
  shift
done

say() { echo "== $*" >&2; }

missing=()
for package in g++-aarch64-linux-gnu qemu-user-static mmdebstrap cmake ninja-build pkg-config python3-pip; do
  [ "$package" = python3-pip ] && python3 -I -m pip --version >/dev/null 2>&1 && continue
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
  $sudo apt-get update -qq >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

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
if [ ! -f "$torch/torch/lib/libtorch_cpu.so" ]; then
  say "fetching LibTorch $torch_version for ARM64 (once, into $place)"
  rm -rf "$torch.part" "$torch"
  python3 -I -m pip install -q --no-deps --target "$torch.part" --only-binary=:all: --platform manylinux_2_28_aarch64 \
    --platform manylinux_2_25_aarch64 --platform manylinux2014_aarch64 "torch==$torch_version" "${torch_cuda_libraries[@]}" >&2
  rm -f "$torch.part"/torch/lib/libtorch_cuda*.so  # most of the wheel, and never opened
  mv "$torch.part" "$torch"
fi

options=(-S "$root" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_TOOLCHAIN_FILE=$root/scripts/arm64.cmake"
         "-DOLMO_LIBTORCH=$torch/torch" -DOLMO_BENCH=OFF
         -DCMAKE_CXX_FLAGS_RELEASE=-O1)  # builds in half the time; kernels bring flags of their own
command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
log=$build_dir/build.log
mkdir -p "$build_dir"
say "building in $build_dir"
export OLMO_ARM64_SYSROOT=$sysroot
if ! { cmake "${options[@]}" && cmake --build "$build_dir" -j "$jobs" --target "${targets[@]}"; } >"$log" 2>&1; then
  grep -E "error|Error|FAILED" -A5 "$log" | head -60 >&2
  echo "build_arm64.sh: the build failed; the whole log is $log" >&2
  exit 1
fi
echo "qemu-aarch64-static -L $sysroot $build_dir/olmo-harness"
