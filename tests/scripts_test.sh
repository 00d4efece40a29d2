#!/usr/bin/env bash
# The set-up scripts where something is missing: each trouble is one sentence that names a way on. Programs that would reach the
# network are replaced by small ones in a folder that comes first in PATH; nothing is installed or fetched.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
failed=0

fake() { printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
# expect NAME EXIT_CODE WORDS COMMAND...: the command ends with that code, and its last line has the words (a pattern).
expect() {
  local name=$1 code=$2 words=$3 got=0 said
  shift 3
  said=$(PATH=$work/bin:$PATH OLMO_HARNESS_CACHE=$work/cache "$@" 2>&1) || got=$?
  if [ $got -ne "$code" ] || ! grep -qE "$words" <<<"${said##*$'\n'}"; then
    printf 'FAILED: %s: exit code %s, expected %s, and "%s" in the last line of:\n%s\n' "$name" $got "$code" "$words" "$said"
    failed=1
  fi
}
in_needs() { bash -c 'set -euo pipefail; root=$PWD; script=build.sh; source scripts/needs.sh; '"$1"; }
fetch='fetch_libtorch "$cache/libtorch-$torch_version"; ls -d "$cache/libtorch-$torch_version"'

expect "an unknown option" 2 "unknown option '--test' \(known: --libtorch" scripts/build.sh --test
expect "no home" 2 "neither HOME nor OLMO_HARNESS_CACHE is set" env -u HOME -u XDG_CACHE_HOME -u OLMO_HARNESS_CACHE scripts/build.sh
expect "a cache that cannot be written" 2 "/proc/none cannot be written; OLMO_HARNESS_CACHE=DIR" env OLMO_HARNESS_CACHE=/proc/none bash -c "$(declare -f in_needs); in_needs '$fetch'"
expect "a folder to build in that cannot be written" 2 "/proc/x cannot be written; --build-dir DIR" in_needs 'build /proc/x -- olmo-harness'

# The picture in the README shows the page that is kept.
if python3 -I -c '' 2>/dev/null; then
  expect "the picture of the sample report" 0 "" bash -c 'python3 -I scripts/report_picture.py reports/sample/parity.html | cmp - docs/parity.svg'
fi

fake dpkg-query 'exit 1'
fake apt-get 'echo "E: Temporary failure resolving"; exit 1'
fake id 'echo 0'
expect "no network for apt" 1 "Debian's package archive could not be reached; install these by other means.*: nothing-1 nothing-2" in_needs 'install nothing-1 nothing-2'
fake apt-get 'echo "Get:1 a package"; echo "debconf: a warning"; exit 0'
expect "apt that succeeds is silent" 0 "^== installing 1 packages: nothing-1$" in_needs 'install nothing-1'
fake id 'echo 1000'
rm "$work/bin/apt-get"
fake sudo 'exit 1'
expect "packages that are there need no root" 0 "^done$" env PATH="$work/there:$PATH" bash -c 'mkdir -p '"$work"'/there; printf "#!/bin/bash\necho install ok installed\n" >'"$work"'/there/dpkg-query; chmod +x '"$work"'/there/dpkg-query; PATH='"$work"'/there:$PATH; root=$PWD; script=build.sh; source scripts/needs.sh; install a b; echo done'

fake python3 'echo "Temporary failure in name resolution"; exit 1'
expect "no network for pip" 1 "PyPI could not be reached; give a LibTorch that is there already with --libtorch DIR" in_needs "$fetch"
fake df 'echo; echo "disk 1000 900 100 90% /"'
expect "too small a disk" 1 "needs [0-9]+ MB in .*, and 100 MB are free" in_needs "$fetch"
rm "$work/bin/df"
# A pip that is killed half-way leaves nothing that is taken for the whole, and two at once fetch once.
pip='while [ $# -gt 0 ]; do [ "$1" = --target ] && to=$2; shift; done; echo >>'$work'/calls; mkdir -p "$to/torch/lib"'
fake python3 "$pip; kill -9 \$PPID"
expect "an interrupted fetch" 137 "" in_needs "$fetch"
[ ! -e "$work"/cache/libtorch-*/torch ] || { echo "FAILED: half a LibTorch is taken for the whole"; failed=1; }
fake python3 "$pip; touch \"\$to/torch/lib/libtorch_cpu.so\""
: >"$work/calls"
expect "a fetch after it" 0 "/libtorch-[0-9.]+$" in_needs "($fetch) & ($fetch); wait"
[ "$(wc -l <"$work/calls")" -eq 1 ] || { echo "FAILED: two builds at once fetched LibTorch $(wc -l <"$work/calls") times"; failed=1; }

status='for i in $(seq 1 40); do echo "[$i/40 $((3 * i)).5s] Building CXX object src/CMakeFiles/olmo.dir/model/block.cpp.o"; done'
expect "progress" 0 '^\[[0-9]+/40\] model/block.cpp' in_needs "{ $status; } | show_progress $work/log"
[ "$(grep -c Building "$work/log")" -eq 40 ] || { echo "FAILED: the log lacks lines of ninja"; failed=1; }
exit $failed
