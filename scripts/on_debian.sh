#!/usr/bin/env bash
# Runs a command of the last commit on another release of Debian: in a folder with that system, which begins bare and so goes the way of
# a fresh machine. This is how newer compilers and libraries are tried; Debian 13 has GCC 13, as Ubuntu 24.04 does, and Catch2 3.
#   scripts/on_debian.sh [--with PACKAGE]... RELEASE COMMAND...
#   scripts/on_debian.sh trixie scripts/test.sh
#   CC=gcc-13 CXX=g++-13 scripts/on_debian.sh --with g++-13 trixie scripts/build.sh  # its Catch2 does not link with GCC 13
# Needs root on Debian or Ubuntu. The system stays in the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness), the source and what was
# built in its folder /src until the next start.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
script=on_debian.sh
source scripts/needs.sh
if [ "${1:-}" = --help ]; then usage scripts/on_debian.sh && exit; fi

packages=(ca-certificates git)
while [ "${1:-}" = --with ]; do
  packages+=("${2:?--with needs a package}")
  shift 2
done
[ $# -ge 2 ] || refuse "which release, and which command? For example: scripts/on_debian.sh trixie scripts/test.sh"
release=$1
shift
[ "$(id -u)" -eq 0 ] || refuse "another system's folder is entered by root only"
install mmdebstrap

system=$cache/debian/$release
mkdir -p "$cache/debian"
exec 9>"$system.lock"
flock --nonblock 9 || refuse "another command runs on Debian $release; wait until it has ended"
if [ ! -d "$system" ]; then
  say "fetching Debian $release (once, into $system)"
  rm -rf "$system.part"
  mmdebstrap --quiet --variant=apt "$release" "$system.part" >&2 || fail "Debian $release could not be fetched; the lines above say why"
  mv "$system.part" "$system"
fi
rm -rf "$system/src"
git clone --quiet "$root" "$system/src"
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
export system cache OLMO_HARNESS_CACHE=/var/cache/olmo-harness HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
unset TMPDIR

# within COMMAND...: in that system. What is mounted for it, nobody else sees, and nothing stays.
within() {
  # shellcheck disable=SC2016  # for the bash below
  unshare --mount bash -euc '
    mkdir -p "$system$OLMO_HARNESS_CACHE"
    mount --bind "$cache" "$system$OLMO_HARNESS_CACHE"
    mount --rbind /dev "$system/dev"
    mount -t proc proc "$system/proc"
    exec chroot "$system" "$@"
  ' - "$@"
}

# shellcheck disable=SC2016
within env -C /src bash -c 'set -euo pipefail; root=$PWD; script=on_debian.sh; source scripts/needs.sh; install "$@"' - "${packages[@]}"
within env -C /src "$@"
