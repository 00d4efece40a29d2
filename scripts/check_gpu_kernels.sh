#!/usr/bin/env bash
# Compiles the GPU kernels that the binary carries, without a GPU, with whatever compilers this machine has, and checks
# what came out. Prints a Markdown report. Usage: scripts/check_gpu_kernels.sh [BUILD_FOLDER] > bench/results/gpu_kernels.md
#   NVRTC (libnvrtc.so; OLMO_GPU_LIBRARIES names its folder): PTX for sm_80, sm_90, sm_100, the same call as device=cuda
#   ptxas (CUDA toolkit): registers and spills of each kernel
#   clang with the AMDGPU backend: assembly for gfx90a
# Exit code 1 if something that could be checked is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
cmake --build "$build" --target compile_kernels >&2
tool=$build/tests/ops/gpu/compile_kernels
ptxas=$(command -v ptxas || true)
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
    [[ $said == *"do not compile"* && $arch != 100 ]] && failed=1
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
if [[ -n $ptxas ]] && ((${#cuda[@]})); then
  echo "Registers a thread, spilled bytes (stores + loads) and shared memory a block, by $("$ptxas" --version | grep -o 'release [0-9.]*') of ptxas:"
  echo
  for arch in "${cuda[@]}"; do
    "$ptxas" -v --fmad=false -arch="sm_$arch" "$work/$arch.ptx" -o "$work/$arch.cubin" 2>"$work/$arch.log" || failed=1
    awk '/Compiling entry function/ { split($0, q, "\047"); name = q[2] }
         /spill stores/ { for (i = 1; i <= NF; i++) { if ($(i+2) == "spill" && $(i+3) ~ /stores/) s = $i; if ($(i+2) == "spill" && $(i+3) ~ /loads/) l = $i } }
         /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); r = substr($0, RSTART + 5, RLENGTH - 5); m = 0
           if (match($0, /[0-9]+ bytes smem/)) m = substr($0, RSTART, RLENGTH - 11); print name, r, s + l, m }' \
      "$work/$arch.log" | sort >"$work/$arch.table"
  done
  header="| kernel |" rule="|---|"
  for arch in "${cuda[@]}"; do header+=" sm_$arch registers | spilled | shared |" rule+="---:|---:|---:|"; done
  echo "$header"
  echo "$rule"
  while read -r name _; do
    row="| \`$name\` |"
    for arch in "${cuda[@]}"; do row+=$(awk -v n="$name" '$1 == n { printf " %s | %s | %s |", $2, $3, $4 }' "$work/$arch.table"); done
    echo "$row"
  done <"$work/${cuda[0]}.table"
  echo
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
    # v_rcp too, with two v_mac by 2^32 and -2^32. Any other v_mac or v_mad would be a sum and a product that the source
    # keeps apart, or lose subnormals. A root is v_sqrt with the correction of platform.h.
    count() { grep -cE "$1" "$work/gfx90a.s" || true; }
    kernels=$(count '\.amdhsa_kernel ') denormals=$(count '\.amdhsa_float_denorm_mode_32 3')
    quotients=$(count 'v_div_fixup_f32') scales=$(count 'v_div_scale_f32') reciprocals=$(count 'v_rcp_f32')
    fused=$(count 'v_(mad|mac)[a-z_]*f32') integers=$(count 'v_mac_f32.* 0x4f800000') roots=$(count 'v_sqrt_f32')
    echo "- $("$clang" --version | head -1): $kernels kernels, $denormals of them with fp32 subnormals kept; $quotients corrected quotients and $roots roots; every v_rcp belongs to one of them or to one of the $integers integer divisions, no v_mad or v_mac but those"
    ((kernels > 0 && denormals == kernels && scales == 2 * quotients && reciprocals == quotients + integers &&
      fused == 2 * integers)) || { echo "- wrong: $scales v_div_scale, $reciprocals v_rcp, $fused v_mad or v_mac" && failed=1; }
    echo
    echo "| kernel | vector registers | spilled | shared |"
    echo "|---|---:|---:|---:|"
    awk '/\.group_segment_fixed_size:/ { lds = $2 } /\.name: +olmo_/ { name = $2 } /\.vgpr_count:/ { r = $2 }
         /\.vgpr_spill_count:/ { print "| `" name "` | " r " | " $2 " | " lds " |" }' "$work/gfx90a.s" | sort
  else
    echo "- $clang: not compiled: $(grep -m1 error "$work/gfx90a.log")"
    failed=1
  fi
else
  echo "- no clang with the AMDGPU backend here"
fi
exit $failed
