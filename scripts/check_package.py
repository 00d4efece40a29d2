"""Installs the wheel into a fresh environment of Python, unpacks the tarball, and runs what is there: check_package.py WHEEL TARBALL.

LibTorch is taken from the cache, as olmo-harness-libtorch lays it. A small training must have the bits of tests/data/signature.json.
"""
import array
import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENSES = ["libhdf5", "libaec", "libsqlite3", "nlohmann-json3", "libcli11", "libyaml-cpp", "zlib1g", "libzstd", "libssl", "libutf8proc", "libboost1.74",
            "libzip", "libstdc++"]


def expect(condition, what):
    if not condition:
        sys.exit(f"check_package.py: {what}")


def run(words, code=0, **more):
    environment = {name: value for name, value in os.environ.items() if name not in ("OLMO_LIBTORCH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")}
    environment.update(more.pop("variables", {}))
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment, **more)
    expect(done.returncode == code, f"{' '.join(str(word) for word in words)} ended with {done.returncode} instead of {code}: {done.stdout}{done.stderr}")
    return done


def signature_of(database):
    """As tests/cli/determinism_test.cpp makes it."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        chain = db.execute("SELECT chain_hash FROM surviving_steps ORDER BY step DESC LIMIT 1").fetchone()[0]
        rows = db.execute("SELECT DISTINCT part, name, sha256 FROM state_hashes WHERE step = (SELECT max(step) FROM steps) ORDER BY part, name")
        state = hashlib.sha256("".join("|".join(row) + "\n" for row in rows).encode()).hexdigest()
    return hashlib.sha256(f"{chain}\n{state}\n".encode()).hexdigest()


def check_tree(prefix, work):
    """What an installation must have and do, wherever its folder is."""
    harness = prefix / "bin/olmo-harness"
    for name in ["olmo-harness/configs/train/quickstart.json", "olmo-harness/configs/schema.json", "olmo-harness/evals/tasks", "olmo-harness/evals/suites",
                 "man/man1/olmo-harness.1", "bash-completion/completions/olmo-harness", "zsh/site-functions/_olmo-harness",
                 "fish/vendor_completions.d/olmo-harness.fish", "doc/olmo-harness/README.md"]:
        expect((prefix / "share" / name).exists(), f"{prefix / 'share' / name} is missing")
    for name in LICENSES:
        expect((prefix / f"share/doc/olmo-harness/licenses/{name}.txt").stat().st_size > 0, f"the licence of {name} is empty")

    expect(run([harness, "--version"]).stdout.startswith("olmo-harness "), "--version says something else")
    without = {"OLMO_HARNESS_CACHE": str(work / "nothing")}
    refused = run([harness, "doctor"], 2, variables=without).stderr
    expect(refused.count("\n") == 1 and f"`{harness}-libtorch` fetches it" in refused, f"without LibTorch it says {refused}")
    run([harness, "--version"], variables=without)
    facts = json.loads(run([harness, "doctor", "--json"], cwd=work).stdout)
    expect(facts["healthy"], "doctor is not content")
    libtorch = facts["folders"]["libtorch"]
    expect(pathlib.Path(libtorch, "libtorch_cpu.so").exists(), f"doctor says that LibTorch is in {libtorch}")

    words = [(i * 2654435761 % 2**32 >> 16) % 499 for i in range(64 * 32)]  # token_ids() of tests/cli/training.h
    (work / "tokens.npy").write_bytes(array.array("H", words).tobytes())
    train = [harness, "train", prefix / "share/olmo-harness/configs/train/tiny.json", f"data.paths=[{work / 'tokens.npy'}]", "threads=1", "--run-dir"]
    run([*train, work / "run"], cwd=work)
    expected = json.loads((ROOT / "tests/data/signature.json").read_text())["portable"]
    expect(signature_of(work / "run/run.db") == expected, "a small training has other bits than tests/data/signature.json")
    run([harness, "report", "run", work / "run", "--out", work / "run.html"], variables=without)
    run([*train, work / "ranks", "--nproc", "2"], cwd=work)
    expect(signature_of(work / "ranks/run.db") == expected, "a small training on two ranks has other bits than tests/data/signature.json")
    return libtorch


def check_pip(prefix, libtorch, work):
    """Data is fetched by the environment's pip, active or not. It is told that it has no index."""
    variables = {"PATH": "/nonexistent", "PIP_NO_INDEX": "1", "OLMO_HARNESS_CACHE": str(work / "empty"), "OLMO_LIBTORCH": str(pathlib.Path(libtorch).parent)}
    said = run([prefix / "bin/olmo-harness", "data", "fetch"], 1, variables=variables).stderr
    expect("ended with status" in said, f"without an active environment, fetching data says {said}")


def main():
    wheel, tarball = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder).resolve()
        for part in ("wheel", "tarball"):
            (work / part).mkdir()
        venv.create(work / "env", with_pip=True)
        run([work / "env/bin/python3", "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel.resolve()])
        check_pip(work / "env", check_tree(work / "env", work / "wheel"), work)
        run([work / "env/bin/python3", "-m", "pip", "uninstall", "--quiet", "--yes", "--disable-pip-version-check", "olmo-harness"])
        expect(not (work / "env/bin/olmo-harness").exists() and not (work / "env/share/olmo-harness").exists(), "uninstalling leaves files behind")
        with tarfile.open(tarball) as tar:
            tar.extractall(work / "unpacked")
        (prefix,) = (work / "unpacked").iterdir()
        prefix = prefix.rename(work / "moved anywhere")
        check_tree(prefix, work / "tarball")
    print("check_package.py: wheel and tarball are sound", file=sys.stderr)


if __name__ == "__main__":
    main()
