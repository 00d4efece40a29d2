#!/usr/bin/env bash
# `cmake --install` into a folder: the program starts from there, everything lies where shells, man and CMake look, and another project
# finds the package.
#   tests/install_test.sh BUILD VERSION CMAKE
set -euo pipefail
build=$1 version=$2 cmake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "FAILED: $*"; exit 1; }

# A staged installation: below DESTDIR, with no trace of it in the files.
DESTDIR=$work/stage "$cmake" --install "$build" --prefix /opt/olmo >"$work/log" 2>&1 || { cat "$work/log"; wrong "cmake --install"; }
[ "$(ls "$work/stage")" = opt ] || wrong "DESTDIR is not obeyed"
if grep -rIl "$work" "$work/stage"; then wrong "files name DESTDIR"; fi
mv "$work/stage/opt/olmo" "$work/olmo"
for file in bin/olmo-harness share/olmo-harness/{evals/tasks,configs/train,configs/schema.json} share/man/man1/olmo-harness.1 \
    share/bash-completion/completions/olmo-harness share/zsh/site-functions/_olmo-harness share/fish/vendor_completions.d/olmo-harness.fish \
    share/doc/olmo-harness/{README.md,CHANGELOG.md,docs/train.md}; do
  [ -s "$work/olmo/$file" ] || wrong "$file is not installed"
done
# From its new place, without the build's libraries in the environment.
said=$(env -u LD_LIBRARY_PATH "$work/olmo/bin/olmo-harness" --version) || wrong "the installed program does not start"
grep -qF "olmo-harness $version" <<<"$said" || wrong "the installed program is: $said"
said=$(env -u LD_LIBRARY_PATH "$work/olmo/bin/olmo-harness" doctor 2>&1) || wrong "the installed program does not compute: $said"

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(project LANGUAGES NONE)
find_package(olmo-harness ${wanted} REQUIRED)
get_target_property(program olmo-harness::olmo-harness LOCATION)
message(STATUS "found ${olmo-harness_VERSION} ${program} ${olmo-harness_DATA_DIR}")
CMAKE
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
find() { "$cmake" -G "$(cached CMAKE_GENERATOR)" "-DCMAKE_MAKE_PROGRAM=$(cached CMAKE_MAKE_PROGRAM)" -S "$work/project" -B "$work/project/$1" -Dwanted="$1" -Dolmo-harness_ROOT="$work/olmo" 2>&1; }
grep -qF "found $version $work/olmo/bin/olmo-harness $work/olmo/share/olmo-harness" <<<"$(find "$version")" || wrong "find_package: $(find "$version")"
if find 99.0 >/dev/null; then wrong "find_package takes another version"; fi
