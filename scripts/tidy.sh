#!/usr/bin/env bash
# Checks C++ files with clang-tidy, and exits with 5 if it finds something.
#   scripts/tidy.sh            those that differ from origin/main; on origin/main itself, the 60 that were changed last
#   scripts/tidy.sh BASE       those that differ from the commit BASE
#   scripts/tidy.sh FILE...    these; all: scripts/tidy.sh $(git ls-files '*.cpp')
# A file that was moved, or of which nothing but includes changed, does not differ. The checks are those of .clang-tidy. A file takes nine
# seconds of processor time, so all of them take an hour on two cores, and 60 five minutes. A header is checked with the .cpp of its name,
# the kernels for GPUs with the emulator's.
# Needs clang and clang-tidy (Debian: apt-get install clang clang-tidy libomp-dev) and what a build needs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
script=tidy.sh
source scripts/needs.sh
if [ "${1:-}" = --help ]; then usage scripts/tidy.sh && exit; fi
command -v clang-tidy >/dev/null && command -v clang++ >/dev/null || refuse "needs clang and clang-tidy (Debian: apt-get install clang clang-tidy libomp-dev)"

# Prints the files of a diff on standard input.
changed() { sed -n 's#^+++ b/##p'; }
only=(-M -U0 --dst-prefix=b/ '-I^#include ')

# Prints the .cpp files of those on standard input, each once.
units() {
  sed -E 's#^src/ops/gpu/.*\.(h|cu)$#tests/ops/gpu/fake/kernels.cpp#; s/\.h$/.cpp/' | awk '/\.cpp$/ && !seen[$0]++' | while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

if [ $# -gt 0 ] && [ -f "$1" ]; then
  files=("$@")
else
  base=${1:-$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD)}
  git rev-parse --verify --quiet "$base^{commit}" >/dev/null || refuse "'$base' is no commit and no file"
  mapfile -t files < <({ git diff "${only[@]}" "$base" | changed; git ls-files --others --exclude-standard; } | units)
  if [ $# -eq 0 ] && [ ${#files[@]} -eq 0 ]; then
    mapfile -t files < <(git log --format= -p "${only[@]}" | changed | units | head -60)
  fi
fi
# Benchmarks have commands where Google's library is installed.
if [ -e /usr/include/benchmark/benchmark.h ]; then bench=ON; else bench=OFF; fi
[ $bench = ON ] || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v -e '^bench/' -e '^$')
if [ ${#files[@]} -eq 0 ]; then
  say "no C++ file differs"
  exit 0
fi

# clang reads no precompiled header of GCC's, so the commands are those of a build without one. Nothing is built.
# Fuzz targets have commands with the address sanitizer only.
libtorch=${OLMO_LIBTORCH:-$cache/libtorch-$torch_version/torch}
mkdir -p build
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DOLMO_PCH=OFF \
  -DOLMO_SANITIZE=address -DOLMO_BENCH=$bench "-DOLMO_LIBTORCH=$libtorch" >build/tidy.log 2>&1 ||
  fail "could not be configured; the whole log is build/tidy.log"
say "checking ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet --warnings-as-errors='*' 2>/dev/null || exit 5
