#!/usr/bin/env python3
"""Trains on several machines under a real Slurm, as every launcher starts the ranks, and takes machines away while they train.

The machines are namespaces of this one: each has its own network, host name, processes, memory for temporary files and
number of its kernel's start; they share the disk, as a cluster's nodes do. Slurm, Open MPI and MPICH are Debian's.

A row of the first two tables, as launchers start the ranks and over slow networks (wire.py), trains a small model and holds if
every weight, moment and link of the hash chain is that of one process. A row of the third disturbs a training without an end. It
holds if all ranks end in time with exit code 75, if they say what the row expects, and if another number of ranks then goes on to
the bits of one process. Exit code 5 if a row does not hold.

    sudo apt-get install slurm-wlm munge openmpi-bin mpich iproute2
    sudo bench/cluster.py build/release/olmo-harness [--python PYTHON_WITH_TORCH] [--requeue]
"""
import argparse
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import rank_faults

NODES = ["node1", "node2", "node3"]
LOGIN = "login"
ADDRESSES = {name: f"10.77.0.{10 + i}" for i, name in enumerate([LOGIN, *NODES])}
STILL = ["delay 0", "jitter 0", "loss 0", "rate 0"]
STEPS = 20
TIMEOUT = 5  # --rank-timeout
LIMIT = 3 * TIMEOUT + 10

SLURM = """
ClusterName=bench
SlurmctldHost={login}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmdTimeout=300
ReturnToService=2
NodeName=node[1-3] NodeAddr=10.77.0.[11-13] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

INSIDE = """
hostname {name}
mount -t tmpfs tmpfs /dev/shm
mount --bind {place}/hosts /etc/hosts
cat /proc/sys/kernel/random/uuid > {place}/boot-{name}
mount --bind {place}/boot-{name} /proc/sys/kernel/random/boot_id
touch {place}/up-{name}
exec sleep infinity
"""


def call(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def until(happens, seconds=60):
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Cluster:
    """Three nodes and a login node with Slurm's controller; they go with the object."""

    def __init__(self, place):
        self.place = place
        self.inits = {}
        self.leads = {}
        self.wire = None
        try:
            self.begin()
        except BaseException:  # sys.exit's, too
            self.end()
            raise

    def begin(self):
        place = self.place
        (place / "state").mkdir()
        self.write_hosts()
        (place / "slurm.conf").write_text(SLURM.format(login=LOGIN, place=place))
        os.environ["SLURM_CONF"] = str(place / "slurm.conf")
        for name in ADDRESSES:
            self.start(name)
        nodes = [f"{name}={self.leads[name]}={address}" for name, address in ADDRESSES.items()]
        self.wire = subprocess.Popen([sys.executable, Path(__file__).with_name("wire.py"), *nodes], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        if self.wire.stdout.readline() != "ready\n":
            sys.exit("cluster.py: no network can be made here: expected /dev/net/tun")
        Path("/run/munge").mkdir(exist_ok=True)
        call("chown", "munge", "/run/munge")
        if subprocess.run(["pgrep", "-x", "munged"], stdout=subprocess.DEVNULL).returncode != 0:
            call("runuser", "-u", "munge", "--", "/usr/sbin/munged")
        call(*self.on(LOGIN), "slurmctld")
        for name in NODES:
            call(*self.on(name), "slurmd", "-N", name)
        if not until(self.is_idle):
            sys.exit("cluster.py: Slurm's nodes did not come up:\n" + (place / "slurmctld.log").read_text()[-2000:])

    def start(self, name):
        (self.place / f"init-{name}").write_text(INSIDE.format(name=name, place=self.place))
        (self.place / f"spool-{name}").mkdir()
        self.inits[name] = subprocess.Popen(
            ["unshare", "--uts", "--net", "--pid", "--mount", "--fork", "--mount-proc", "bash", str(self.place / f"init-{name}")],
            stdin=subprocess.DEVNULL, start_new_session=True)
        if not until((self.place / f"up-{name}").exists):
            sys.exit("cluster.py: namespaces cannot be made here: expected root")
        pid = self.inits[name].pid
        self.leads[name] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]

    def write_hosts(self, own=None, others=True):
        """`own`: the address of each node's own name; `others`: the nodes know each other's names."""
        text = "127.0.0.1 localhost\n" + f"{ADDRESSES[LOGIN]} {LOGIN}\n"
        rows = {name: f"{ADDRESSES[name]} {name}\n" for name in NODES} if others else {}
        (self.place / "hosts").write_text(text + "".join(rows.values()))
        for name in self.leads:
            mine = {**rows, name: f"{own} {name}\n"} if own and name in NODES else rows
            (self.place / f"hosts-{name}").write_text(text + "".join(mine.values()))
            call("nsenter", "-t", self.leads[name], "-m", "mount", "--bind", self.place / f"hosts-{name}", "/etc/hosts")

    def on(self, name):
        return ["nsenter", "-t", self.leads[name], "-n", "-u", "-m", "-p", "--"]

    def output(self, *words):
        return subprocess.run([*self.on(LOGIN), *words], capture_output=True, text=True).stdout.strip()

    def is_idle(self):
        return self.output("sinfo", "-h", "-t", "idle", "-o", "%D") == str(len(NODES))

    def tell_wire(self, *lines):
        """See wire.py."""
        self.wire.stdin.write("".join(f"{line}\n" for line in lines))
        self.wire.stdin.flush()

    def ranks(self, names):
        """The processes of the program on these nodes."""
        spaces = {os.readlink(f"/proc/{self.leads[name]}/ns/uts") for name in names}
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (each / "comm").read_text() == "olmo-harness\n" and os.readlink(each / "ns/uts") in spaces:
                    found.append(int(each.name))
        return found

    def end(self):
        for process in self.inits.values():
            os.killpg(process.pid, signal.SIGKILL)
        for lead in self.leads.values():
            with contextlib.suppress(OSError):
                os.kill(int(lead), signal.SIGKILL)
        if self.wire:
            self.wire.kill()


