"""Writes the wheel and the tarball from a staged tree, and prints their paths: package.py STAGE OUT --glibc VERSION --date SECONDS.

Both are the same tree. The same tree gives the same bytes: files are sorted, and all have the given date. What the programs in the tree
ask of a machine is read from their ELF files; if that is more than the given glibc has, there is no package.
"""
import argparse
import base64
import gzip
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile

# A machine with this glibc has libstdc++ with these versions of its symbols (PEP 600's manylinux_2_31, as auditwheel holds it).
OF_GLIBC = {"2.31": {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12", "GCC": "10.0.0"}}
# What every Linux has, and what LibTorch brings.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1", "libstdc++.so.6"}
LIBTORCH = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1"}
SUMMARY = "Trains, evaluates, compares and audits OLMo models deterministically"


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def read_elf(path):
    """What a program needs: libraries, the highest version of each family of symbols, and where it would look for libraries."""
    said = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", path], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", said)
    wanted = {}
    asked = said[said.find("Version needs section"):] if "Version needs section" in said else ""
    for family, version in re.findall(r"Name: ([A-Z]+)_([0-9.]+)\b", asked):
        wanted[family] = max(wanted.get(family, "0"), version, key=numbers)
    return needed, wanted, paths


def elf_problems(path, name, glibc):
    needed, wanted, paths = read_elf(path)
    print(f"{name}: " + ", ".join(f"{family}_{version}" for family, version in sorted(wanted.items())), file=sys.stderr)
    for family, version in wanted.items():
        highest = OF_GLIBC[glibc].get(family)
        if highest is not None and numbers(version) > numbers(highest):
            yield f"{name} needs {family}_{version}, but a machine with glibc {glibc} has {highest}"
    known = SYSTEM | (LIBTORCH if name.startswith("lib/") else set())
    if needed - known:
        yield f"{name} needs {', '.join(sorted(needed - known))}, which not every Linux has"
    if paths:
        yield f"{name} looks for libraries in {', '.join(paths)}"


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def staged_files(stage):
    return sorted((path for path in stage.rglob("*") if path.is_file()), key=lambda path: path.relative_to(stage).as_posix())


def mode_of(name):
    return 0o755 if name.startswith("bin/") or name.startswith("lib/") else 0o644


def write_tarball(stage, path, folder, date):
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=date) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in staged_files(stage):
            name = file.relative_to(stage).as_posix()
            content = file.read_bytes()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode, member.mtime = len(content), mode_of(name), date
            tar.addfile(member, io.BytesIO(content))


def wheel_files(stage, version, tag):
    """Name in the wheel, content and mode. pip puts `scripts` on the path and `data` below the environment's folder."""
    data, info = f"olmo_harness-{version}.data", f"olmo_harness-{version}.dist-info"
    for file in staged_files(stage):
        name = file.relative_to(stage).as_posix()
        place = f"{data}/scripts/{name[4:]}" if name.startswith("bin/") else f"{data}/data/{name}"
        yield place, file.read_bytes(), mode_of(name)
    readme = "olmo-harness is one program. Its documents are in `share/doc/olmo-harness` of the environment.\n"
    yield (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: olmo-harness\nVersion: {version}\nSummary: {SUMMARY}\n"
           f"Description-Content-Type: text/markdown\n\n{readme}".encode(), 0o644)
    yield (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: olmo-harness\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)


def write_wheel(stage, path, version, tag, date):
    records = []
    record = f"olmo_harness-{version}.dist-info/RECORD"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, time.gmtime(date)[:6])
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16, 3
            wheel.writestr(entry, content)
        for name, content, mode in wheel_files(stage, version, tag):
            add(name, content, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}\n")
        add(record, ("".join(records) + f"{record},,\n").encode(), 0o644)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--glibc", required=True, choices=OF_GLIBC)
    parser.add_argument("--date", required=True, type=int)
    options = parser.parse_args()
    root = pathlib.Path(__file__).parent.parent
    version = re.search(r"project\(olmo-harness VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]
    programs = [file for file in staged_files(options.stage) if is_elf(file)]
    problems = [problem for file in programs for problem in elf_problems(file, file.relative_to(options.stage).as_posix(), options.glibc)]
    if len(programs) != 2:
        problems.append(f"two programs were expected in {options.stage}, there are {len(programs)}")
    if problems:
        sys.exit("package.py: " + "; ".join(problems))
    tag = f"py3-none-manylinux_{options.glibc.replace('.', '_')}_x86_64"
    wheel = options.out / f"olmo_harness-{version}-{tag}.whl"
    tarball = options.out / f"olmo-harness-{version}-linux-x86_64.tar.gz"
    write_wheel(options.stage, wheel, version, tag, options.date)
    write_tarball(options.stage, tarball, f"olmo-harness-{version}", options.date)
    print(wheel)
    print(tarball)


if __name__ == "__main__":
    main()
