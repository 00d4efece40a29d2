# What builds need, for build.sh and build_arm64.sh: Debian packages with the libraries, the version of LibTorch, and the functions
# that install and fetch. Whoever sources it defines `script`, the name that its messages begin with.
libraries=(libhdf5-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev catch2 libyaml-cpp-dev zlib1g-dev libzstd-dev libssl-dev
           libutf8proc-dev libzip-dev libboost-dev)
torch_version=2.11.0
# The CUDA wheel's CPU library needs these two small libraries and nothing else of CUDA.
torch_cuda_libraries=("nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cupti==13.0.*")
torch_megabytes=2500  # the wheel (700) and what is in it (1200), while both are there

say() { echo "== $*" >&2; }
fail() { echo "$script: $*" >&2; exit 1; }
# Wrong use, or something that the user has to change.
refuse() { echo "$script: $*" >&2; exit 2; }

home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
[ -n "${OLMO_HARNESS_CACHE:-$home}" ] || refuse "neither HOME nor OLMO_HARNESS_CACHE is set; OLMO_HARNESS_CACHE=DIR says where the cache may be"
cache=${OLMO_HARNESS_CACHE:-$home/olmo-harness}

# The end of a log without apt's lines of progress.
show_failure() { tail -n 200 "$1" | grep -vE '^(Get:|Hit:|Ign:|Reading |Building dep|Selecting |Preparing |Unpacking |Setting up |\(Reading|debconf:|[[:space:]]*$)' | tail -n 30 >&2; }

unreachable='resolv|Temporary failure|Failed to fetch|Unable to (connect|locate)|unreachable|timed out|Connection|No matching distribution|Could not connect|no installation candidate'

# install PACKAGE...: installs those that are missing by apt. What apt prints is shown only if it fails.
install() {
  local missing=() package log sudo="" why
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian or the like; it must have what these packages of Debian hold: $*"
    return
  fi
  for package in "$@"; do
    # A pip that is there by other means is as good as Debian's.
    [ "$package" = python3-pip ] && python3 -I -m pip --version >/dev/null 2>&1 && continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || refuse "packages are missing, and installing them needs root or sudo; let an administrator run: apt-get install ${missing[*]}"
    sudo=sudo
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  log=$(mktemp)
  if ! { $sudo apt-get update -q &&
         $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o DPkg::Lock::Timeout=120 --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    why="Debian's package archive could not be reached"
    grep -qE "$unreachable" "$log" || { show_failure "$log"; why="apt could not install all packages"; }
    fail "$why; install these by other means, then run this again: ${missing[*]} (apt's own words: $log)"
  fi
  rm -f "$log"
}

# fetch_libtorch PLACE [PIP OPTION...]: unpacks the wheel into PLACE unless it is there. Two at once wait for each other; what an
# interrupted one left is not taken for the whole.
fetch_libtorch() {
  local place=$1 log free why
  shift
  [ -f "$place/torch/lib/libtorch_cpu.so" ] && return
  mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] ||
    refuse "the cache $cache cannot be written; OLMO_HARNESS_CACHE=DIR puts it elsewhere, and --libtorch DIR takes a LibTorch that is there already"
  mkdir -p "$(dirname "$place")"
  exec 9>"$place.lock"
  flock -n 9 || { say "waiting for another build that is fetching LibTorch"; flock 9; }
  if [ ! -f "$place/torch/lib/libtorch_cpu.so" ]; then
    rm -rf "$place.part" "$place"
    free=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$torch_megabytes" ] ||
      fail "fetching LibTorch needs $torch_megabytes MB in $cache, and $free MB are free; OLMO_HARNESS_CACHE=DIR puts it elsewhere"
    say "fetching LibTorch $torch_version (700 MB, once, into $cache)"
    mkdir -p "$place.part/temporary"
    log=$(mktemp)
    # Its libraries are the same for every Python, so the machine's own version does not matter. pip unpacks in TMPDIR first.
    if ! TMPDIR=$place.part/temporary PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -I -m pip install -q --no-deps \
        --no-cache-dir --retries 2 --target "$place.part/all" --only-binary=:all: --python-version 3.11 "$@" \
        "torch==$torch_version" "${torch_cuda_libraries[@]}" >"$log" 2>&1 9>&-; then
      rm -rf "$place.part"
      if grep -q 'No space left' "$log"; then fail "the disk of $cache is full; OLMO_HARNESS_CACHE=DIR puts the cache elsewhere"; fi
      why="PyPI could not be reached"
      grep -qE "$unreachable" "$log" || { show_failure "$log"; why="pip could not fetch LibTorch from PyPI"; }
      fail "$why; give a LibTorch that is there already with --libtorch DIR (the folder with lib/ and include/; pip's own words: $log)"
    fi
    rm -f "$log"
    mv "$place.part/all" "$place"
    rm -rf "$place.part"
  fi
  exec 9>&-
}

# Reads ninja's output into the log and shows how far it is: on a terminal in one line, elsewhere in a line every ten seconds.
show_progress() {
  local line name shown=0 now left
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\ ([0-9]+)\.[0-9]+s\]\ [BL](uild|ink)ing\ .*\ ([^ ]+)$ ]] || continue
    now=$SECONDS
    if [ ! -t 2 ] && [ $((now - shown)) -lt 10 ] && [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ]; then continue; fi
    name=${BASH_REMATCH[5]#src/} left=""
    name=${name/CMakeFiles\/*.dir\//} name=${name%.o}
    # The first files say little of the rest.
    if [ "${BASH_REMATCH[1]}" -ge 20 ] && [ "${BASH_REMATCH[1]}" -lt "${BASH_REMATCH[2]}" ] && [ "${BASH_REMATCH[3]}" -ge 5 ]; then
      left=$((BASH_REMATCH[3] * (BASH_REMATCH[2] - BASH_REMATCH[1]) / BASH_REMATCH[1]))
      if [ $left -ge 90 ]; then left=", about $(((left + 30) / 60)) min left"; else left=", about $left s left"; fi
    fi
    if [ -t 2 ]; then
      line="[${BASH_REMATCH[1]}/${BASH_REMATCH[2]}] $name$left"
      printf '\r%s\033[K' "${line:0:$((${COLUMNS:-80} - 1))}" >&2
    else
      printf '[%s/%s] %s%s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "$name" "$left" >&2
    fi
    shown=$now
  done
  [ -t 2 ] && [ $shown -ne 0 ] && printf '\r\033[K' >&2
  return 0
}

# build BUILD_DIR CMAKE_OPTIONS... -- NINJA_OPTIONS...
build() {
  local build_dir=$1 options=() log status=0
  shift
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  mkdir -p "$build_dir" 2>/dev/null && [ -w "$build_dir" ] || refuse "$build_dir cannot be written; --build-dir DIR puts the build elsewhere"
  log=$build_dir/build.log
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  fi
  say "building in $build_dir"
  cmake -S "$root" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release "${options[@]}" >"$log" 2>&1 9>&- || {
    sed -n '/CMake Error/,$p' "$log" | head -30 >&2
    fail "the build could not be configured; the whole log is $log"
  }
  NINJA_STATUS='[%f/%t %es] ' ninja -C "$build_dir" "$@" 2>&1 | show_progress "$log" || status=$?
  if [ $status -ne 0 ]; then
    # The compiler's words, without the command lines above them.
    awk '/^FAILED: /{print; getline; shown = 1; next} /^\[[0-9]+\/[0-9]+ /{shown = 0} shown' "$log" | head -60 >&2
    fail "the build failed; the whole log is $log"
  fi
}
