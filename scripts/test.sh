#!/usr/bin/env bash
# Sets up, builds and runs every test. Options are passed to scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# On a machine with other work, threads that spin while they wait for each other take the cores from those they wait for.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}
binary=$(scripts/build.sh --tests "$@" | tail -n 1)
ctest --test-dir "$(dirname "$binary")" --output-on-failure --parallel "$(nproc)"
