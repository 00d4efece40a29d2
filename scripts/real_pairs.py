#!/usr/bin/env python3
"""Makes reports/real_pairs.md: the same trainings on CUDA and on ROCm, compared by `report parity`.

usage: scripts/real_pairs.py HARNESS TORCHTITAN > reports/real_pairs.md

TORCHTITAN is a clone of github.com/pytorch/torchtitan, with its history. Its tests keep the losses of deterministic trainings of debug models,
for both vendors (tests/assets/losses/MODEL_cuda.txt and MODEL_rocm*.txt). Every state of two such files in the history of its branch is a pair.
The logs themselves are not kept here.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

FOLDER = "tests/assets/losses"
BOTH = "both of this commit"
SAME_START = 1e-5
MODELS = {"llama3": ["llama3_rocm_mi350x.txt", "llama3_rocm.txt"], "qwen3_moe": ["qwen3_moe_rocm_mi350x.txt"]}


def git(clone, *words):
    return subprocess.run(["git", "-C", clone, *words], check=True, capture_output=True, text=True).stdout


def pairs(clone):
    """Each pair of files as (model, files, commit, date, which of them this commit changed), oldest first."""
    found = {}
    last = {}
    log = git(clone, "log", "--reverse", "--date=short", "--pretty=%H %ad", "--", FOLDER)
    for commit, date in (line.split() for line in log.splitlines()):
        changed = set(git(clone, "diff-tree", "--no-commit-id", "--name-only", "-r", "-m", "--root", commit, "--", FOLDER).split())
        changed = {pathlib.PurePath(path).name for path in changed}
        tree = {line.split("\t")[1].rsplit("/", 1)[1]: line.split()[2] for line in git(clone, "ls-tree", "-r", commit, "--", FOLDER).splitlines()}
        last.update({name: (commit, date) for name in changed})
        for model, names in MODELS.items():
            cuda = f"{model}_cuda.txt"
            rocm = next((name for name in names if name in tree), None)
            if cuda not in tree or rocm is None or not changed & {cuda, rocm}:
                continue
            key = (model, tree[cuda], tree[rocm])
            known = BOTH
            if not {cuda, rocm} <= changed:
                old = rocm if cuda in changed else cuda
                known = f"{'ROCm' if old == rocm else 'CUDA'} is of {last[old][1]} ({last[old][0][:9]})"
            found.setdefault(key, (commit[:9], date, known))
    return [(model, cuda, rocm, *rest) for (model, cuda, rocm), rest in found.items()]


def compare(harness, clone, folder, cuda, rocm):
    for side, blob in (("cuda", cuda), ("rocm", rocm)):
        (folder / f"{side}.txt").write_text(git(clone, "cat-file", "blob", blob))
        (folder / f"{side}.db").unlink(missing_ok=True)
        subprocess.run([harness, "runs", "import", folder / f"{side}.txt", "--db", folder / f"{side}.db", "--name", side],
                       check=True, capture_output=True)
    out = subprocess.run([harness, "report", "parity", folder / "cuda.db", folder / "rocm.db", "--kind", "trajectory", "--json"],
                         capture_output=True, text=True)
    if not out.stdout:
        sys.exit(out.stderr)
    return json.loads(out.stdout)


def short(value):
    return "–" if value is None else f"{value:.2g}".replace("-", "−")


def parting(report):
    found = (report.get("trajectory") or {}).get("partings") or []
    return "; ".join(f"{part['cause']} at step {part['position']}" for part in found) or "–"


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness")
    parser.add_argument("torchtitan")
    harness, clone = (str(pathlib.Path(word).resolve()) for word in vars(parser.parse_args()).values())
    rows, verdicts = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for model, cuda, rocm, commit, date, known in pairs(clone):
            report = compare(harness, clone, pathlib.Path(folder), cuda, rocm)
            t = report["trajectory"]
            if t is None:
                t = {"points": 0, "first_loss_relative": None, "largest": None, "largest_relative": 0, "last_stretch": {"mean": None}}
            rows.append(f"| {commit} | {date} | {model} | {known} | {t['points']} | {short(t['first_loss_relative'])} | {short(t['largest'])} | {short(t['largest_relative'])} | "
                        f"{short(t['last_stretch']['mean'])} | {report['verdict']} | {parting(report)} |")
            kind = 0 if known == BOTH else 1
            near = t["first_loss_relative"] is not None and t["first_loss_relative"] <= SAME_START
            verdicts.setdefault((kind, near), {}).setdefault(report["verdict"], []).append(t["largest_relative"])
    version = subprocess.run([harness, "--version"], capture_output=True, text=True).stdout.split()[1]
    head = git(clone, "log", "-1", "--pretty=%h of %ad", "--date=short").strip()
    print("# The same trainings on CUDA and on ROCm\n")
    print(f"Losses of deterministic trainings of debug models, as torchtitan's own tests keep them ([pytorch/torchtitan](https://github.com/"
          f"pytorch/torchtitan), `{FOLDER}`, history up to {head}): the same config, seed and data on both vendors. Where one commit wrote both "
          "files, hardware and its libraries differ. Where one file is older, torchtitan's code may differ as well. The loss of step 1 tells: it "
          "is of the same weights and the same batch, before any rounding has grown, so that a difference above "
          f"{SAME_START:g} (relative) is one of code or data. `scripts/real_pairs.py` makes this table again (olmo-harness {version}, "
          "`report parity --kind trajectory`). The logs are not kept here.\n")
    for (kind, near), counts in sorted(verdicts.items(), key=lambda item: (item[0][0], not item[0][1])):
        largest = max(value for values in counts.values() for value in values)
        print(f"- {'files of two commits' if kind else 'both files of one commit'}, step 1 {'within' if near else 'above'} {SAME_START:g}: "
              + ", ".join(f"{len(values)} {verdict}" for verdict, values in sorted(counts.items())) + f"; largest relative difference {short(largest)}")
    print("\nDifferences are ROCm minus CUDA, in nats; that of step 1 is relative to the loss.\n")
    print("| commit | date | model | what is known | steps | step 1 | largest | relative | mean of the last stretch | verdict | where they part |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|---|---|")
    print("\n".join(rows))


main()
