#!/usr/bin/env bash
# Mutates the inputs of every parser for a while, under the address and undefined-behaviour sanitizers: run it before a release.
#   scripts/fuzz.sh [SECONDS [TARGET ...]]     SECONDS of wall time, 300 by default; targets: tests/fuzz/*_targets.cpp
# The corpus grows in build/fuzz/TARGET; what crashed, hung or leaked is kept in build/fuzz/TARGET-finding-*. Exit 5 if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."
script=fuzz.sh
source scripts/libtorch.sh
if [ "${1:-}" = --help ]; then usage scripts/fuzz.sh && exit; fi

seconds=${1:-300}
case "$seconds" in
  '' | *[!0-9]* | 0) refuse "SECONDS must be a whole number above 0, got '$seconds'" ;;
esac
shift || true
SANITIZE_TARGET=olmo_fuzz scripts/sanitize.sh address
program=$PWD/build/address/tests/fuzz/olmo_fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <("$program" --list)

# As many at a time as there are cores, each for its share of the time.
jobs=${OLMO_FUZZ_JOBS:-$(nproc)}
rounds=$(((${#targets[@]} + jobs - 1) / jobs))
share=$((seconds / rounds))
[ "$share" -gt 0 ] || share=1
out=build/fuzz
mkdir -p "$out"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export OMP_NUM_THREADS=1
fuzz_one() {
  "$program" "$1" "$out/$1" -max_total_time="$share" -timeout=20 -rss_limit_mb=3000 -use_value_profile=1 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$out/$1-finding-" >"$out/$1.log" 2>&1
  echo "$?" >"$out/$1.code"
}
rm -f "$out"/*.code
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  fuzz_one "$target" &
done
wait
found=0
for target in "${targets[@]}"; do
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log")
  if [ "$(cat "$out/$target.code")" = 0 ]; then
    echo "$target: ${runs:-?} inputs, nothing found"
  else
    found=1
    echo "$target: FINDING, see $out/$target.log"
    grep -m1 -E "ERROR|runtime error|terminate called" "$out/$target.log" || true
  fi
done
[ "$found" = 0 ] || exit 5
