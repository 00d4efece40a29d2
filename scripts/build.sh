#!/usr/bin/env bash
# Sets up what is missing (Debian packages, LibTorch) and builds. The last line printed is the path of the binary.
#   scripts/build.sh [--libtorch DIR] [--tests] [--bench] [--build-dir DIR]
# An existing LibTorch (>= 2.6; CPU, CUDA or ROCm) is taken from --libtorch DIR or from $Torch_DIR; otherwise the PyPI wheel
# is unpacked, without its GPU dependencies, into the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
source scripts/needs.sh

libtorch=""
targets=(olmo-harness)
bench=OFF
build_dir=$root/build/release
while [ $# -gt 0 ]; do
  case "$1" in
    --libtorch) libtorch=${2:?--libtorch needs a folder}; shift ;;
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    --tests) targets+=(olmo_tests) ;;
    --bench) bench=ON; targets+=(bench_all) ;;
    *) echo "build.sh: unknown option '$1' (known: --libtorch DIR, --build-dir DIR, --tests, --bench)" >&2; exit 2 ;;
  esac
  shift
done

say() { echo "== $*" >&2; }

packages=(g++ cmake ninja-build git pkg-config ca-certificates python3 python3-pip "${libraries[@]}")
[ "$bench" = ON ] && packages+=(libbenchmark-dev)

install_packages() {
  local missing=()
  for package in "${packages[@]}"; do
    # A pip that is there by other means is as good as Debian's.
    [ "$package" = python3-pip ] && python3 -I -m pip --version >/dev/null 2>&1 && continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "build.sh: these packages are missing and neither root nor sudo is at hand: ${missing[*]}" >&2; exit 2; }
    sudo=sudo
  fi
  $sudo apt-get update -qq >&2
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

fetch_libtorch() {
  local place=$cache/libtorch-$torch_version
  if [ ! -f "$place/torch/lib/libtorch_cpu.so" ]; then
    say "fetching LibTorch $torch_version (once, into $cache)"
    rm -rf "$place.part" "$place"
    mkdir -p "$cache"
    PIP_ROOT_USER_ACTION=ignore python3 -I -m pip install -q --no-deps --target "$place.part" "torch==$torch_version" "${torch_cuda_libraries[@]}" >&2
    mv "$place.part" "$place"
  fi
  libtorch=$place/torch
}

install_packages
if [ -z "$libtorch" ] && [ -n "${Torch_DIR:-}" ]; then libtorch=$(cd "$Torch_DIR/../../.." && pwd); fi
[ -n "$libtorch" ] || fetch_libtorch

options=(-S "$root" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DOLMO_LIBTORCH=$libtorch" "-DOLMO_BENCH=$bench" -DOLMO_WERROR=${OLMO_WERROR:-OFF})
command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
log=$build_dir/build.log
mkdir -p "$build_dir"
say "building in $build_dir"
if ! { cmake "${options[@]}" && cmake --build "$build_dir" --target "${targets[@]}"; } >"$log" 2>&1; then
  grep -E "error|Error|FAILED" -A5 "$log" | head -60 >&2
  echo "build.sh: the build failed; the whole log is $log" >&2
  exit 1
fi
echo "$build_dir/olmo-harness"
