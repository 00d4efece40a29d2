#!/usr/bin/env bash
# Reports on thousands of databases whose truth is known: how often is a verdict wrong, how often is it reached? The tests with the tag
# [simulation] take a fixed sample each time; this takes TIMES as many, half of the cores at once, and prints what each kind of truth came to.
# usage: scripts/verdict_simulation.sh [TIMES] [TESTS], 20 and build/release/tests/olmo_tests if not given: some twenty minutes on four cores
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
root=$PWD
script=verdict_simulation.sh
source scripts/libtorch.sh
if [ "${1:-}" = --help ]; then usage scripts/verdict_simulation.sh && exit; fi
times=${1:-20}
case "$times" in '' | *[!0-9]* | 0) refuse "TIMES must be a whole number above 0, got '$times'" ;; esac
tests=$(at "${2:-$root/build/release/tests/olmo_tests}")
[ -x "$tests" ] || refuse "$tests is no program of tests; scripts/build.sh --tests makes it"
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
mapfile -t names < <("$tests" '[simulation]' --list-test-names-only | sed 's/[[,\\]/\\&/g' | grep -v '^$')
status=0
printf '%s\0' "${names[@]}" | OLMO_SIMULATIONS=$times OMP_NUM_THREADS=2 \
  xargs -0 -P "$((($(nproc) + 1) / 2))" -I {} sh -c '"$0" "$1" >"$2/$$" 2>&1 || echo "failed: $1" >>"$2/$$"' "$tests" {} "$log" || status=1
cat "$log"/* | grep -v '^warning: '
! grep -q '^failed: ' "$log"/* && exit $status
