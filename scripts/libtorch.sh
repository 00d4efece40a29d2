# How LibTorch gets into the cache, for scripts that build and, in a package, for bin/olmo-harness-libtorch. Whoever sources it defines
# `script`, the name that messages begin with, and may define `python`, `other_libtorch`, and `from`, the folder where the user is.
torch_version=2.11.0
# The CUDA wheel's CPU library needs these two small libraries and nothing else of CUDA.
torch_cuda_libraries=("nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cupti==13.0.*")
torch_megabytes=2500  # the wheel (700) and what is in it (1200), while both are there
python=${python:-python3}
pip=("$python" -I -m pip)
other_libtorch=${other_libtorch:---libtorch DIR}  # how the user names one that is there

say() { echo "== $*" >&2; }
fail() { echo "$script: $*" >&2; exit 1; }
# Wrong use, or something that the user has to change.
refuse() { echo "$script: $*" >&2; exit 2; }
# leave_nothing PATH...: whoever stops the script from here on finds none of these; without a PATH, from here on nothing is removed.
leave_nothing() {
  unfinished=("$@")
  if [ $# -eq 0 ]; then trap - INT TERM HUP && return; fi
  trap 'rm -rf "${unfinished[@]}"; say "stopped; nothing is left of it"; exit 130' INT
  trap 'rm -rf "${unfinished[@]}"; say "stopped; nothing is left of it"; exit 143' TERM HUP
}
# usage FILE: the head of a script.
usage() { sed -n '2,/^set /{s/^# \{0,1\}//p}' "$1"; }

# at PATH: what the user names, for a script that works elsewhere.
from=${from:-$PWD}
at() { (cd "$from" && realpath -ms -- "$1"); }

# Where the program looks for it, too (core/process/process.h).
home=${HOME:-$(getent passwd "$(id -u)" 2>/dev/null | cut -d : -f 6 || true)}
caches=${XDG_CACHE_HOME:-${home:+$home/.cache}}
[ -n "${OLMO_HARNESS_CACHE:-$caches}" ] || refuse "this user has no home; OLMO_HARNESS_CACHE=DIR says where the cache may be"
[ -z "${OLMO_HARNESS_CACHE:-}" ] || export OLMO_HARNESS_CACHE=$(at "$OLMO_HARNESS_CACHE")
cache=${OLMO_HARNESS_CACHE:-$(at "$caches/olmo-harness")}

# The end of a log without apt's lines of progress.
show_failure() { tail -n 200 "$1" | grep -vE '^(Get:|Hit:|Ign:|Reading |Building dep|Selecting |Preparing |Unpacking |Setting up |\(Reading|debconf:|[[:space:]]*$)' | tail -n 30 >&2; }

# What apt, pip and downloaders say where the network failed them, at the start or half-way.
unreachable='resolv|Temporary failure|Failed to (fetch|connect)|Unable to (connect|locate)|unreachable|timed out|Connection|No matching distribution|Could not connect'
unreachable+='|no installation candidate|IncompleteRead|transfer closed|retrieval incomplete|Recv failure|DO NOT MATCH THE HASHES|Hash Sum mismatch|[ (]5[0-9][0-9] '

# over_network WHO LOG COMMAND...: a command that asks WHO over the network, its output in LOG. Where the network fails, it gets two more tries.
over_network() {
  local who=$1 log=$2 pause
  shift 2
  for pause in 3 10 ""; do
    "$@" >"$log" 2>&1 </dev/null && return
    [ -n "$pause" ] && grep -qE "$unreachable" "$log" || return 1
    say "$who does not answer as it should; trying again in $pause s"
    sleep "$pause"
  done
}

# fetch_libtorch PLACE [PIP OPTION...]: unpacks the wheel into PLACE unless it is there. Two at once wait for each other, also for a pip
# whose script was killed; what an interrupted one left is not taken for the whole.
fetch_libtorch() {
  local place=$1 log free why wanted
  shift
  [ -f "$place/torch/lib/libtorch_cpu.so" ] && return
  mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] ||
    refuse "the cache $cache cannot be written; OLMO_HARNESS_CACHE=DIR puts it elsewhere, and $other_libtorch takes a LibTorch that is there already"
  mkdir -p "$(dirname "$place")"
  exec 9>"$place.lock"
  flock -n 9 || { say "waiting for another process that is fetching LibTorch"; flock 9; }
  if [ ! -f "$place/torch/lib/libtorch_cpu.so" ]; then
    rm -rf "$place.part" "$place"
    free=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$torch_megabytes" ] ||
      fail "fetching LibTorch needs $torch_megabytes MB in $cache, and $free MB are free; OLMO_HARNESS_CACHE=DIR puts it elsewhere"
    log=$("${pip[@]}" --version 2>&1) ||
      refuse "$python with pip is needed to fetch LibTorch (Debian and Ubuntu: python3-venv, or python3-pip); $other_libtorch takes one that is there already"
    # An old one would say that there is no such LibTorch.
    if [[ $log =~ ^pip\ ([0-9]+)\.([0-9]+)[^\ ]* ]] && [ $((100 * BASH_REMATCH[1] + BASH_REMATCH[2])) -lt 2003 ]; then
      refuse "${BASH_REMATCH[0]} is too old for today's packages, 20.3 or newer is needed: $python -m pip install --upgrade pip"
    fi
    say "fetching LibTorch $torch_version (700 MB, once, into $cache)"
    mkdir -p "$place.part/temporary"
    log=$(mktemp)
    leave_nothing "$log" "$place.part"
    # Its libraries are the same for every Python, so the machine's own version does not matter (pip 20.3 would refuse 3.9). pip unpacks in TMPDIR first.
    wanted=(--no-deps --no-cache-dir --retries 2 --target "$place.part/all" --only-binary=:all: --python-version 3.11 --ignore-requires-python "$@"
            "torch==$torch_version" "${torch_cuda_libraries[@]}")
    if ! over_network PyPI "$log" env "TMPDIR=$place.part/temporary" PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "${pip[@]}" install -q "${wanted[@]}"; then
      rm -rf "$place.part"
      ! grep -qE 'cancelled by user|KeyboardInterrupt' "$log" || { rm -f "$log" && say "stopped; nothing is left of it" && exit 130; }
      if grep -qE 'No space left|quota exceeded' "$log"; then fail "the disk of $cache is full, or your share of it; OLMO_HARNESS_CACHE=DIR puts the cache elsewhere"; fi
      why="PyPI could not be reached"
      grep -qE "$unreachable" "$log" || { show_failure "$log"; why="pip could not fetch LibTorch from PyPI"; }
      fail "$why; $other_libtorch takes a LibTorch that is there already (the folder with lib/ and include/; pip's own words: $log)"
    fi
    rm -f "$log"
    mv "$place.part/all" "$place"
    rm -rf "$place.part"
    leave_nothing
  fi
  exec 9>&-
}
