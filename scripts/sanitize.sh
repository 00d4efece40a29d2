#!/usr/bin/env bash
# Builds the tests with sanitizers, in a folder of their own (build/address, build/thread), and runs them room by room.
#   scripts/sanitize.sh address|thread [ROOM ...]     ROOM: every one but cli, by default
# address: memory errors, leaks and undefined behaviour. thread: data races. LibTorch and OpenMP's library are not instrumented:
# tests/support/tsan.supp says what is hidden for that. Needs clang with its runtime (Debian: clang libclang-rt-14-dev libomp-dev).
# The build takes half an hour on two cores; it is ten times slower to run than the release. `cli` is left out: it runs the binary
# hundreds of times, and what that executes is tested by the rooms.
set -euo pipefail
cd "$(dirname "$0")/.."
script=sanitize.sh
source scripts/needs.sh
if [ "${1:-}" = --help ]; then usage scripts/sanitize.sh && exit; fi

kind=${1:-}
case "$kind" in
  address | thread) shift ;;
  *) refuse "expected 'address' or 'thread', got '$kind'" ;;
esac
command -v clang++ >/dev/null || refuse "needs clang++ (Debian: apt-get install clang libclang-rt-14-dev libomp-dev)"
rooms=("$@")
# All rooms that CMake makes an entry of, and the emulated GPU.
[ ${#rooms[@]} -gt 0 ] || read -ra rooms <<<"$(sed -n 's/^foreach(room \(.*\))$/\1/p' tests/CMakeLists.txt) gpu"

build=build/$kind
torch=${OLMO_LIBTORCH:-$cache/libtorch-$torch_version/torch}
options=(-S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DCMAKE_C_COMPILER=clang
  -DCMAKE_CXX_COMPILER=clang++ "-DOLMO_SANITIZE=$kind" "-DOLMO_LIBTORCH=$torch")
command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake "${options[@]}" >/dev/null
cmake --build "$build" --target "${SANITIZE_TARGET:-olmo_tests}"
[ -z "${SANITIZE_TARGET:-}" ] || exit 0

export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=suppressions=$PWD/tests/support/tsan.supp:ignore_noninstrumented_modules=1:halt_on_error=1:die_after_fork=0:allocator_may_return_null=1
failed=()
for room in "${rooms[@]}"; do
  echo "== $room"
  ctest --test-dir "$build" --verbose --tests-regex "^$room\$" || failed+=("$room")
done
[ ${#failed[@]} -eq 0 ] || { echo "sanitize.sh: findings in: ${failed[*]}" >&2; exit 5; }
