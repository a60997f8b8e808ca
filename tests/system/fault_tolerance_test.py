#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each kind of task of a training with checkpoints is killed in the middle, then started again by the
same command: what the others say and return, and that training goes on from the last checkpoint and
ends. With --table it prints what was seen as the table of docs/fault_tolerance.md."""
import re
import sys
import tempfile
import time

from processes_test import write_mnist
from tenon_process import TENON, Process, free_addresses, main

# What the tasks of one training run: (program and its flags, steps in all, what it says at the end).
TRAININGS = {
    "mnist, asynchronous": ([TENON, "train", "mnist", "--save_seconds", "0.5"], 8000),
    "mnist, in step": ([TENON, "train", "mnist", "--save_seconds", "0.5", "--sync"], 1500),
}
ROWS = []


class Training:
    """1 parameter server and 2 workers."""

    def __init__(self, name, folder, data):
        self.command, self.steps = TRAININGS[name]
        addresses = free_addresses(3)
        self.flags = ["--ps_hosts", addresses[0], "--worker_hosts", ",".join(addresses[1:]),
                      "--data", data, "--checkpoint_dir", folder, "--max_steps", self.steps]
        self.tasks = {}

    def start(self, task):
        job, number = task.split(" ")
        self.tasks[task] = Process(*self.command, *self.flags, "--job_name", job, "--task_index",
                                   number)
        return self.tasks[task]

    def __enter__(self):
        for task in ("ps 0", "worker 0", "worker 1"):
            self.start(task)
        return self

    def __exit__(self, *_):
        for process in self.tasks.values():
            process.__exit__()


def last_step(process):
    """The last step that a progress line, or the restoring, has named."""
    steps = re.findall(r"training +\d+%  (\d+)/", process.text())
    return int(steps[-1]) if steps else 0


def saved_steps(process):
    return [int(step) for step in re.findall(r"saved \S*-(\d+)", process.text())]


def wait_until(what, condition, training, timeout=60):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not {what}:\n" + "\n".join(
            f"--- {task}\n{p.text()}" for task, p in training.tasks.items())
        time.sleep(0.02)


def notable(process, before):
    """The first lines since `before` that say what happened."""
    lines = [line for line in process.lines[before:]
             if not re.match(r"training |saved |test |steps |total |learning |went ", line)]
    return lines[0] if lines else ""


def killed(name, victim):
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
        write_mnist(data)
        with Training(name, folder, data) as training:
            tasks = dict(training.tasks)
            chief = tasks["worker 0"]
            wait_until("a checkpoint in mid-training",
                       lambda: any(step > 0 for step in saved_steps(chief))
                       and last_step(chief) > 0, training)
            survivors = {t: (p, len(p.lines)) for t, p in tasks.items() if t != victim}
            tasks[victim].process.kill()
            tasks[victim].finish()
            begin = time.monotonic()
            saved = saved_steps(chief)[-1]
            time.sleep(0.5)
            again = training.start(victim)
            wait_until("the end", lambda: all(p.process.poll() is not None
                                              for p in training.tasks.values()), training, 150)
            for task, (process, before) in survivors.items():
                ROWS.append((name, victim, task, notable(process, before),
                             process.finish(), time.monotonic() - begin))
            for task, process in training.tasks.items():
                assert process.finish() == 0, f"{name}: {task} after {victim} was killed:\n" + \
                    "\n".join(f"--- {t}\n{p.text()}" for t, p in training.tasks.items())
            if victim == "ps 0":
                text = training.tasks["worker 0"].text()
                restored = [int(s) for s in re.findall(r"restored \S*-(\d+)", text)]
                assert restored and restored[-1] >= saved, text
            elif victim == "worker 0":
                went_on = re.search(r"went on from step (\d+)", again.text())
                assert went_on and int(went_on.group(1)) >= saved, again.text()
            accuracy = re.search(r"test accuracy: (\S+)", training.tasks["worker 0"].text())
            assert float(accuracy.group(1)) > 0.9, training.tasks["worker 0"].text()
            assert saved_steps(training.tasks["worker 0"])[-1] >= training.steps


def table():
    print("| training | killed | task | says first | exit code | ended after |")
    print("|---|---|---|---|---|---|")
    for name, victim, task, line, code, seconds in ROWS:
        print(f"| {name} | {victim} | {task} | {line or '(nothing)'} | {code} | {seconds:.0f} s |")


if __name__ == "__main__":
    RESULT = main([(f"{name}: {victim} is killed", lambda n=name, v=victim: killed(n, v))
                   for name in TRAININGS for victim in ("worker 1", "worker 0", "ps 0")])
    if "--table" in sys.argv:
        table()
    sys.exit(RESULT)
