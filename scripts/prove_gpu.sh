#!/usr/bin/env bash
# On a machine with a GPU: the operations and a 20-step training on CPU and GPU, and whether their bits are equal.
# Usage: scripts/prove_gpu.sh cuda|rocm [BUILD_FOLDER]. Needs the driver, NVRTC or hipRTC, python3 and sqlite3's module.
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
for where in "$device" cpu; do  # where there is no device, this ends at once
  "$build/olmo-harness" train configs/train/tiny.json "data.paths=[$work/tokens.npy]" device="$where" hash_interval=20 \
    --run-dir "$work/$where" 2>"$work/$where.err" || { code=$?; cat "$work/$where.err"; exit $code; }
done
failed=0
python3 -I - "$work" "$device" <<'P' || failed=5
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
same = proof("cpu") == proof(sys.argv[2])
print("the same bits" if same else "DIFFERENT bits")
sys.exit(0 if same else 5)
P

echo "== operations on the GPU against the CPU"
OLMO_TEST_DEVICE=$device "$build/tests/olmo_tests" "[gpu-device]" || failed=5
exit $failed
