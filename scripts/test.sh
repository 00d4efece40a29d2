#!/usr/bin/env bash
# Sets up, builds and runs every test. Options are passed to scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(OLMO_WERROR=ON scripts/build.sh --tests "$@" | tail -n 1)
ctest --test-dir "$(dirname "$binary")" --output-on-failure
