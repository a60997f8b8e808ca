# SPDX-License-Identifier: Apache-2.0
"""The trainings that chaos.py disturbs: what their tasks are, how they are started, and what the end must
be like."""
import glob
import os
import re
import subprocess
import time

from tenon_process import BINARY, SOURCE, TENON, Process, free_addresses, run

TF_PYTHON = os.path.expanduser("~/.cache/tenon/tf-2.15.1/bin/python")
CLIENT = os.path.join(SOURCE, "tests", "system", "chaos_monitored.py")


class Speaking(Process):
    """A process whose last words have a time."""

    def __init__(self, *command):
        self.spoke = time.monotonic()
        super().__init__(*command)

    def _read(self):
        for line in self.process.stdout:
            self.spoke = time.monotonic()
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def lives(self):
        return self.process.poll() is None


class Kind:
    """A training: its program and flags, how many workers, its last step, whether the same commands
    recover when a parameter server dies."""

    def __init__(self, flags, workers=2, last_step=None, recovers=True, program=None, exact=False):
        self.flags, self.workers, self.last_step = flags, workers, last_step
        self.recovers, self.exact = recovers, exact
        self.program = program or [TENON, "train", "mnist", "--save_seconds", "0.5"]

    def tasks(self):
        return ["ps 0"] + [f"worker {i}" for i in range(self.workers)]


def kinds(scale):
    """By name; `scale` multiplies their lengths."""
    steps = lambda n: max(int(n * scale), 200)
    return {
        "asynchronous": Kind(["--max_steps", steps(8000)], last_step=steps(8000)),
        "in step": Kind(["--sync", "--max_steps", steps(2500)], last_step=steps(2500)),
        "backup": Kind(["--sync", "--backup", 1, "--max_steps", steps(2000)], workers=3,
                       last_step=steps(2000)),
        "deterministic": Kind(["--sync", "--shards", 4, "--max_steps", steps(1500)],
                              last_step=steps(1500), exact=True),
        "supervisor": Kind(["--training_epochs", steps(1200)], recovers=False,
                           program=[os.path.join(BINARY, "example_mnist_replica"), "--learning_rate",
                                    "0.1"]),
        "monitored": Kind([], last_step=steps(1500)),
    }


class Job:
    """1 parameter server and its workers; a folder of checkpoints; on a network when there is one."""

    def __init__(self, name, kind, data, folder, network=None):
        self.name, self.kind, self.data, self.folder, self.network = name, kind, data, folder, network
        names = kind.tasks()
        if network is None:
            self.addresses = dict(zip(names, free_addresses(len(names))))
        else:
            self.addresses = {t: network.addresses[t] + ":2222" for t in names}
        self.removed = folder + ".removed"  # where the fault of that name moves the folder
        self.all = []  # (task, process), of all that were started
        self.tasks = {}

    def hosts(self, job):
        return ",".join(a for t, a in self.addresses.items() if t.startswith(job))

    def cluster(self):
        return ["--ps_hosts", self.hosts("ps"), "--worker_hosts", self.hosts("worker")] + (
            [] if self.network is None else ["--insecure", *self.files()])

    def files(self):
        """Beyond loopback graphs reach the files that they are told to."""
        return ["--root", os.path.dirname(self.folder)]

    def command(self, task):
        job, index = task.split()
        return [*self.kind.program, *self.kind.flags, "--data", self.data, "--checkpoint_dir",
                self.folder, *self.cluster(), "--job_name", job, "--task_index", index]

    def start(self, task):
        command = [str(c) for c in self.command(task)]
        if self.network is not None:
            command = self.network.inside(task, command)
        process = self.tasks[task] = Speaking(*command)
        self.all.append((task, process))
        return process

    def start_all(self):
        for task in self.kind.tasks():
            self.start(task)

    def is_under_way(self):
        return self.saved_step() >= 0

    def saved_step(self, folder=None):
        """Of the newest checkpoint that the state file names; -1 without one."""
        try:
            with open(os.path.join(folder or self.folder, "checkpoint"), encoding="utf-8") as state:
                found = re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read(), re.M)
                return int(found.group(1)) if found else -1
        except OSError:
            return -1

    def latest(self):
        return os.path.join(self.folder, f"model.ckpt-{self.saved_step()}")

    def ends(self):
        """The tasks whose end is awaited."""
        return self.kind.tasks()

    def text(self):
        return "\n".join(f"--- {task}, process {p.process.pid}, exit code {p.process.poll()}\n{p.text()}"
                         for task, p in self.all)

    def told_step(self):
        """The last one that the chief has printed; -1 without one."""
        steps = [int(n) for task, p in self.all if task == "worker 0"
                 for n in re.findall(r"^Step: (\d+)", p.text(), re.M)]
        return max(steps, default=-1)

    def was_removed_after_the_end(self):
        """Whether the folder was removed only when the last checkpoint had been written."""
        last = self.told_step() if self.kind.last_step is None else self.kind.last_step
        return self.saved_step() < 0 and self.saved_step(self.removed) >= last >= 0

    def check_end(self, reference):
        """What is wrong with what the job has left; `reference` is the checkpoint of an undisturbed run
        of an exact kind."""
        if self.was_removed_after_the_end():
            return
        if self.kind.last_step is not None and self.saved_step() < self.kind.last_step:
            yield f"the last checkpoint is of step {self.saved_step()}, not {self.kind.last_step}"
        if self.saved_step() < 0:
            yield "there is no checkpoint"
            return
        whole = run(TENON, "inspect", self.latest(), "--compare", self.latest())
        if whole.returncode != 0:
            yield f"the last checkpoint cannot be read: {whole.stdout}{whole.stderr}"
        if self.kind.exact and reference:
            same = run(TENON, "inspect", self.latest(), "--compare", reference)
            if same.returncode != 0:
                yield f"other bits than undisturbed: {same.stdout}{same.stderr}"
        for path in glob.glob(os.path.join(self.folder, "*temp*")):
            yield f"a file is left: {path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, process in self.all:
            process.__exit__()


class MonitoredJob(Job):
    """TensorFlow's clients, each at the server of its worker: servers serve, clients end."""

    def command(self, task):
        job, index = task.split()
        if job == "client":
            cluster = f"ps={self.hosts('ps')};worker={self.hosts('worker')}"
            return [TF_PYTHON, CLIENT, "grpc://" + self.addresses[f"worker {index}"], cluster, index,
                    self.folder, self.kind.last_step]
        return [TENON, "serve", *self.cluster(), "--job_name", job, "--task_index", index]

    def start(self, task):
        if self.network is None or not task.startswith("client"):
            return super().start(task)
        # On the host of its worker.
        command = self.network.inside("worker " + task.split()[1],
                                      [str(c) for c in self.command(task)])
        process = self.tasks[task] = Speaking(*command)
        self.all.append((task, process))
        return process

    def start_all(self):
        super().start_all()
        for i in range(self.kind.workers):
            self.start(f"client {i}")

    def ends(self):
        return [f"client {i}" for i in range(self.kind.workers)]

    def stop_servers(self):
        """Their exit codes."""
        codes = {}
        for task in self.kind.tasks():
            process = self.tasks[task]
            if process.lives():
                process.process.terminate()
            try:
                codes[task] = process.finish(60)
            except subprocess.TimeoutExpired:
                codes[task] = None
        return codes


def make(name, kind, data, folder, network):
    return (MonitoredJob if name == "monitored" else Job)(name, kind, data, folder, network)