class Bench:
    def __init__(self, arguments, place):
        self.arguments, self.place, self.held, self.rows = arguments, place, 0, 0
        rank_faults.write_tokens(place / "tokens.npy")
        self.cluster = Cluster(place)
        whole = subprocess.run(self.train("whole", f"max_duration={STEPS}", "threads=1"), capture_output=True, text=True)
        if whole.returncode != 0:
            sys.exit(whole.stderr)

    def train(self, name, *more):
        # Eight micro-batches, which neither five nor six ranks share evenly.
        return [self.arguments.binary, "train", str(Path(__file__).parent.parent / "configs/train/tiny.json"),
                f"data.paths=[{self.place / 'tokens.npy'}]", "save_interval=10", "hash_interval=10", "global_train_batch_size=32",
                "device_train_microbatch_size=4", "--join-timeout", "40", "--rank-timeout", str(TIMEOUT),
                "--run-dir", str(self.place / name), *more]

    def tell(self, cells, holds, text):
        self.rows += 1
        self.held += holds
        print("| " + " | ".join([*cells, "holds" if holds else "FAILS"]) + " |", flush=True)
        if not holds:
            print(text[-3000:], file=sys.stderr)

    def is_equal(self, name, whole="whole", step=STEPS):
        """Whether the run has the bits of one process's run `whole` at a step."""
        try:
            return rank_faults.is_equal(rank_faults.proof(self.place / name, step), rank_faults.proof(self.place / whole, step))
        except sqlite3.Error:
            return False

    def placed(self, name):
        """"node1: 0 1, node2: 2": ranks by machine, as the record has them."""
        hosts = {}
        with contextlib.suppress(sqlite3.Error), sqlite3.connect(self.place / name / "run.db") as connection:
            for rank, host in connection.execute("SELECT rank, host FROM ranks WHERE attempt = 1 ORDER BY rank"):
                hosts.setdefault(host, []).append(str(rank))
        return ", ".join(f"{host}: {' '.join(ranks)}" for host, ranks in hosts.items())

    def launch(self, what, words, *more, variables=()):
        """A row of the first two tables."""
        name = f"launch-{self.rows}"
        command = [*self.cluster.on(LOGIN), "env", *variables, *words, *self.train(name, f"max_duration={STEPS}", *more)]
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        holds = done.returncode == 0 and self.is_equal(name)
        self.tell([what, self.placed(name), str(done.returncode), f"{time.monotonic() - begin:.1f} s"], holds, done.stdout + done.stderr)

    def launch_all(self):
        print("| started by | ranks | exit | took | |\n|---|---|---|---|---|")
        many = ["-N3", "--ntasks-per-node=2"]
        self.launch("`srun`, two tasks a node", ["srun", *many])
        self.launch("`srun --mpi=pmi2`", ["srun", *many, "--mpi=pmi2"])
        self.launch("`srun --cpu-bind=none`", ["srun", *many, "--cpu-bind=none"])
        self.launch("`srun --distribution=cyclic`", ["srun", *many, "--distribution=cyclic"])
        self.launch("`srun`, five tasks", ["srun", "-N3", "-n5"])
        (self.place / "hostfile").write_text("node3\nnode1\nnode2\nnode2\n")
        self.launch("`srun --distribution=arbitrary`, `MASTER_ADDR=node3`", ["srun", "-n4", "--distribution=arbitrary"],
                    variables=[f"SLURM_HOSTFILE={self.place / 'hostfile'}", "MASTER_ADDR=node3"])
        root = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
        alone = ["salloc", "-Q", "-N3", "-n6"]
        self.launch("Open MPI's `mpirun`", [*alone, "mpirun.openmpi", "--oversubscribe", "-n", "5"], "--rendezvous", "node1:29500",
                    variables=root)
        self.launch("MPICH's `mpiexec`, meeting in a folder", [*alone, "mpiexec.hydra", "-n", "5"],
                    "--rendezvous", f"file:{self.place / 'meet'}")
        if self.arguments.python:
            self.launch("`torchrun` on each node", [
                "srun", "-N3", "--ntasks-per-node=1", self.arguments.python, "-m", "torch.distributed.run", "--nnodes", "3",
                "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "node1:29501", "--no-python"])
        self.cluster.write_hosts(own="127.0.1.1")
        self.launch("`srun`; each node's own name leads to 127.0.1.1", ["srun", *many])
        self.launch("the same, meeting in a folder", ["srun", *many], "--rendezvous", f"file:{self.place / 'meet-2'}")
        self.cluster.write_hosts(others=False)
        self.launch("`srun`; no node's name has an address; a folder, `GLOO_SOCKET_IFNAME=eth0`", ["srun", *many],
                    "--rendezvous", f"file:{self.place / 'meet-3'}", variables=["GLOO_SOCKET_IFNAME=eth0"])
        self.cluster.write_hosts()

    def launch_over(self, what, *lines):
        """A row of the second table, over a network that wire.py's lines describe."""
        self.cluster.tell_wire(*lines)
        self.launch(what, ["srun", "-N3", "--ntasks-per-node=2"])
        self.cluster.tell_wire(*STILL)

    def launch_over_all(self):
        print("\n| network, each way | ranks | exit | took | |\n|---|---|---|---|---|")
        self.launch_over("as fast as can be")
        self.launch_over("0.5 ms", "delay 0.5")
        self.launch_over("5 ms, and up to 5 more", "delay 5", "jitter 5")
        self.launch_over("20 ms", "delay 20")
        self.launch_over("20 ms, 1 % of the packets lost", "delay 20", "loss 1")
        self.launch_over("5 % of the packets lost", "loss 5")
        self.launch_over("100 Mbit/s into each node", "rate 100")
        threading.Timer(15, self.cluster.tell_wire, [f"hold {TIMEOUT - 1}"]).start()
        self.launch_over(f"5 ms; after 15 s nothing moves for {TIMEOUT - 1} s, less than `--rank-timeout`", "delay 5")

    def disturb(self, what, says, fault, heal=lambda: None):
        """A row of the third table. `heal` undoes the fault once all ranks have ended."""
        name = f"fault-{self.rows}"
        log = self.place / f"{name}.log"
        with open(log, "w") as output:
            training = subprocess.Popen([*self.cluster.on(LOGIN), "srun", "-N3", "--ntasks-per-node=2",
                                         *self.train(name, "max_duration=1000000000", "save_num_checkpoints_to_keep=2")],
                                        stdout=output, stderr=output)
            until(lambda: rank_faults.last_step(self.place / name) >= 15)
            fault()
            begin = time.monotonic()
            gone = until(lambda: not self.cluster.ranks(NODES), LIMIT + 20)
            seconds = time.monotonic() - begin
            heal()
            try:
                training.wait(120)
            except subprocess.TimeoutExpired:
                training.kill()
        text = log.read_text()
        codes = sorted(set(re.findall(r"Exited with exit code (\d+)", text)))
        until(self.cluster.is_idle)
        resumed, same = self.resume(name)
        said = re.search(says + ".*", text)
        holds = gone and seconds <= LIMIT and codes == ["75"] and said is not None and same
        self.tell([what, f"{seconds:.1f} s", " ".join(codes), said[0][:140] if said else "nothing", "equal" if same else "OTHER"], holds,
                  text + resumed)

    def resume(self, name):
        """Goes on with five ranks for some steps. Returns what was said, and whether the bits are those of one process."""
        end = rank_faults.last_step(self.place / name) + 10
        end -= end % 10
        done = subprocess.run([*self.cluster.on(LOGIN), "srun", "-N3", "-n5", *self.train(
            name, "max_duration=1000000000", "save_num_checkpoints_to_keep=2", "--resume", "latest", f"stop_at={end}")],
                              capture_output=True, text=True, timeout=300)
        subprocess.run(self.train(f"{name}-whole", "max_duration=1000000000", f"stop_at={end}", "save_num_checkpoints_to_keep=2"),
                       capture_output=True)
        return done.stderr, self.is_equal(name, f"{name}-whole", end)

    def disturb_all(self):
        print("\n| fault | all ended after | exit | said | resumed | |\n|---|---|---|---|---|---|")

        def kill(node):
            for pid in self.cluster.ranks([node]):
                os.kill(pid, signal.SIGKILL)

        self.disturb("both ranks of node3 killed", r"rank [45] \(process \d+ on node3\)", lambda: kill("node3"))
        self.disturb("both ranks of node1 killed, where the ranks meet", "rank 0, which hosted the place", lambda: kill("node1"))
        for node, says in (("node2", r"rank [23] \(process \d+ on node2\) has given no sign of life"), ("node1", "rank 0, which hosted")):
            self.disturb(f"the network of {node} down", says, lambda node=node: self.cluster.tell_wire(f"cut {node}"),
                         lambda node=node: self.cluster.tell_wire(f"join {node}"))
        one_way = r"rank \d \(process \d+ on node\d\) has given no sign of life|rank 0, which hosted"
        for word, what in (("mute", "what node2 sends is lost"), ("deaf", "what is sent to node2 is lost")):
            self.disturb(what, one_way, lambda word=word: self.cluster.tell_wire(f"{word} node2"),
                         lambda: self.cluster.tell_wire("join node2"))
        self.disturb(f"the network stands still for {3 * TIMEOUT} s", one_way,
                     lambda: self.cluster.tell_wire(f"hold {3 * TIMEOUT}"))
        self.cluster.tell_wire("delay 20", "loss 1")
        self.disturb("20 ms, 1 % of the packets lost; both ranks of node3 killed", r"rank [45] \(process \d+ on node3\)",
                     lambda: kill("node3"))
        self.cluster.tell_wire(*STILL)
        self.disturb("`scancel`", "stopped at step", lambda: self.cluster.output("scancel", "--full", "--user=root"))

    def requeue(self):
        """A job that asks for a signal before its time is over, and queues itself again."""
        script, log = self.place / "job.sh", self.place / "job.log"
        steps = STEPS * 10
        train = self.train("queued", f"max_duration={steps}", "--resume", "latest")
        script.write_text("#!/bin/bash\n#SBATCH --requeue --signal=USR1@50 --time=00:01:00 -N3 --ntasks-per-node=2\n"
                          f"#SBATCH --output={log} --open-mode=append\n" +
                          "srun " + " ".join(f"'{word}'" for word in train) +
                          "\ncode=$?\n[ $code = 75 ] && scontrol requeue $SLURM_JOB_ID\nexit $code\n")
        job = self.cluster.output("sbatch", "--parsable", str(script))
        finished = "SELECT count(*) FROM attempts WHERE outcome = 'finished'"
        until(lambda: rank_faults.first_value(self.place / "queued", finished), 1200)

        def state():
            return re.search(r"JobState=(\w+)", self.cluster.output("scontrol", "show", "job", job))[1]

        until(lambda: state() not in ("RUNNING", "COMPLETING"))
        subprocess.run(self.train("queued-whole", f"max_duration={steps}"), capture_output=True)
        attempts = rank_faults.first_value(self.place / "queued", "SELECT count(*) FROM attempts")
        print("\n| job | attempts | ended as | |\n|---|---|---|---|")
        self.tell([f"{steps} steps, a minute each time", str(attempts), state()],
                  state() == "COMPLETED" and self.is_equal("queued", "queued-whole", steps), log.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--python", help="a Python that has torch, for torchrun")
    parser.add_argument("--only", choices=["launchers", "networks", "faults"], help="this table alone")
    parser.add_argument("--requeue", action="store_true", help="a job that queues itself again, too (ten minutes)")
    arguments = parser.parse_args()
    arguments.binary = str(Path(arguments.binary).resolve())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which takes the cluster away
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, Path(folder))
        try:
            if arguments.only in (None, "launchers"):
                bench.launch_all()
            if arguments.only in (None, "networks"):
                bench.launch_over_all()
            if arguments.only in (None, "faults"):
                bench.disturb_all()
            if arguments.requeue:
                bench.requeue()
        finally:
            bench.cluster.end()
    print(f"\n{bench.held} of {bench.rows} hold")
    return 0 if bench.held == bench.rows else 5


if __name__ == "__main__":
    sys.exit(main())
