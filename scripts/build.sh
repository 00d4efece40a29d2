#!/usr/bin/env bash
# Sets up what is missing and builds. The last line printed is the path of the binary.
#   scripts/build.sh [--libtorch DIR] [--tests] [--bench] [--build-dir DIR] [--no-root]
# --tests and --bench build tests and benchmarks, too; --build-dir is build/release if it is not said.
# Missing packages are installed by apt, where there are apt and root or sudo. Elsewhere, on older systems, and with --no-root, missing
# libraries are built into the cache.
# An existing LibTorch (>= 2.6; CPU, CUDA or ROCm) is taken from --libtorch DIR or from $Torch_DIR; otherwise the PyPI wheel
# is unpacked, without its GPU dependencies, into the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness).
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
root=$PWD
script=build.sh
source scripts/needs.sh

libtorch=""
targets=(olmo-harness)
bench=OFF
no_root=""
build_dir=$root/build/release
while [ $# -gt 0 ]; do
  case "$1" in
    --libtorch) libtorch=$(at "${2:?--libtorch needs a folder}"); shift ;;
    --build-dir) build_dir=$(at "${2:?--build-dir needs a folder}"); shift ;;
    --tests) targets+=(olmo_tests) ;;
    --bench) bench=ON; targets+=(bench_all) ;;
    --no-root) no_root=1 ;;
    --help) usage "$root/scripts/build.sh" && exit ;;
    *) refuse "unknown option '$1' (known: --libtorch DIR, --build-dir DIR, --tests, --bench, --no-root)" ;;
  esac
  shift
done

packages=(g++ cmake ninja-build git ca-certificates "${libraries[@]}")
[ "$bench" = ON ] && packages+=(libbenchmark-dev)
if [ -z "$libtorch" ] && [ -n "${Torch_DIR:-}" ]; then libtorch=$(at "$Torch_DIR/../../.."); fi
if [ -z "$libtorch" ]; then packages+=(python3 python3-pip)
elif [ ! -f "$libtorch/lib/libtorch_cpu.so" ] && [ ! -f "$libtorch/torch/lib/libtorch_cpu.so" ]; then
  refuse "$libtorch is no LibTorch: it has no lib/libtorch_cpu.so"
fi
options=()
if [ -z "$no_root" ] && command -v dpkg-query >/dev/null && are_new_enough /etc/os-release && { is_installed "${packages[@]}" || may_install; }; then
  # Tests want a terminal of their own, and skip what needs it where there is none.
  if [[ " ${targets[*]} " == *" olmo_tests "* ]] && may_install; then packages+=(tmux); fi
  install "${packages[@]}"
else
  source scripts/libraries.sh
  [ "$bench" = OFF ] || say "--bench needs Google Benchmark, which is not built here"
  [ -n "$libtorch" ] || find_pip
  find_tools
  provide_libraries
  options+=("-DCMAKE_PREFIX_PATH=$libraries_prefix")
fi
if [ -z "$libtorch" ]; then
  libtorch=$cache/libtorch-$torch_version/torch
  fetch_libtorch "$cache/libtorch-$torch_version"
fi

build "$build_dir" "-DOLMO_LIBTORCH=$libtorch" "-DOLMO_BENCH=$bench" "${options[@]}" -- "${targets[@]}"
echo "$build_dir/olmo-harness"
