# An older glibc to link packages with, so that they run on machines older than this one. package.sh sources it after needs.sh and libraries.sh.
# A build's objects stay as they are, and are linked once more: with the older glibc and libstdc++.so.6, with third-party libraries
# as archives (those of this machine's Debian, whose headers the objects were compiled with), and with the parts of the compiler's own
# libstdc++.a that the older one lacks. A function that the older glibc lacks is an error of the linker.
glibc=2.31  # Debian 11, Ubuntu 20.04, SLES 15 (LUMI); LibTorch's wheel itself wants 2.28
# path below Debian's pool/main | SHA-256
old_packages=(
  "g/glibc/libc6_2.31-13+deb11u11_amd64.deb 05f7264da867b37f4c5ce49266b558ea1e81e05a9464f623152fca70f3550282"
  "g/glibc/libc6-dev_2.31-13+deb11u11_amd64.deb e7f7b45d9c5cfcf37609f0b6efd3c645272c812144703af89dfd32218fcb0fd3"
  "l/linux/linux-libc-dev_5.10.223-1_amd64.deb e3be603bd12377bb90fcfb0f2048ca3a81c886e49d6f09945b82159d1c54f7b2"
  "g/gcc-10/libstdc++6_10.2.1-6_amd64.deb 5c155c58935870bf3b4bfe769116841c0d286a74f59eccfd5645693ac23f06b1"
  "g/gcc-10/libgcc-s1_10.2.1-6_amd64.deb e478f2709d8474165bb664de42e16950c391f30eaa55bc9b3573281d83a29daf"
)
# Whose headers and archives are taken, and whose licences apply.
static_packages=(libhdf5-dev libaec-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libyaml-cpp-dev zlib1g-dev libzstd-dev libssl-dev
                 libutf8proc-dev libboost1.74-dev)
archives=lib/x86_64-linux-gnu

unpack_old_packages() {
  local package deb link
  for package in "${old_packages[@]}"; do
    # shellcheck disable=SC2086
    deb=$(fetch_source $package)
    dpkg-deb -x "$deb" "$1"
  done
  # Links that begin at the root would lead to this machine's own libraries.
  find "$1" -type l -lname '/*' | while read -r link; do ln -sfr "$1$(readlink "$link")" "$link"; done
}

# The linker takes what the older library has from there, and the rest from the archive.
add_libstdcxx() {
  cp "$(g++ -print-file-name=libstdc++.a)" "$1/usr/$archives/libstdc++_newer.a"
  echo 'INPUT ( libstdc++.so.6 libstdc++_newer.a )' >"$1/usr/$archives/libstdc++.so"
  ln -s "../../../$archives/libgcc_s.so.1" "$1/usr/$archives/libgcc_s.so.1"
  # libyaml-cpp.a asks a newer glibc whether there is one thread; 0 says that there may be more.
  echo 'char __libc_single_threaded = 0;' | gcc -x c -c -fPIC -o "$1/newer_glibc.o" -
  ar rcD "$1/usr/$archives/libnewer_glibc.a" "$1/newer_glibc.o"
}

add_licenses() {
  local package
  mkdir "$1/licenses"
  for package in "${static_packages[@]}"; do cp "/usr/share/doc/$package/copyright" "$1/licenses/${package%-dev}.txt"; done
  cp "$(realpath "/usr/share/doc/libstdc++-$(g++ -dumpversion)-dev/copyright")" "$1/licenses/libstdc++.txt"
}

# Debian has no static one. As builds without root make it.
add_libzip() {
  local work=$1/build-libzip path sum file
  read -r _ path sum <<<"$(grep '^LIBZIP ' <<<"$library_sources")"
  file=$(fetch_source "$path" "$sum")
  mkdir "$work"
  tar -xf "$file" -C "$work" --strip-components 1
  (cd "$work" && libraries_prefix=$work/installed CC=gcc CXX=g++ make_library LIBZIP) >"$1/log" 2>&1 || { tail -20 "$1/log" >&2; fail "libzip could not be built"; }
  cp "$work/installed/lib/libzip.a" "$1/usr/$archives/"
  cp "$work/LICENSE" "$1/licenses/libzip.txt"
  rm -rf "$work"
}

# make_sysroot: sets `sysroot`; the folder is kept until this file, the compiler or a package that it is made of changes.
make_sysroot() {
  local version
  version=$({ cat "$root/scripts/old_glibc.sh" "$root/scripts/libraries.sh"; dpkg-query -W "${static_packages[@]}" g++; } | sha256sum)
  sysroot=$cache/glibc-$glibc-${version:0:8}
  [ ! -d "$sysroot" ] || return 0
  say "preparing glibc $glibc (once, in $sysroot)"
  rm -rf "$cache"/glibc-$glibc-*
  rm -rf "$sysroot.part" && mkdir -p "$sysroot.part"
  unpack_old_packages "$sysroot.part"
  add_libstdcxx "$sysroot.part"
  add_licenses "$sysroot.part"
  add_libzip "$sysroot.part"
  mv "$sysroot.part" "$sysroot"
}

# link_old BUILD_DIR TARGET OUT LIBRARY...: links a program of a build once more, of the same objects and archives.
link_old() {
  local build_dir=$1 target=$2 out=$3 objects
  shift 3
  objects=$(ninja -C "$build_dir" -t commands -s "$target" | tr ' ' '\n' | grep -E '^[^/-].*\.(o|a)$' | grep -vxF "$target" | sort -u)
  # shellcheck disable=SC2086
  (cd "$build_dir" && g++ --sysroot="$sysroot" -B"$sysroot/usr/$archives" -s -Wl,--gc-sections -o "$out" -Wl,--start-group $objects "$@" -Wl,--end-group \
    "$sysroot/usr/$archives/libnewer_glibc.a" -lpthread -ldl -lrt) || fail "$target cannot be linked with glibc $glibc"
}

# What the program needs besides LibTorch.
static_archives() {
  local name
  for name in hdf5_serial sz aec sqlite3 yaml-cpp z zstd crypto utf8proc; do echo "/usr/$archives/lib$name.a"; done
  echo "$sysroot/usr/$archives/libzip.a"
}
