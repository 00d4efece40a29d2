#!/usr/bin/env bash
# On a machine with a GPU: the operations and a 20-step training on CPU and GPU, whether their bits are equal, and an audit of the GPU's run
# on the CPU.
# Usage: scripts/prove_gpu.sh cuda|rocm [BUILD_FOLDER]. Needs a build with a LibTorch for the GPU (scripts/build.sh --libtorch), the driver,
# NVRTC or hipRTC, python3 and sqlite3's module; `olmo-harness doctor` names what is missing.
# Exit code 0: the same bits; 5: a difference; 2: no such device here.
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:?cuda or rocm} build=${2:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== 20 steps of configs/train/tiny.json"
python3 -I - "$work/tokens.npy" <<'P'
import struct, sys
ids = [((i * 2654435761) % 2**32 >> 16) % 499 for i in range(64 * 32)]
open(sys.argv[1], "wb").write(struct.pack("<2048H", *ids))
P
train() {  # DEVICE NUMERICS FOLDER
  "$build/olmo-harness" train configs/train/tiny.json "data.paths=[$work/tokens.npy]" device="$1" numerics="$2" hash_interval=20 \
    --run-dir "$work/$3" 2>"$work/$3.err" || { code=$?; cat "$work/$3.err" >&2; exit $code; }
}
train "$device" portable gpu  # where there is no device, this ends at once
train cpu portable cpu
failed=0
python3 -I - "$work" <<'P' || failed=5
import hashlib, json, sqlite3, sys
def proof(where):
    db = sqlite3.connect(f"{sys.argv[1]}/{where}/run.db")
    chain = db.execute("SELECT chain_hash FROM surviving_steps ORDER BY step DESC LIMIT 1").fetchone()[0]
    state = hashlib.sha256()
    for row in db.execute("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = "
                          "(SELECT max(step) FROM steps) ORDER BY part, name"):
        state.update(("|".join(row) + "\n").encode())
    policy = json.loads(db.execute("SELECT policy FROM attempts").fetchone()[0])
    print(f"{policy.get('device_name', 'cpu ' + policy['isa'])}: chain {chain} state {state.hexdigest()}")
    return chain, state.hexdigest()
same = proof("cpu") == proof("gpu")
print("the same bits" if same else "DIFFERENT bits")
sys.exit(0 if same else 5)
P

echo "== the GPU's run, audited on the CPU"
"$build/olmo-harness" audit "$work/gpu" --checkpoints "$work/gpu" --steps 1..5 || failed=5

echo "== 20 steps with the library's matrix products, twice on the GPU"
train "$device" fast fast1
train "$device" fast fast2
python3 -I - "$work" <<'P' || failed=5
import sqlite3, sys
def chain(where):
    db = sqlite3.connect(f"{sys.argv[1]}/{where}/run.db")
    return db.execute("SELECT chain_hash FROM surviving_steps ORDER BY step DESC LIMIT 1").fetchone()[0]
same = chain("fast1") == chain("fast2")
print("the same bits" if same else "DIFFERENT bits")
sys.exit(0 if same else 5)
P

echo "== operations on the GPU against the CPU"
OLMO_TEST_DEVICE=$device "$build/tests/olmo_tests" "[gpu-device]" || failed=5
exit $failed
