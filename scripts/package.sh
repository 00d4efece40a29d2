#!/usr/bin/env bash
# Makes the wheel and the tarball of a Release build (which it completes first), for Linux on x86-64, and checks both. It runs on Debian 12;
# the packages run on older machines, too: scripts/old_glibc.sh.
#   scripts/package.sh [--out DIR] [--build-dir DIR] [--no-check] [--if-possible]
# With --if-possible it makes none, and says so, where Debian's packages are missing and may not be installed.
# The last two lines printed are their paths. The same source gives the same bytes on a machine with the same Debian packages.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
root=$PWD
script=package.sh
source scripts/needs.sh
source scripts/libraries.sh
source scripts/old_glibc.sh

out=$root/build/package
build_dir=$root/build/release
check=1
if_possible=""
while [ $# -gt 0 ]; do
  case "$1" in
    --out) out=$(at "${2:?--out needs a folder}"); shift ;;
    --build-dir) build_dir=$(at "${2:?--build-dir needs a folder}"); shift ;;
    --no-check) check="" ;;
    --if-possible) if_possible=1 ;;
    --help) usage "$root/scripts/package.sh" && exit ;;
    *) refuse "unknown option '$1' (known: --out DIR, --build-dir DIR, --no-check, --if-possible)" ;;
  esac
  shift
done
[ "$(uname -m)" = x86_64 ] || refuse "packages are built for x86-64, on a machine of that kind"
[ "$( (. /etc/os-release && echo "$ID $VERSION_ID") 2>/dev/null)" = "debian 12" ] ||
  refuse "packages are built on Debian 12, whose libraries they hold; a container will do (debian:12)"

needed=(binutils python3 python3-venv "${static_packages[@]}")
if [ -n "$if_possible" ] && ! is_installed "${needed[@]}" && ! may_install; then
  say "no packages are made: ${missing[*]} are not installed, and installing them needs root or sudo"
  exit 0
fi
install "${needed[@]}"
binary=$(env -u Torch_DIR scripts/build.sh --build-dir "$build_dir" | tail -n 1)
build_dir=$(dirname "$binary")
make_sysroot

# The tree that both hold: run from anywhere, it finds its parts by their places beside each other.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install "$build_dir" --prefix "$stage" >/dev/null
rm -rf "$stage"/lib*  # for other projects' CMake
mkdir "$stage/lib" "$stage/lib/olmo-harness"
libtorch=$cache/libtorch-$torch_version/torch/lib
# LibTorch has an OpenMP of its own, which both parts of the whole program use; the other program brings one.
# shellcheck disable=SC2046
link_old "$build_dir" olmo-harness "$stage/bin/olmo-harness" $(static_archives) "$(g++ -print-file-name=libgomp.a)"
# shellcheck disable=SC2046
link_old "$build_dir" lib/olmo-harness/olmo-harness "$stage/lib/olmo-harness/olmo-harness" $(static_archives) "$libtorch"/{libtorch_cpu.so,libc10.so,libgomp.so.1}
cp scripts/quickstart.sh "$stage/bin/olmo-harness-quickstart"
cp scripts/package_libtorch.sh "$stage/bin/olmo-harness-libtorch"
cp scripts/libtorch.sh "$stage/share/olmo-harness/"
cp -r "$sysroot/licenses" "$stage/share/doc/olmo-harness/licenses"

date=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
mkdir -p "$out"
rm -f "$out"/olmo_harness-*.whl "$out"/olmo-harness-*.tar.gz
packages=$(python3 -I scripts/package.py "$stage" "$out" --glibc $glibc --date "$date")
if [ -n "$check" ]; then
  say "checking: installed, run, the bits of a small training"
  # shellcheck disable=SC2086
  OLMO_HARNESS_CACHE=$cache python3 -I scripts/check_package.py $packages >&2
fi
echo "$packages"
