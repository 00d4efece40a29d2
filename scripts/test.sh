#!/usr/bin/env bash
# Sets up, builds and runs every test; with --fast those that do not start the program, in under a minute on four cores.
#   scripts/test.sh [--fast] [OPTION OF scripts/build.sh]...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" = --help ]; then sed -n '2,/^set /{s/^# \{0,1\}//p}' "$root/scripts/test.sh" && exit; fi
chosen=()
if [ "${1:-}" = --fast ]; then
  chosen=(--label-regex '^fast$')
  shift
fi
binary=$("$root/scripts/build.sh" --tests "$@" | tail -n 1)
cd "$root"
# Pages are tested in a real Chromium (100 MB to fetch). Where it cannot be installed, CTest shows the entry `browser` as skipped.
if [ ${#chosen[@]} -eq 0 ] && ! command -v chromium >/dev/null; then
  (script=test.sh; source scripts/needs.sh; install chromium) ||
    echo "== without Chromium: the tests of pages in a browser are skipped" >&2
fi
# The tests wait for the disk thousands of times, as checkpoints must; in memory, where there is room, that costs nothing.
memory=$(awk '$2 == "/dev/shm" && $4 !~ /noexec/ { print $2; exit }' /proc/mounts 2>/dev/null || true)
if [ -z "${TMPDIR:-}" ] && [ -n "$memory" ] && [ "$(df -Pm $memory | awk 'NR == 2 { print $4 }')" -ge 2000 ]; then
  TMPDIR=$(mktemp -d $memory/olmo-tests-XXXXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi
# The one of the build, which may be in no PATH.
ctest=$(sed -n 's/^CMAKE_CTEST_COMMAND:INTERNAL=//p' "$(dirname "$binary")/CMakeCache.txt")
"$ctest" --test-dir "$(dirname "$binary")" --output-on-failure --parallel "$(nproc)" "${chosen[@]}"
