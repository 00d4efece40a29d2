# What builds need, for build.sh, build_arm64.sh and package.sh: Debian packages with the libraries, LibTorch, and the functions that install,
# fetch and build. Without root, libraries.sh stands for the packages. Whoever sources it defines `script`, the name that its messages begin with.
libraries=(libhdf5-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev catch2 libyaml-cpp-dev zlib1g-dev libzstd-dev libssl-dev
           libutf8proc-dev libzip-dev libboost-dev)
source scripts/libtorch.sh

# is_installed PACKAGE...: sets `missing` to those that are not.
is_installed() {
  local package
  missing=()
  for package in "$@"; do
    # A pip that is there by other means is as good as Debian's.
    [ "$package" = python3-pip ] && python3 -I -m pip --version >/dev/null 2>&1 && continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ]
}

# are_new_enough OS_RELEASE: whether this system's packages are those that docs/install.md promises; others find out by themselves.
are_new_enough() (
  ID="" VERSION_ID=""
  [ ! -r "$1" ] || . "$1"
  case $ID in debian) least=12 ;; ubuntu) least=22 ;; *) exit 0 ;; esac
  [ -z "$VERSION_ID" ] || [ "${VERSION_ID%%.*}" -ge $least ]
)

# Whether apt may be used: as root, or by a sudo that asks nothing, or that asks on a terminal somebody whom its groups allow.
may_install() {
  sudo=""
  [ "$(id -u)" -ne 0 ] || return 0
  sudo=sudo
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null && return
  [ -t 0 ] && [ -t 2 ] && id -nG | grep -qwE 'sudo|wheel|admin'
}

install_missing() {
  $sudo apt-get update -q &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o DPkg::Lock::Timeout=120 --no-install-recommends "${missing[@]}"
}

# install PACKAGE...: installs those that are missing by apt. What apt prints is shown only if it fails.
install() {
  local missing log sudo why
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian or the like; it must have what these packages of Debian hold: $*"
    return
  fi
  if is_installed "$@"; then return; fi
  may_install || refuse "packages are missing, and installing them needs root or sudo; let an administrator run: apt-get install ${missing[*]}"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  log=$(mktemp)
  leave_nothing "$log"
  if ! over_network "the package archive" "$log" install_missing; then
    why="the package archive could not be reached"
    grep -qE "$unreachable" "$log" || { show_failure "$log"; why="apt could not install all packages"; }
    fail "$why; install these by other means, then run this again: ${missing[*]} (apt's own words: $log)"
  fi
  rm -f "$log"
  leave_nothing
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
  cmake -S "$root" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DOLMO_UNITY=ON "${options[@]}" >"$log" 2>&1 9>&- || {
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
