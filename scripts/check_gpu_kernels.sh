#!/usr/bin/env bash
# Compiles the GPU kernels that the binary carries, without a GPU, with whatever compilers this machine has, and checks
# what came out. Prints a Markdown report. Usage: scripts/check_gpu_kernels.sh [BUILD_FOLDER] > bench/results/gpu_kernels.md
#   NVRTC (libnvrtc.so; OLMO_GPU_LIBRARIES names its folder): PTX for sm_80, sm_90, sm_100, the same call as device=cuda, without a
#     warning; and the processor time of a start, with and without kept code
#   ptxas (CUDA toolkit): registers and spills of each kernel, and how many blocks fit on a multiprocessor
#   nvdisasm (CUDA toolkit, of any release that knows sm_90): instructions of the loops that multiply
#   clang with the AMDGPU backend: the same for gfx90a
# Exit code 1 if something that could be checked is wrong.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
root=$PWD
script=check_gpu_kernels.sh
source scripts/libtorch.sh
if [ "${1:-}" = --help ]; then usage scripts/check_gpu_kernels.sh && exit; fi
build=$(at "${1:-$root/build/release}")
[ -f "$build/CMakeCache.txt" ] || refuse "$build is no folder of a build; scripts/build.sh --tests makes one"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
cmake --build "$build" --target compile_kernels >&2
tool=$build/tests/ops/gpu/compile_kernels
ptxas=$(command -v ptxas || true)
nvdisasm=$(command -v nvdisasm || true)
products=(olmo_gemm_128_{ff,bb} olmo_gemm_64_ff olmo_attention{,_bf16,_dq,_dkv,_dkv_bf16,_forest})
clang=$(command -v clang-17 || command -v clang-16 || command -v clang-15 || command -v clang-14 || command -v clang || true)
for folder in /usr/local/cuda/lib64 /opt/cuda/lib64; do
  [[ -z ${OLMO_GPU_LIBRARIES:-} && -e $folder/libnvrtc.so ]] && export OLMO_GPU_LIBRARIES=$folder
done

echo "# GPU kernels, compiled without a GPU"
echo
echo "Made by \`scripts/check_gpu_kernels.sh\`, $(date -u +%F). Source: \`src/ops/gpu/kernels.cu\` and what it includes, as the binary carries it."
echo

# Every fp32 operation rounds to nearest by itself. Without `.rn`, ptxas may fuse a product with a sum; `.approx` and
# `.full` are not correctly rounded; `.ftz` loses subnormals.
check_ptx() {
  local file=$1 bad
  bad=$(grep -nE '\.ftz|\.approx|\.full|\b(mul|add|sub|mad|fma)\.f32|\bmad\.[a-z.]*f32|\.rz\.f32|\.rm\.f32|\.rp\.f32|\.f64' "$file" || true)
  if [[ -n $bad ]]; then
    echo "wrong: $(head -1 <<<"$bad")"
    return 1
  fi
  echo "$(grep -cE 'fma\.rn\.f32' "$file") fma.rn, $(grep -cE '(div|rcp)\.rn\.f32' "$file") div.rn or rcp.rn, $(grep -cE 'sqrt\.rn\.f32' "$file") sqrt.rn; no .ftz, .approx, .full, .f64, and no sum or product without .rn"
}

cuda=()
for arch in 80 90 100; do
  if said=$("$tool" ptx "compute_$arch" "$work/$arch.ptx" 2>&1); then
    nvrtc=$said
    cuda+=("$arch")
  else
    echo "- sm_$arch: not compiled: ${said}"
    [[ $said == *" warns: "* || ($said == *"do not compile"* && $arch != 100) ]] && failed=1
  fi
