# Without root: the tools and libraries that a machine lacks, in the cache. build.sh sources it after needs.sh. Tools come from PyPI;
# libraries are built, static, from pinned sources, with the compiler at hand, so that any Linux will do. Debian's copies of the
# sources are taken, because one host has them all and keeps them.
#
# name that src/dependencies.cmake gives it | path below Debian's pool/main | SHA-256
library_sources="
ZLIB          z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
ZSTD          libz/libzstd/libzstd_1.5.4+dfsg2.orig.tar.xz 8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953
LIBZIP        libz/libzip/libzip_1.7.3.orig.tar.xz a60473ffdb7b4260c08bfa19c2ccea0438edac11193c3afbbb1f17fbcf6c6132
UTF8PROC      u/utf8proc/utf8proc_2.8.0.orig.tar.gz a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc
yaml-cpp      y/yaml-cpp/yaml-cpp_0.7.0+dfsg.orig.tar.xz dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312
nlohmann_json n/nlohmann-json3/nlohmann-json3_3.11.2.orig.tar.gz d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273
CLI11         c/cli11/cli11_2.1.2+ds.orig.tar.xz 8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d
Catch2        c/catch2/catch2_2.13.10.orig.tar.gz 2f4fe284449cf17394350e027ae21958973a61b9161197d416e2dfca16167686
Boost         b/boost1.74/libboost1.74-dev_1.74.0+ds1-21_amd64.deb ba14fe04d7f138f874bd3ab3a20c4fd1e9f654e271449b8f3e48d20f942dbb93
SQLite3       libd/libdbd-sqlite3-perl/libdbd-sqlite3-perl_1.76.orig.tar.gz 0a33a7a935be63371071dbe600cfaefa67cd971b67580a917bbf6ebaf723c584
OpenSSL       o/openssl/openssl_1.1.1w.orig.tar.gz cf3098950cb4d853ad95c0841f1f9c6d3dc102dccfcacd521d93925208b76ac8
HDF5          h/hdf5/hdf5_1.10.8+repack1.orig.tar.gz 7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31
"
pip_source="p/python-pip/python3-pip-whl_25.1.1+dfsg-1_all.deb e65351935aa4af2b10ae2abb5744f5059e9abad51aea6cd0cb825702010763f7"
[ -z "${OLMO_HARNESS_SOURCES:-}" ] || OLMO_HARNESS_SOURCES=$(at "$OLMO_HARNESS_SOURCES")

# Mirrors of Debian: the one that is named, and those that the machine's own apt knows. Plain HTTP will do, as for apt: the sums are
# what is trusted.
debian_mirrors() {
  [ -z "${OLMO_HARNESS_DEBIAN_MIRROR:-}" ] || echo "${OLMO_HARNESS_DEBIAN_MIRROR%/}"
  grep -hvE '^[[:space:]]*#' /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    grep -oE 'https?://[^[:space:]]+/debian/?([[:space:]]|$)' | tr -d '[:blank:]' | sed 's,/$,,' | sort -u || true  # there may be none
}

# get URL FILE
get() {
  if command -v curl >/dev/null; then curl -fsSL --connect-timeout 20 --speed-limit 1 --speed-time 60 -o "$2" "$1"
  elif command -v wget >/dev/null; then wget -nv --tries 1 --connect-timeout 20 --read-timeout 60 -O "$2" "$1"
  else python3 -I -c 'import socket, sys, urllib.request; socket.setdefaulttimeout(60); urllib.request.urlretrieve(*sys.argv[1:])' "$1" "$2"; fi
}

