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
no_home=(env -u HOME -u XDG_CACHE_HOME -u OLMO_HARNESS_CACHE)
fake getent 'exit 2'
expect "no home" 2 "this user has no home; OLMO_HARNESS_CACHE=DIR" "${no_home[@]}" scripts/build.sh
expect "sanitizers without a home" 2 "^sanitize.sh: this user has no home" "${no_home[@]}" scripts/sanitize.sh address
fake getent 'echo "user:x:1000:1000:A User:/users/a:/bin/bash"'
expect "a home that the list of users tells" 0 "^/users/a/.cache/olmo-harness$" "${no_home[@]}" bash -c "$(declare -f in_needs); in_needs 'echo \$cache'"
rm "$work/bin/getent"
for each in build build_arm64 check_gpu_kernels fuzz on_debian package prove_gpu quickstart release sample_report sanitize serve_pictures test tidy verdict_simulation; do
  expect "help of $each.sh" 0 . "scripts/$each.sh" --help
done
for each in against_older_olmo against_olmo against_olmo_core determinism_table real_pairs report_picture same_bits tasks_against_olmo; do
  expect "help of $each.py" 0 . "scripts/$each.py" --help
done
expect "a simulation without tests" 2 "^verdict_simulation.sh: .*none is no program of tests; scripts/build.sh --tests makes it" scripts/verdict_simulation.sh 1 "$work/none"
expect "a simulation of no times" 2 "^verdict_simulation.sh: TIMES must be a whole number above 0, got 'x'" scripts/verdict_simulation.sh x
expect "a sample report without a program" 2 "^sample_report.sh: expected the program, got ''" scripts/sample_report.sh
expect "kernels of no build" 2 "^check_gpu_kernels.sh: .*none is no folder of a build" scripts/check_gpu_kernels.sh "$work/none"
expect "another system without a command" 2 "^on_debian.sh: which release, and which command\?" scripts/on_debian.sh trixie
# Folders that the user names are below the one where the user is.
from_elsewhere() { (mkdir -p "$work/elsewhere" && cd "$work/elsewhere" && "$@"); }
expect "a LibTorch named from elsewhere" 2 "^build.sh: $work/elsewhere/torch is no LibTorch" from_elsewhere "$root/scripts/build.sh" --libtorch torch
expect "a program named from elsewhere" 2 "$work/elsewhere/here/x is no program" from_elsewhere "$root/scripts/quickstart.sh" --harness here/x
expect "a program to prove that is named from elsewhere" 2 "^prove_gpu.sh: $work/elsewhere/here/x is no program" from_elsewhere "$root/scripts/prove_gpu.sh" cuda --harness here/x
fake ../harness 'case "$*" in *tiny-cuda*) sleep 300 ;; *) exit 0 ;; esac'
proof_within() { scripts/prove_gpu.sh cuda --harness "$work/harness" --out "$work/proof" --only tiny,bf16 --within "$1" && grep -c "left out: the $1 s of --within" "$work/proof/gpu_proof.md"; }
expect "a proof that there is no time for" 0 "^2$" proof_within 10
no_profiler() { scripts/prove_gpu.sh rocm --harness "$work/harness" --out "$work/proof" --only profile && grep -c "left out: no profiler is here (rocprof)" "$work/proof/gpu_proof.md"; }
command -v rocprof >/dev/null || expect "a proof without a profiler" 0 "^1$" no_profiler
fake ncu 'while [ "$1" != --log-file ]; do shift; done; echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" >"$2"; exit "${NCU_ENDS:-1}"'
echo 'import sys, unittest.mock; sys.modules[__name__] = unittest.mock.MagicMock()' >"$work/numpy.py"
no_counters() { PYTHONPATH=$work scripts/prove_gpu.sh cuda --harness "$work/harness" --out "$work/proof" --only profile --small && grep -c "left out: no profile is possible here: ncu may not read the GPU's counters (ERR_NVGPUCTRPERM); nsys is not here" "$work/proof/gpu_proof.md"; }
command -v nsys >/dev/null || for code in 0 1; do expect "a proof where counters are forbidden" 0 "^1$" env NCU_ENDS=$code bash -c "$(declare -f no_counters); work=$work; no_counters"; done
fake ncu 'exit 3'
bad_profile() { PYTHONPATH=$work scripts/prove_gpu.sh cuda --harness "$work/harness" --out "$work/proof" --only profile --small || { grep -c "FAILED with exit code 1: no profiler could be used: .*ncu: ncu --csv ended with 3" "$work/proof/gpu_proof.md"; return 5; }; }
expect "a proof whose profiler fails" 5 "^1$" bad_profile
rm "$work/bin/ncu"
expect "a proof within no time" 2 "^prove_gpu.sh: --within: expected seconds, got '0'" proof_within 0
fake ../harness 'case "$*" in *opened*) echo "no such device"; exit 2 ;; *) exit 0 ;; esac'
proof_without_device() { echo "an earlier proof" >"$work/proof/gpu_proof.md"; scripts/prove_gpu.sh cuda --harness "$work/harness" --out "$work/proof" || { cat "$work/proof/gpu_proof.md"; return 2; }; }
expect "a proof without a device" 2 "^an earlier proof$" proof_without_device
expect "a cache named from elsewhere" 0 "^/usr/here$" env OLMO_HARNESS_CACHE=here from=/usr bash -c "$(declare -f in_needs); in_needs 'echo \$cache'"
expect "a cache that cannot be written" 2 "/proc/none cannot be written; OLMO_HARNESS_CACHE=DIR" env OLMO_HARNESS_CACHE=/proc/none bash -c "$(declare -f in_needs); in_needs '$fetch'"
expect "a folder to build in that cannot be written" 2 "/proc/x cannot be written; --build-dir DIR" in_needs 'build /proc/x -- olmo-harness'

