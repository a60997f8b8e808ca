#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that fail before they have reached a parameter server, by their flags, their data or their address:
the others end with the reason instead of waiting for each other, and nobody waits long to tell it."""
import socket
import sys
import tempfile
import time

from processes_test import write_mnist
from tenon_process import REPLICA, TENON, Process, TooLate, free_addresses, in_time, main

# Well below the 60 s for which tasks look for each other.
SOON = 30
TASK1 = "/job:worker/replica:0/task:1"


class Tasks:
    """The tasks of a job of one parameter server, each a process of its own."""

    def __init__(self, data, workers=2):
        addresses = free_addresses(1 + workers)
        self.workers = addresses[1:]
        self.flags = ["--data", data, "--ps_hosts", addresses[0], "--worker_hosts", ",".join(self.workers)]
        self.started, self.begin = {}, time.monotonic()

    def start(self, job, task, *flags, command=(TENON, "train", "mnist")):
        name = f"{job} {task}"
        self.started[name] = Process(*command, *self.flags, "--job_name", job, "--task_index", task, *flags)
        return self.started[name]

    def text(self):
        return "\n".join(f"--- {name}\n{p.text()}" for name, p in self.started.items())

    def expect(self, name, code, *wanted, seconds=SOON):
        found = self.started[name].finish(seconds)
        assert found == code, f"{name} ended with {found}:\n{self.text()}"
        for text in wanted:
            assert text in self.started[name].text(), f"no '{text}' of {name}:\n{self.text()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started.values():
            process.__exit__()


ENDLESS = ("--epochs", "100000")


def its_data(data):
    """Of a worker in step, and of one that trains alone."""
    for how, at_work in ((("--sync",), "waiting for 2 workers"), ((), "model.ckpt-0")):
        with tempfile.TemporaryDirectory() as run, Tasks(data) as tasks:
            how = (*how, "--checkpoint_dir", run)
            tasks.start("ps", 0)
            tasks.start("worker", 0, *ENDLESS, *how).wait_for(at_work)
            tasks.start("worker", 1, *ENDLESS, *how, "--batch", 301)
            reason = f"{TASK1} failed: --batch 301 is more than the 300 images to train with"
            tasks.expect("worker 1", 2, "--batch 301 is more than the 300 images")
            tasks.expect("ps 0", 1, reason)
            tasks.expect("worker 0", 1, reason)


def a_supervised_worker(data):
    with Tasks(data) as tasks:
        replica = {"command": (REPLICA,)}
        tasks.start("ps", 0, **replica)
        tasks.start("worker", 0, "--training_epochs", 100000, **replica).wait_for("Step: ")
        tasks.start("worker", 1, "--batch_size", 301, **replica)
        tasks.expect("worker 1", 1, "301")
        tasks.expect("ps 0", 1, f"{TASK1} failed: ")
        tasks.expect("worker 0", 1, f"{TASK1} failed: ")


def data_of_all(data):
    """The first one ends the parameter server; none of the others waits for it."""
    with Tasks(data, 3) as tasks:
        for job, task in (("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)):
            tasks.start(job, task, "--batch", 301)
        tasks.expect("ps 0", 1, " failed: --batch 301 ")
        for task in range(3):
            tasks.expect(f"worker {task}", 2, "--batch 301 is more than the 300 images")


def its_flags(data):
    with Tasks(data) as tasks:
        tasks.start("ps", 0)
        tasks.start("worker", 0, *ENDLESS, "--sync").wait_for("waiting for 2 workers")
        tasks.start("worker", 1, *ENDLESS, "--sync", "--backup", 2)
        tasks.expect("worker 1", 2, "--backup 2 leaves no worker of the 2")
        tasks.expect("ps 0", 1, f"{TASK1} failed: --backup 2 leaves no worker")
        tasks.expect("worker 0", 1, f"{TASK1} failed: --backup 2 leaves no worker")


def its_address(data):
    """It is another program's."""
    with Tasks(data) as tasks, socket.socket() as other:
        host, port = tasks.workers[1].split(":")
        other.bind((host, int(port)))
        tasks.start("ps", 0)
        tasks.start("worker", 0, *ENDLESS, "--sync").wait_for("waiting for 2 workers")
        tasks.start("worker", 1, *ENDLESS, "--sync")
        tasks.expect("worker 1", 1, "Address already in use")
        tasks.expect("ps 0", 1, f"{TASK1} failed: ", "Address already in use")
        tasks.expect("worker 0", 1, f"{TASK1} failed: ")


def a_task_that_is_there(data):
    """Who starts a worker twice does not end the job."""
    def case(steps):
        with Tasks(data) as tasks:
            tasks.start("ps", 0)
            for task in (0, 1):
                tasks.start("worker", task, "--max_steps", steps)
            tasks.started["worker 1"].wait_for("training")
            with Process(TENON, "train", "mnist", *tasks.flags, "--job_name", "worker", "--task_index", 1,
                         "--start_up_deadline", 5) as twice:
                code = twice.finish(SOON)
            if tasks.started["worker 1"].process.poll() is not None and "Address already in use" not in twice.text():
                raise TooLate(tasks.text())
            assert code == 1 and "Address already in use" in twice.text(), twice.text()
            for name in ("worker 0", "worker 1", "ps 0"):
                tasks.expect(name, 0, seconds=120)
    in_time(case, 3000, 12000, 48000)


def nobody_to_tell(data):
    with Tasks(data) as tasks:
        tasks.start("worker", 1, "--batch", 301)
        tasks.expect("worker 1", 2, "waiting to tell /job:ps/replica:0/task:0 at ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        write_mnist(FOLDER)
        sys.exit(main([(name, lambda case=case: case(FOLDER)) for name, case in (
            ("a worker's data", its_data),
            ("a supervised worker", a_supervised_worker),
            ("the data of all workers", data_of_all),
            ("a worker's flags", its_flags),
            ("a worker's address", its_address),
            ("a worker that is started twice", a_task_that_is_there),
            ("a worker without a parameter server", nobody_to_tell))], at_once=2))
