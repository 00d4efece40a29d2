#!/usr/bin/env bash
# Checks with clang-tidy the C++ files that differ from a commit, and exits with 5 if it finds something.
#   scripts/tidy.sh [BASE]     BASE: where the change began (default: where it left origin/main, else the commit before)
#   scripts/tidy.sh FILE...    these files
# The checks are those of .clang-tidy. A file takes about ten seconds, so only changed ones are checked; the preset `tidy` checks all.
# Needs clang and clang-tidy (Debian: apt-get install clang clang-tidy) and what a build needs.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
script=tidy.sh
source scripts/needs.sh
command -v clang-tidy >/dev/null && command -v clang++ >/dev/null || refuse "needs clang and clang-tidy (Debian: apt-get install clang clang-tidy)"

files=()
if [ $# -gt 0 ] && [ -f "$1" ]; then
  files=("$@")
else
  base=${1:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
  [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] || base=${1:-HEAD~1}
  git rev-parse --verify --quiet "$base^{commit}" >/dev/null || refuse "'$base' is no commit and no file"
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp'; git ls-files --others --exclude-standard -- '*.cpp')
fi
if [ ${#files[@]} -eq 0 ]; then
  say "no C++ file differs"
  exit 0
fi

# clang reads no precompiled header of GCC's, so the commands are those of a build without one. Nothing is built.
libtorch=${OLMO_LIBTORCH:-$cache/libtorch-$torch_version/torch}
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DOLMO_PCH=OFF \
  "-DOLMO_LIBTORCH=$libtorch" >build/tidy.log 2>&1 || fail "could not be configured; the whole log is build/tidy.log"
say "checking ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet --warnings-as-errors='*' 2>/dev/null || exit 5