# Who stops a script finds nothing half fetched, and no temporary file.
mkdir "$work/tmp"
fake curl 'touch "$TMPDIR/seen"; kill -TERM $PPID; sleep 1'
expect "a source whose fetching is stopped" 143 "" env "TMPDIR=$work/tmp" OLMO_HARNESS_DEBIAN_MIRROR=http://a.example \
  bash -c "$(declare -f in_needs); in_needs 'source scripts/libraries.sh; fetch_source p/part/part.tar.gz 0'"
fake apt-get 'touch "$TMPDIR/seen"; kill -TERM $PPID; sleep 1'
fake dpkg-query 'exit 1'
fake id 'echo 0'
expect "packages whose installation is stopped" 143 "" env "TMPDIR=$work/tmp" bash -c "$(declare -f in_needs); in_needs 'install a-package'"
rm "$work"/bin/{curl,apt-get,dpkg-query,id} "$work/tmp/seen"
left=$(find "$work/tmp" "$work/cache" -type f 2>/dev/null)
[ -z "$left" ] || { echo "FAILED: stopped scripts leave $left"; failed=1; }

# The LibTorch that is named is the one that is linked, also where the folder was built with another one before, and with the headers of
# old ones, whose version lies elsewhere.
if command -v cmake >/dev/null; then
  mkdir "$work/project"
  printf 'cmake_minimum_required(VERSION 3.22)\nproject(project LANGUAGES NONE)\ninclude(%s/src/libtorch.cmake)\n' "$root" >"$work/project/CMakeLists.txt"
  # torch FOLDER HEADER MINOR
  torch() { mkdir -p "$work/$1/lib" "$work/$1/include/torch/$2" && touch "$work/$1"/lib/lib{torch_cpu,c10}.so &&
    printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' "MINOR $3" 'PATCH 1' >"$work/$1/include/torch/$2/version.h"; }
  torch "new/torch" headeronly 11 && torch old csrc/api/include/torch 7 && torch older csrc/api/include/torch 5
  mkdir -p "$work/bare/lib" && touch "$work/bare/lib/libtorch_cpu.so"
  libtorch_in() { cmake -G Ninja -S "$work/project" -B "$work/project/build" "-DOLMO_LIBTORCH=$1" 2>&1 | tr -s ' \n' ' '; }
  expect "a LibTorch" 0 "LibTorch 2.11.1 in $work/new/torch -- Config" libtorch_in "$work/new"
  expect "another LibTorch in the same build" 0 "LibTorch 2.7.1 in $work/old -- Config" libtorch_in "$work/old"
  expect "too old a LibTorch" 1 "LibTorch in $work/older is 2.5.1; 2.6 or newer is needed." libtorch_in "$work/older"
  torch old_abi csrc/api/include/torch 6 && printf '_ZN3c106detail14torchCheckFailEPKcS2_jRKSs\0' >"$work/old_abi/lib/libc10.so"
  expect "a LibTorch of the old ABI" 1 "LibTorch in $work/old_abi was built with the old ABI" libtorch_in "$work/old_abi"
  expect "a LibTorch without headers" 1 "LibTorch in $work/bare has no include/torch/version.h" libtorch_in "$work/bare"
  expect "no LibTorch" 1 "LibTorch was not found in $work/nothing: give its folder" libtorch_in "$work/nothing"
fi

# Options of scripts in the documents are options of the scripts.
while read -r name options; do
  [ -f "$name" ] || continue  # tests/documents_test.cpp says so
  for option in $options; do
    [[ $option != --* ]] || grep -qF -- "$option)" "$name" || { [ "$name" = scripts/test.sh ] && grep -qF -- "$option" "$name" scripts/build.sh; } ||
      { echo "FAILED: a document gives $name the option $option"; failed=1; }
  done
done < <(grep -ohE 'scripts/[a-z_]+\.sh( --?[a-z-]+( [A-Za-z/.]+)?)+' README.md CONTRIBUTING.md docs/*.md scripts/containers/* .github/workflows/*)
# The wheel that documents name is that of the version.
version=$(sed -n 's/^project(olmo-harness VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
if grep -ohE 'olmo[_-]harness-[0-9]+\.[0-9]+\.[0-9]+' README.md docs/*.md | grep -v -- "-$version$"; then echo "FAILED: documents name packages of another version than $version"; failed=1; fi
# An action of the workflow is a commit, which nobody can change afterwards.
if grep -E 'uses:' .github/workflows/*.yml | grep -vE 'uses: [a-z/-]+@[0-9a-f]{40} # v[0-9.]+$'; then echo "FAILED: actions are named by something else than a commit and its version"; failed=1; fi
# A release has notes, and its tag asks for them.
expect "notes of a release" 0 "." scripts/release.sh notes 0.1.0
expect "notes of no release" 2 "CHANGELOG.md has no section \[0.0.0\]" scripts/release.sh notes 0.0.0

# The picture in the README shows the page that is kept.
if python3 -I -c '' 2>/dev/null; then
  expect "the picture of the sample report" 0 "" bash -c 'python3 -I scripts/report_picture.py reports/sample/parity.html | cmp - docs/parity.svg'
fi

# What a package promises is what its programs need: more is refused, and the same tree gives the same bytes.
if python3 -I -c '' 2>/dev/null && command -v readelf >/dev/null && command -v cc >/dev/null; then
  program() { echo | cc -shared -nostdlib -x c - "${@:2}" -o "$work/stage/$1"; }
  package() { mkdir -p "$work/$1" && python3 -I scripts/package.py "$work/stage" "$work/$1" --glibc 2.31 --date 1700000000; }
  mkdir -p "$work/stage"/{bin,lib/olmo-harness,share/olmo-harness}
  program bin/olmo-harness && program lib/olmo-harness/olmo-harness && echo text >"$work/stage/share/olmo-harness/file"
  expect "a package" 0 '/olmo-harness-[0-9.]+-linux-x86_64.tar.gz$' package first
  touch "$work/stage/share/olmo-harness/file" && package second >/dev/null 2>&1
  diff -r "$work/first" "$work/second" || { echo "FAILED: the same tree gives packages that differ"; failed=1; }
  program bin/olmo-harness -Wl,-rpath,/home/builder/lib
  expect "a package that looks into the builder's folders" 1 'bin/olmo-harness looks for libraries in /home/builder/lib$' package third
  program ../libtorch_cpu.so && program bin/olmo-harness -Wl,--no-as-needed -L"$work" -l:libtorch_cpu.so
  expect "a package whose first program needs LibTorch" 1 'bin/olmo-harness needs libtorch_cpu.so, which not every Linux has$' package third
  program bin/olmo-harness && cp "$(command -v bash)" "$work/stage/lib/olmo-harness/olmo-harness"
  expect "a package of programs that need more than it promises" 1 'needs GLIBC_2\.[0-9]+, but a machine with glibc 2.31 has 2.31|which not every Linux has' package third
fi
# The scripts of a package.
mkdir -p "$work/package/bin" "$work/package/share/olmo-harness"
cp scripts/quickstart.sh "$work/package/bin/olmo-harness-quickstart"
cp scripts/package_libtorch.sh "$work/package/bin/olmo-harness-libtorch"
cp scripts/libtorch.sh "$work/package/share/olmo-harness/"
expect "options of a package's quickstart" 2 "olmo-harness-quickstart: it takes no options" "$work/package/bin/olmo-harness-quickstart" --libtorch x
expect "options of a package's fetcher" 2 "olmo-harness-libtorch: it takes no options" "$work/package/bin/olmo-harness-libtorch" now
expect "a quickstart of a program that is not there" 2 "/nowhere/x is no program" scripts/quickstart.sh --harness /nowhere/x

# A package's quickstart: a machine that trains faster than a signal comes; a LibTorch that the user names and that is none.
fake python3 "exec $(command -v python3) \"\$@\""
fake ../package/bin/olmo-harness 'case "$*" in
  --version) [ -z "${OLMO_LIBTORCH:-}" ] || { echo "error: OLMO_LIBTORCH: $OLMO_LIBTORCH has no LibTorch" >&2; exit 2; } ;;
  *--dry-run*) echo "{\"steps\": 160}" ;;
  "runs list"*) echo "{\"runs\": [{\"step\": 160}]}" ;;
  "runs export"*) printf "step,tokens,ce_loss,attempt\n1,2048,11.0,1\n" ;;
esac'
expect "a quickstart whose training ends before the signal" 0 "max_duration=1000 --run-dir runs/longer$" from_elsewhere "$work/package/bin/olmo-harness-quickstart"
expect "a quickstart with a folder that is no LibTorch" 2 "^error: OLMO_LIBTORCH: /x has no LibTorch$" env OLMO_LIBTORCH=/x PIP_NO_INDEX=1 PIP_FIND_LINKS= "$work/package/bin/olmo-harness-quickstart"
rm "$work/bin/python3"

# A network that fails is asked three times, with pauses that are none here; other trouble is told at once.
fake sleep 'echo "$1" >>'"$work"'/pauses'
fake dpkg-query 'exit 1'
fake apt-get 'echo "E: Temporary failure resolving"; exit 1'
fake id 'echo 0'
expect "no network for apt" 1 "the package archive could not be reached; install these by other means.*: nothing-1 nothing-2" in_needs 'install nothing-1 nothing-2'
[ "$(wc -l <"$work/pauses")" -eq 2 ] || { echo "FAILED: an archive that does not answer is not asked three times"; failed=1; }
fake apt-get 'echo "E: dpkg was interrupted"; exit 1'
expect "apt that cannot install" 1 "apt could not install all packages; install these by other means.*: nothing-1" in_needs 'install nothing-1'
[ "$(wc -l <"$work/pauses")" -eq 2 ] || { echo "FAILED: apt is asked again where the network is not the trouble"; failed=1; }
fake apt-get 'echo "E: Failed to fetch x  502  Bad Gateway"; [ -e '"$work"'/answered ] || { touch '"$work"'/answered; exit 100; }'
expect "an archive that fails once" 0 "the package archive does not answer as it should; trying again in 3 s$" in_needs 'install nothing-1'
fake apt-get 'echo "Get:1 a package"; echo "debconf: a warning"; exit 0'
expect "apt that succeeds is silent" 0 "^== installing 1 packages: nothing-1$" in_needs 'install nothing-1'
fake id 'echo 1000'
rm "$work/bin/apt-get"
fake sudo 'exit 1'
expect "packages that are there need no root" 0 "^done$" env PATH="$work/there:$PATH" bash -c 'mkdir -p '"$work"'/there; printf "#!/bin/bash\necho install ok installed\n" >'"$work"'/there/dpkg-query; chmod +x '"$work"'/there/dpkg-query; PATH='"$work"'/there:$PATH; root=$PWD; script=build.sh; source scripts/needs.sh; install a b; echo done'

not_asked='[ "${*: -1}" != --version ] || exit 0; '
fake python3 "$not_asked"'echo "Temporary failure in name resolution"; exit 1'
expect "no network for pip" 1 "PyPI could not be reached; --libtorch DIR takes a LibTorch that is there already" in_needs "$fetch"
expect "no network for pip, in a package" 1 "PyPI could not be reached; OLMO_LIBTORCH=DIR takes a LibTorch that is there already" "$work/package/bin/olmo-harness-libtorch"
fake python3 "$not_asked"'echo "OSError: [Errno 122] Disk quota exceeded"; exit 1'
expect "a share of the disk that is used up" 1 "the disk of .* is full, or your share of it; OLMO_HARNESS_CACHE=DIR" in_needs "$fetch"
fake python3 'echo "pip 20.0.2 from /env/lib (python 3.8)"'
expect "a pip that knows no wheels of today" 2 "^build.sh: pip 20.0.2 is too old for today's packages, 20.3 or newer is needed: python3 -m pip install --upgrade pip" in_needs "$fetch"
fake python3 'echo "python3: No module named pip"; exit 1'
expect "no pip" 2 "^build.sh: python3 with pip is needed to fetch LibTorch \(Debian and Ubuntu: .*; --libtorch DIR takes one" in_needs "$fetch"
fake df 'echo; echo "disk 1000 900 100 90% /"'
expect "too small a disk" 1 "needs [0-9]+ MB in .*, and 100 MB are free" in_needs "$fetch"
rm "$work/bin/df"
# A pip that is killed half-way leaves nothing that is taken for the whole, and two at once fetch once.
pip=$not_asked'while [ $# -gt 0 ]; do [ "$1" = --target ] && to=$2; shift; done; echo >>'$work'/calls; mkdir -p "$to/torch/lib"'
fake python3 "$pip; kill -9 \$PPID"
expect "an interrupted fetch" 137 "" in_needs "$fetch"
[ ! -e "$work"/cache/libtorch-*/torch ] || { echo "FAILED: half a LibTorch is taken for the whole"; failed=1; }
fake python3 "$pip; touch \"\$to/torch/lib/libtorch_cpu.so\""
: >"$work/calls"
expect "a fetch after it" 0 "/libtorch-[0-9.]+$" in_needs "($fetch) & ($fetch); wait"
[ "$(wc -l <"$work/calls")" -eq 1 ] || { echo "FAILED: two builds at once fetched LibTorch $(wc -l <"$work/calls") times"; failed=1; }

rm -rf "$work"/cache/libtorch-* "$work/answered"
fake python3 "$not_asked[ -e $work/answered ] || { touch $work/answered; echo 'IncompleteRead(1 bytes read)'; exit 1; }; $pip; touch \"\$to/torch/lib/libtorch_cpu.so\""
expect "a download that breaks off once" 0 "/libtorch-[0-9.]+$" in_needs "$fetch"

# Without root: pinned sources, from a folder or a mirror, and the tools that build them.
in_libraries() { in_needs 'source scripts/libraries.sh; '"$1"; }
mkdir "$work/sources"
echo sound >"$work/sources/a-1.tar.gz"
sum=$(sha256sum <"$work/sources/a-1.tar.gz" | cut -c 1-64)
fake curl 'echo "curl: (6) Could not resolve host" >&2; exit 6'
expect "a source in a folder" 0 "^$work/sources/a-1.tar.gz$" env OLMO_HARNESS_SOURCES="$work/sources" bash -c "$(declare -f in_needs in_libraries); in_libraries 'fetch_source a/a-1.tar.gz $sum'"
mirror=http://mirror.test/debian
export OLMO_HARNESS_DEBIAN_MIRROR=$mirror
expect "no network for sources" 1 "a-1.tar.gz could not be fetched; OLMO_HARNESS_DEBIAN_MIRROR=URL names a mirror of Debian, OLMO_HARNESS_SOURCES=DIR a folder that has the file \(a mirror's pool/main/a/a-1.tar.gz\)" in_libraries "fetch_source a/a-1.tar.gz $sum"
fake curl 'for last; do :; done; while [ "$1" != -o ]; do shift; done; echo "$last" >>'"$work"'/urls; echo other >"$2"'
expect "a mirror's file that is another" 1 "a-1.tar.gz could not be fetched" in_libraries "fetch_source a/a+b/a-1.tar.gz $sum"
grep -qx "$mirror/pool/main/a/a%2Bb/a-1.tar.gz" "$work/urls" || { echo "FAILED: the mirror that is named is asked for a file"; failed=1; }
fake curl 'while [ "$1" != -o ]; do shift; done; echo sound >"$2"'
expect "a mirror's file" 0 "/cache/sources/a-1.tar.gz$" in_libraries "fetch_source a/a-1.tar.gz $sum"
unset OLMO_HARNESS_DEBIAN_MIRROR
expect "an old compiler" 2 "^build.sh: false is not there or knows too little of C\+\+20; .*CXX" env CXX=false bash -c "$(declare -f in_needs in_libraries); in_libraries find_tools"
for system in 0:debian:12 0:debian: 1:debian:11 0:ubuntu:22.04 1:ubuntu:20.04 0:linuxmint:21; do
  IFS=: read -r old id number <<<"$system"
  printf 'ID=%s\nVERSION_ID="%s"\n' "$id" "$number" >"$work/os-release"
  expect "packages of $id $number" "$old" "" in_needs "are_new_enough $work/os-release"
done
fake python3 'echo 3.6.15; exit 1'
expect "an old Python" 2 "python3 is 3.6.15, with an old pip, .* 3.9 or newer" in_libraries find_pip
fake sudo '[ "$1" != -n ]'
expect "a sudo that would ask" 1 "" in_needs 'may_install </dev/null'
fake sudo 'exit 0'
expect "a sudo that asks nothing" 0 "" in_needs 'may_install </dev/null'
rm "$work"/bin/{curl,python3,sudo,sleep}

status='for i in $(seq 1 40); do echo "[$i/40 $((3 * i)).5s] Building CXX object src/CMakeFiles/olmo.dir/model/block.cpp.o"; done'
expect "progress" 0 '^\[[0-9]+/40\] model/block.cpp' in_needs "{ $status; } | show_progress $work/log"
[ "$(grep -c Building "$work/log")" -eq 40 ] || { echo "FAILED: the log lacks lines of ninja"; failed=1; }
exit $failed