done
if ((${#cuda[@]})); then
  echo "## CUDA: $nvrtc"
  echo
  for arch in "${cuda[@]}"; do
    said=$(check_ptx "$work/$arch.ptx") || failed=1
    echo "- sm_$arch, PTX: $said"
  done
  echo
fi
# What the first kernel of a process waits for: NVRTC is opened and the kernels are compiled, or found where an earlier process kept them.
if ((${#cuda[@]})); then
  echo "Processor seconds of a start, from opening NVRTC to the machine code in memory, on $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1); the least of two:"
  echo
  echo "| | compiled | kept by an earlier start | bytes of code |"
  echo "|---|---:|---:|---:|"
  for arch in "${cuda[@]}"; do
    for _ in 1 2; do
      rm -rf "$work/kept"
      "$tool" start "sm_$arch" "$work/kept"
      "$tool" start "sm_$arch" "$work/kept"
    done | awk -v arch="$arch" '!($1 in least) || $3 < least[$1] { least[$1] = $3 } { size = $2 }
      END { printf "| sm_%s | %.1f | %.3f | %d |\n", arch, least["compiled"], least["found"], size }'
  done
  echo
fi
if [[ -n $ptxas ]] && ((${#cuda[@]})); then
  echo "Registers a thread, spilled bytes (stores + loads), shared memory a block, and blocks of 256 threads that fit on a"
  echo "multiprocessor at once (65,536 registers, 2048 threads, 164 KiB of shared memory on sm_80, 228 above), by release $("$ptxas" --version | grep -o 'release [0-9.]*' | cut -c9-) of ptxas:"
  echo
  for arch in "${cuda[@]}"; do
    "$ptxas" -v --fmad=false -arch="sm_$arch" "$work/$arch.ptx" -o "$work/$arch.cubin" 2>"$work/$arch.log" || failed=1
    awk -v shared_memory=$((arch == 80 ? 167936 : 233472)) '
         function least(a, b) { return a < b ? a : b }
         /Compiling entry function/ { split($0, q, "\047"); name = q[2] }
         /spill stores/ { for (i = 1; i <= NF; i++) { if ($(i+2) == "spill" && $(i+3) ~ /stores/) s = $i; if ($(i+2) == "spill" && $(i+3) ~ /loads/) l = $i } }
         /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); r = substr($0, RSTART + 5, RLENGTH - 5); m = 0
           if (match($0, /[0-9]+ bytes smem/)) m = substr($0, RSTART, RLENGTH - 11)
           blocks = least(8, int(65536 / (256 * 8 * int((r + 7) / 8)))); blocks = least(blocks, int(shared_memory / (m + 1024)))
           print name, r, s + l, m, blocks }' \
      "$work/$arch.log" | sort >"$work/$arch.table"
  done
  header="| kernel | shared |" rule="|---|---:|"
  for arch in "${cuda[@]}"; do header+=" sm_$arch registers | spilled | blocks |" rule+="---:|---:|---:|"; done
  echo "$header"
  echo "$rule"
  while read -r name _ _ shared _; do
    row="| \`$name\` | $shared |"
    for arch in "${cuda[@]}"; do row+=$(awk -v n="$name" '$1 == n { printf " %s | %s | %s |", $2, $3, $5 }' "$work/$arch.table"); done
    echo "$row"
  done <"$work/${cuda[0]}.table"
  echo
fi

# The loops that multiply: what scripts/gpu_loops.py counts.
loops() {
  echo "| kernel | instructions | multiply-adds | share | LDS.128 | .64 | .32 | STS.128 | .64 | .32 | LDG.128 | .64 | .32 |"
  echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
  scripts/gpu_loops.py "$@" "${products[@]}"
  echo
}
if [[ -n $nvdisasm ]]; then
  for arch in 90; do
    [[ -e $work/$arch.cubin ]] && "$nvdisasm" -c "$work/$arch.cubin" >"$work/$arch.sass" 2>/dev/null || continue
    echo "Loops that multiply what shared memory holds, sm_$arch (LDS, STS: shared memory; LDG: global memory; by bits):"
    echo
    loops sass "$work/$arch.sass"
  done
fi

echo "## ROCm: gfx90a"
echo
"$tool" source "$work/source"
cp "$work/source/ops/gpu/kernels.cu" "$work/kernels.hip" 2>/dev/null || cp "$work/source/kernels.cu" "$work/kernels.hip"
if [[ -n $clang ]] && "$clang" --print-targets 2>/dev/null | grep -q amdgcn; then
  if "$clang" -x hip --offload-arch=gfx90a -nogpulib -nogpuinc --cuda-device-only -std=c++17 -O3 -ffp-contract=off \
    -fhip-fp32-correctly-rounded-divide-sqrt -DOLMO_GPU -DOLMO_ISA=isa_gpu -I"$work/source" -S -o "$work/gfx90a.s" \
    "$work/kernels.hip" 2>"$work/gfx90a.log"; then
    # An fp32 quotient is two v_div_scale, v_rcp, fused corrections, v_div_fmas and v_div_fixup; a 64-bit integer one is
    # v_rcp too, with two v_mac by 2^32 and -2^32, and there is no other. Any other v_mac or v_mad would be a sum and a
    # product that the source keeps apart, or lose subnormals. A root is v_sqrt with the correction of platform.h.
    count() { grep -cE "$1" "$work/gfx90a.s" || true; }
    kernels=$(count '\.amdhsa_kernel ') denormals=$(count '\.amdhsa_float_denorm_mode_32 3')
    quotients=$(count 'v_div_fixup_f32') scales=$(count 'v_div_scale_f32') reciprocals=$(count 'v_rcp_f32')
    fused=$(count 'v_(mad|mac)[a-z_]*f32') roots=$(count 'v_sqrt_f32')
    integers=$((reciprocals - quotients))
    echo "- $("$clang" --version | head -1): $kernels kernels, $denormals of them with fp32 subnormals kept; $quotients corrected quotients and $roots roots; every v_rcp belongs to one of them or to one of the $integers integer divisions, no v_mad or v_mac but those"
    ((kernels > 0 && denormals == kernels && scales == 2 * quotients && integers >= 0 &&
      fused == 2 * integers)) || { echo "- wrong: $scales v_div_scale, $reciprocals v_rcp, $fused v_mad or v_mac" && failed=1; }
    echo
    echo "Blocks of 256 threads that fit on a compute unit: 512 vector registers a lane, eight waves, 64 KiB of shared memory."
    echo
    echo "| kernel | shared | vector registers | spilled | blocks |"
    echo "|---|---:|---:|---:|---:|"
    awk 'function least(a, b) { return a < b ? a : b }
         /\.group_segment_fixed_size:/ { lds = $2 } /\.name: +olmo_/ { name = $2 } /\.vgpr_count:/ { r = $2 }
         /\.vgpr_spill_count:/ { blocks = least(8, int(512 / (8 * int((r + 7) / 8)))); if (lds > 0) blocks = least(blocks, int(65536 / lds))
           print "| `" name "` | " lds " | " r " | " $2 " | " blocks " |" }' "$work/gfx90a.s" | sort
    echo
    echo "Loops that multiply (ds_read, ds_write, global_load in the place of LDS, STS, LDG; one packed instruction does two multiply-adds):"
    echo
    loops amdgcn "$work/gfx90a.s"
  else
    echo "- $clang: not compiled: $(grep -m1 error "$work/gfx90a.log")"
    failed=1
  fi
else
  echo "- no clang with the AMDGPU backend here"
fi
cat <<'END'
## What these figures promise, and what only a GPU can tell

- A start whose kernels were kept reads and hashes 2 MB of code. What the driver takes to load the code, and LibTorch to open the
  GPU, comes on top in both columns. Until 2026-11-23 every process compiled, each rank of a training, too.
- A multiprocessor of NVIDIA's starts an instruction a cycle in each of its four parts, and a fused multiply-add is one of
  them: the share of multiply-adds among all instructions of a loop is the share of the fp32 peak that it can reach at
  most. What waits for memory, for a barrier or for a bank of shared memory takes from that; no figure here shows it.
- In a product in tiles of 128, a step of eight summed indices is 512 multiply-adds a thread beside 32 loads of 128 bits
  from shared memory and, where rows are aligned, one load an operand from global memory. The second loop of the kernel,
  of 64 multiply-adds, is for the last indices where their count is no multiple of eight.
- In attention, scores take the loop of 512 multiply-adds, 32 dimensions of a head in a turn; products with values, keys or
  queries take the one of 128, or of 64 where a head has at most 64 columns.
- With two blocks on a multiprocessor one computes while the other waits. How much of a wait that hides is not known.
  What attention spills on sm_80 and sm_90 is read outside of these loops, but in the backward pass for keys and values, which
  reads up to 28 words in a turn of the loop of 512.
- On gfx90a a packed instruction does two multiply-adds; shared memory has room for one block of attention on a compute
  unit, so those kernels have all registers, and nothing computes while that block waits.
- Sums over rows (`olmo_*_parameters`) have one block for each sixteen columns: 128 for 2048 columns, each
  with 128 rows of both operands on their way while the rows before them are added. A chain of 4096 additions of four cycles
  each takes some ten microseconds, about what reading 4096 x 2048 of both operands takes on an H100. That is arithmetic, no
  measurement.

On an H200 every kernel's test has the CPU's bits ([gpu_proof.md](gpu_proof.md)), and a step of OLMo-1B gives their times ([gpu_profile.md](gpu_profile.md)).
Bandwidth, bank conflicts, AMD's GPUs and other kinds of NVIDIA's are open.
END
exit $failed