# fetch_source PATH SHA256: prints where the file is. A folder with all of them, $OLMO_HARNESS_SOURCES, stands for the network.
fetch_source() (
  name=${1##*/}
  for file in "${OLMO_HARNESS_SOURCES:-/nonexistent}/$name" "$cache/sources/$name"; do
    if [ -f "$file" ] && sha256sum --check --status - <<<"$2  $file"; then echo "$file" && return; fi
  done
  mkdir -p "$cache/sources"
  words=$(mktemp)
  trap 'rm -f "$words" "$words.last" "$file.part"' EXIT  # of this subshell
  leave_nothing "$file.part"
  mirrors=$(debian_mirrors)
  [ -n "$mirrors" ] || echo "no mirror of Debian is known here" >>"$words"
  for mirror in $mirrors; do
    over_network "$mirror" "$words.last" get "$mirror/pool/main/${1//+/%2B}" "$file.part" || { cat "$words.last" >>"$words" && continue; }
    if sha256sum --check --status - <<<"$2  $file.part"; then mv "$file.part" "$file" && echo "$file" && exit; fi
    echo "$mirror has another $name" >>"$words"
  done
  cat "$words" >&2
  fail "$name could not be fetched; OLMO_HARNESS_DEBIAN_MIRROR=URL names a mirror of Debian, OLMO_HARNESS_SOURCES=DIR a folder that has the file (a mirror's pool/main/$1)"
)

# Chooses pip: the machine's own, if it knows today's wheels, else Debian's, which needs no installation.
find_pip() {
  command -v python3 >/dev/null || refuse "python3 is missing, which fetches LibTorch and build tools; load a module that has it, or take the wheel (docs/install.md)"
  local deb certificates
  if [[ "$(python3 -I -m pip --version 2>/dev/null)" =~ ^pip\ ([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge 21 ]; then return; fi
  python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    refuse "python3 is $(python3 -I -c 'import platform; print(platform.python_version())'), with an old pip, which cannot fetch today's packages from PyPI; load a module with 3.9 or newer (on LUMI: module load cray-python)"
  # shellcheck disable=SC2086
  deb=$(fetch_source $pip_source)
  mkdir -p "$cache/sources"
  python3 -I - "$deb" "$cache/sources" <<'PYTHON'
import io, pathlib, sys, tarfile
deb = pathlib.Path(sys.argv[1]).read_bytes()
at = 8  # of an ar archive: members, each behind 60 bytes of text
while at < len(deb):
    name, size = deb[at:at + 16].strip().rstrip(b"/"), int(deb[at + 48:at + 58])
    if name.startswith(b"data.tar"):
        with tarfile.open(fileobj=io.BytesIO(deb[at + 60:at + 60 + size])) as tar:
            member = next(m for m in tar.getmembers() if m.name.endswith(".whl"))
            (pathlib.Path(sys.argv[2]) / "pip.whl").write_bytes(tar.extractfile(member).read())
    at += 60 + size + size % 2
PYTHON
  pip=(python3 -I "$cache/sources/pip.whl/pip")
  # It brings certificates of its own, which lack a site's.
  for certificates in /etc/ssl/certs/ca-certificates.crt /etc/ssl/ca-bundle.pem /etc/pki/tls/certs/ca-bundle.crt; do
    [ -n "${PIP_CERT:-}" ] || [ ! -f "$certificates" ] || export PIP_CERT=$certificates
  done
}

# find_tools: CXX is a compiler that knows C++20; cmake and ninja are in PATH.
find_tools() {
  local candidate tools=$cache/tools-1 wanted=() log
  local program='#include <charconv>
#include <concepts>
#include <span>
#include <stop_token>
double number(const char* a, const char* b) { double n = 0; std::from_chars(a, b, n); return n; }'
  for candidate in ${CXX:-c++ g++ g++-14 g++-13 g++-12 g++-11 clang++}; do
    if $candidate -std=c++20 -fopenmp -fsyntax-only -x c++ - <<<"$program" >/dev/null 2>&1; then
      export CXX=$candidate && break
    fi
    candidate=""
  done
  [ -n "$candidate" ] || refuse "${CXX:-c++} is not there or knows too little of C++20; GCC 11 or newer is needed: load a module with it (on LUMI: PrgEnv-gnu), or name it in CXX; the wheel needs none (docs/install.md)"
  if [ -z "${CC:-}" ]; then
    case "$CXX" in
      *clang++*) export CC=${CXX/clang++/clang} ;;
      *g++*) export CC=${CXX/g++/gcc} ;;
      *) export CC=cc ;;
    esac
  fi
  PATH=$tools/bin:$PATH
  [[ "$(cmake --version 2>/dev/null)" =~ ^cmake\ version\ ([0-9]+)\.([0-9]+) ]] && [ $((1000 * BASH_REMATCH[1] + BASH_REMATCH[2])) -ge 3022 ] ||
    wanted+=("cmake==3.31.6")
  command -v ninja >/dev/null || wanted+=("ninja==1.11.1.4")
  [ ${#wanted[@]} -gt 0 ] || return 0
  find_pip
  say "fetching ${wanted[*]} (into $tools)"
  log=$(mktemp)
  leave_nothing "$log" "$tools.part"
  rm -rf "$tools.part"
  over_network PyPI "$log" "${pip[@]}" install -q --disable-pip-version-check --no-cache-dir --retries 2 --target "$tools.part" --only-binary=:all: "${wanted[@]}" ||
    { show_failure "$log"; fail "pip could not fetch ${wanted[*]} from PyPI; put what it has into PATH by other means"; }
  rm -f "$log"
  mkdir -p "$tools/bin"
  cp -r "$tools.part/." "$tools/"
  rm -rf "$tools.part"
  leave_nothing
  # The programs themselves, not the Python scripts that start them.
  if [ -x "$tools/cmake/data/bin/cmake" ]; then ln -sf ../cmake/data/bin/cmake ../cmake/data/bin/ctest "$tools/bin/"; fi
  if [ -x "$tools/ninja/data/bin/ninja" ]; then ln -sf ../ninja/data/bin/ninja "$tools/bin/"; fi
}

# missing_libraries: prints the names of those that CMake does not find.
missing_libraries() {
  local place
  place=$(mktemp -d)
  printf 'cmake_minimum_required(VERSION 3.22)\nproject(probe C CXX)\ninclude("%s/src/dependencies.cmake")\n' "$root" >"$place/CMakeLists.txt"
  if ! cmake -S "$place" -B "$place/build" -G Ninja "-DOLMO_PROBE=$place/missing" "-DCMAKE_PREFIX_PATH=$libraries_prefix" >"$place/log" 2>&1; then
    tail -n 30 "$place/log" >&2
    fail "the compiler $CXX does not work with CMake; the log is $place/log"
  fi
  tr ';' '\n' <"$place/missing"
  rm -rf "$place"
}

# with_cmake SOURCE OPTION...
with_cmake() {
  local source=$1
  shift
  cmake -S "$source" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=$libraries_prefix" "-DCMAKE_PREFIX_PATH=$libraries_prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@" &&
    cmake --build build && cmake --install build
}

# make_library NAME: builds and installs what lies unpacked in the current folder. Each is given what the program needs of it.
make_library() {
  local prefix=$libraries_prefix
  case "$1" in
    ZLIB) mkdir -p win32 && touch win32/zlib1.rc && with_cmake . && rm -f "$prefix"/lib/libz.so* ;;
    ZSTD) with_cmake build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF -DZSTD_LEGACY_SUPPORT=OFF ;;
    # Packages are linked with a glibc that has no arc4random() yet (old_glibc.sh).
    LIBZIP) with_cmake . -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF \
              -DENABLE_OPENSSL=OFF -DHAVE_ARC4RANDOM=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF ;;
    UTF8PROC) with_cmake . ;;
    yaml-cpp) with_cmake . -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF ;;
    nlohmann_json) with_cmake . -DJSON_BuildTests=OFF ;;
    CLI11) with_cmake . -DCLI11_BUILD_TESTS=OFF -DCLI11_BUILD_EXAMPLES=OFF -DCLI11_BUILD_DOCS=OFF ;;
    Catch2) with_cmake . -DCATCH_INSTALL_DOCS=OFF ;;
    Boost) cmake -E tar xf data.tar.xz usr/include/boost && mkdir -p "$prefix/include" && cp -r usr/include/boost "$prefix/include/" ;;
    # As Debian compiles it, of what concerns this program.
    SQLite3) $CC -O2 -fPIC -DSQLITE_THREADSAFE=1 -DSQLITE_USE_URI=1 -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA \
               -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_MAX_VARIABLE_NUMBER=250000 -c sqlite3.c &&
               mkdir -p "$prefix/lib" "$prefix/include" && ar rcs "$prefix/lib/libsqlite3.a" sqlite3.o && cp sqlite3.h sqlite3ext.h "$prefix/include/" ;;
    # Only its SHA-256 is used: an old release does, and needs less of Perl than new ones.
    OpenSSL) ./config no-shared no-tests no-engine no-dso no-async no-comp no-deprecated no-srp no-ssl3 no-dtls no-gost no-idea no-seed no-bf no-cast no-camellia \
               no-aria no-sm2 no-sm4 no-rc2 no-rc4 no-rc5 no-md4 no-mdc2 no-rmd160 no-whirlpool no-ocsp no-cms no-ts no-ct -fPIC "--prefix=$prefix" "--libdir=lib" &&
               make -j "$(nproc)" build_generated libcrypto.a libcrypto.pc && mkdir -p "$prefix/lib" "$prefix/include" &&
               cp libcrypto.a "$prefix/lib/" && cp -r include/openssl "$prefix/include/" ;;
    # One of its functions lacks its type, int, which GCC 14 would refuse.
    HDF5) CFLAGS="-O2 -fPIC -Wno-implicit-int" ./configure "--prefix=$prefix" "--libdir=$prefix/lib" --disable-shared --enable-threadsafe --disable-hl --disable-tests \
            --disable-tools --without-zlib --without-szlib --with-default-api-version=v18 --enable-build-mode=production &&
            make -j "$(nproc)" -C src install && rm -f "$prefix"/lib/libhdf5.la ;;
  esac
}

