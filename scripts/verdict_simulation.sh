#!/usr/bin/env bash
# Reports on thousands of databases whose truth is known: how often is a verdict wrong, how often is it reached? The tests with the tag
# [simulation] take a fixed sample each time; this takes TIMES as many, half of the cores at once, and prints what each kind of truth came to.
# usage: scripts/verdict_simulation.sh [TIMES] [TESTS], 20 and build/release/tests/olmo_tests if not given: some twenty minutes on four cores
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-20}
tests=$(realpath "${2:-build/release/tests/olmo_tests}")
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
mapfile -t names < <("$tests" '[simulation]' --list-test-names-only | sed 's/[[,\\]/\\&/g' | grep -v '^$')
status=0
printf '%s\0' "${names[@]}" | OLMO_SIMULATIONS=$times OMP_NUM_THREADS=2 \
  xargs -0 -P "$((($(nproc) + 1) / 2))" -I {} sh -c '"$0" "$1" >"$2/$$" 2>&1 || echo "failed: $1" >>"$2/$$"' "$tests" {} "$log" || status=1
cat "$log"/* | grep -v '^warning: '
! grep -q '^failed: ' "$log"/* && exit $status