# Of another recipe, other libraries: they lie beside the old ones.
libraries_prefix=$cache/libraries-$({ echo "$library_sources"; declare -f with_cmake make_library; } | sha256sum | cut -c 1-8)

# provide_libraries: builds what is missing into the cache. Two at once wait for each other; an interrupted one is begun again.
provide_libraries() {
  local name path sum file log place missing tool started=$SECONDS
  missing=$(missing_libraries)
  [ -n "$missing" ] || return 0
  if grep -qx OpenMP <<<"$missing"; then refuse "$CXX has no OpenMP, which this program needs; take another compiler (CXX), or install its libomp"; fi
  for tool in make perl; do  # OpenSSL and HDF5 are not built by CMake
    if ! command -v $tool >/dev/null && grep -qxE 'OpenSSL|HDF5' <<<"$missing"; then
      refuse "$tool is missing, with which OpenSSL and HDF5 are built; load a module that has it, or name folders with these libraries in CMAKE_PREFIX_PATH"
    fi
  done
  mkdir -p "$libraries_prefix" 2>/dev/null || refuse "the cache $cache cannot be written; OLMO_HARNESS_CACHE=DIR puts it elsewhere"
  exec 8>"$libraries_prefix.lock"
  flock -n 8 || { say "waiting for another build that is making libraries"; flock 8 && missing=$(missing_libraries); }
  [ -z "$missing" ] || say "making $(wc -l <<<"$missing") libraries that are missing, once, in $libraries_prefix:" $missing
  place=$libraries_prefix.part
  # In the order of the table: libzip needs zlib.
  while read -r name path sum; do
    [ -n "$name" ] && grep -qx "$name" <<<"$missing" || continue
    file=$(fetch_source "$path" "$sum")
    log=$libraries_prefix.$name.log
    rm -rf "$place" && mkdir "$place"
    if ! (cd "$place" && cmake -E tar xf "$file" && { [ "$(ls | wc -l)" -gt 1 ] || cd ./*; } && make_library "$name") >"$log" 2>&1 8>&-; then
      tail -n 30 "$log" >&2
      fail "$name could not be built; the whole log is $log. CMAKE_PREFIX_PATH=DIR names a folder that has it (often a module's: module load $name)"
    fi
    rm -rf "$place" "$log"
    say "$name is made ($((SECONDS - started)) s)"
  done <<<"$library_sources"
  exec 8>&-
}
