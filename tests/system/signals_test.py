#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM, which operators and schedulers send: to a launched job, to its terminal's process
group, to single tasks that the same command starts again, and to tasks that wait. What was trained is
saved, no process is left, and nobody is waited for who does not come."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from processes_test import write_mnist
from tenon_process import REPLICA, TENON, Process, TooLate, free_addresses, in_time, main, processes_of_session


def saved_step(folder):
    """Of the newest checkpoint that the state file names; -1 without one."""
    try:
        with open(os.path.join(folder, "checkpoint"), encoding="utf-8") as state:
            return int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read(), re.M).group(1))
    except FileNotFoundError:
        return -1


class Launched:
    """`tenon launch` in a session of its own, as a terminal has them."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([str(a) for a in (TENON, "launch", *arguments)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.lines = []

    def read_until(self, text):
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError(f"ended without '{text}':\n{''.join(self.lines)}")

    def end(self, seconds):
        """The exit code; all output has been read, and the session has no process any more."""
        begin = time.monotonic()
        self.lines.extend(self.process.stdout)
        code = self.process.wait()
        assert time.monotonic() - begin < seconds, "".join(self.lines)
        left = processes_of_session(self.process.pid)
        assert not left, f"{left} are left:\n" + "".join(self.lines)
        return code

    def text(self):
        return "".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in processes_of_session(self.process.pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def launched_job_is_ended(data, number, to_group):
    with tempfile.TemporaryDirectory() as run, \
            Launched("--ps", 1, "--workers", 2, "--", TENON, "train", "mnist", "--data", data,
                     "--checkpoint_dir", run, "--epochs", 4000, "--save_seconds", 600) as job:
        job.read_until("[worker 0] training ")  # which is said of a tenth of the steps
        (os.killpg if to_group else os.kill)(job.process.pid, number)
        assert job.end(60) == 128 + number, job.text()
        assert saved_step(run) > 0, job.text()
        assert f"{signal.Signals(number).name}: waiting for the tasks to end" in job.text(), job.text()
        assert re.search(r"\[worker 0\] stopped by a signal", job.text()), job.text()


def worker_of_a_launched_job_is_ended(data):
    """The other goes on, nobody waits for a return that nobody brings about, and the job has not succeeded."""
    def case(steps):
        with tempfile.TemporaryDirectory() as run, \
                Launched("--ps", 1, "--workers", 2, "--", TENON, "train", "mnist", "--data", data,
                         "--checkpoint_dir", run, "--max_steps", steps) as job:
            job.read_until("[worker 1] training ")
            pid = next(re.search(r"process (\d+)", line) for line in job.lines if line.startswith("worker 1 at "))
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.group(1)), signal.SIGTERM)
            job.read_until("[worker 0] test accuracy")
            code = job.end(40)
            if code == 0 or "[worker 1] stopped by a signal" not in job.text():
                raise TooLate(job.text())
            assert code == 128 + signal.SIGTERM, job.text()
            said = job.text()
            wanted = "[worker 1] ended by SIGTERM; the others go on"
            assert wanted in said and said.index(wanted) < said.index("[worker 0] test accuracy"), said
            assert saved_step(run) >= steps, said
    in_time(case, 6000, 24000, 96000)


def job_that_has_not_begun_is_ended(data):
    """At the moments in which servers start, wait for each other, and open sessions."""
    for pause in (0.3, 0.7, 1.2):
        with tempfile.TemporaryDirectory() as run, \
                Launched("--ps", 1, "--workers", 2, "--", TENON, "train", "mnist", "--data", data,
                         "--checkpoint_dir", run, "--epochs", 100000) as job:
            job.read_until("worker 1 at ")  # the launcher ends in good order from here on
            time.sleep(pause)
            os.kill(job.process.pid, signal.SIGINT)
            assert job.end(40) == 130, job.text()


def second_signal_ends_at_once():
    with Launched("--ps", 0, "--workers", 2, "--", "sh", "-c",
                  "trap '' INT TERM; echo ready; sleep 100; sleep 100") as job:
        job.read_until("ready")
        job.read_until("ready")
        os.kill(job.process.pid, signal.SIGINT)
        time.sleep(1.5)
        assert job.process.poll() is None, job.text()
        os.kill(job.process.pid, signal.SIGINT)
        assert job.end(40) == 130, job.text()


class Job:
    """1 parameter server and 2 workers, whose commands can be started again."""

    def __init__(self, data, run, *flags):
        addresses = free_addresses(3)
        self.run = run
        self.command = [TENON, "train", "mnist", "--data", data, "--checkpoint_dir", run,
                        "--save_seconds", "0.5", "--ps_hosts", addresses[0], "--worker_hosts",
                        ",".join(addresses[1:]), *flags]
        self.started = []
        self.tasks = {task: self.start(task) for task in ("ps 0", "worker 0", "worker 1")}

    def start(self, task):
        job, index = task.split()
        process = Process(*self.command, "--job_name", job, "--task_index", index)
        self.started.append((task, process))
        return process

    def text(self):
        return "\n".join(f"--- {task}\n{p.text()}" for task, p in self.started)

    def wait_until_all_train(self):
        deadline = time.monotonic() + 60
        for task in ("worker 0", "worker 1"):
            self.tasks[task].wait_for("training ")  # which is said of a tenth of the steps
        while saved_step(self.run) < 1:  # which the chief saves when it trains
            assert time.monotonic() < deadline, self.text()
            time.sleep(.05)

    def strike_server(self, number):
        """While the workers train."""
        self.tasks["ps 0"].strike(number)
        if any(self.tasks[task].process.poll() is not None for task in ("worker 0", "worker 1")):
            raise TooLate(self.text())

    def end_by_signal(self, task):
        """A worker, by SIGTERM, before it has made its steps."""
        self.tasks[task].strike(signal.SIGTERM)
        if self.tasks[task].finish() == 0 or "stopped by a signal" not in self.tasks[task].text():
            raise TooLate(self.text())
        self.expect(task, 128 + signal.SIGTERM)

    def expect(self, task, code, seconds=120):
        assert self.tasks[task].finish(seconds) == code, self.text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, process in self.started:
            process.__exit__()


def worker_returns(data, task):
    """It was ended by SIGTERM, and the same command goes on, however soon the other worker ends."""
    def case(epochs):
        with tempfile.TemporaryDirectory() as run, Job(data, run, "--epochs", epochs) as job:
            job.wait_until_all_train()
            job.end_by_signal(task)
            assert "stopped by a signal" in job.tasks[task].text(), job.text()
            other = "worker 1" if task == "worker 0" else "worker 0"
            job.expect(other, 0)
            assert job.tasks["ps 0"].process.poll() is None, job.text()
            job.tasks[task] = job.start(task)
            job.expect(task, 0)
            job.expect("ps 0", 0)
            assert "test accuracy" in job.tasks[task].text(), job.text()
    in_time(case, 1000, 4000, 16000)


def chief_in_step_returns(data):
    """The others wait for it, and say so; training goes on to its last step."""
    def case(steps):
        with tempfile.TemporaryDirectory() as run, Job(data, run, "--sync", "--max_steps", steps) as job:
            job.wait_until_all_train()
            job.end_by_signal("worker 0")
            left_at = saved_step(run)
            if left_at == steps:
                raise TooLate(job.text())
            assert 0 < left_at < steps, job.text()
            job.tasks["worker 1"].wait_for("waiting for a turn of the chief, worker 0, ")
            assert job.tasks["ps 0"].process.poll() is None, job.text()
            job.tasks["worker 0"] = job.start("worker 0")
            for task in ("worker 0", "worker 1", "ps 0"):
                job.expect(task, 0)
            assert saved_step(run) == steps, job.text()
    in_time(case, 1500, 6000, 24000)


def parameter_server_outlives_its_workers(data):
    def case(steps):
        with tempfile.TemporaryDirectory() as run, Job(data, run, "--max_steps", steps) as job:
            job.wait_until_all_train()
            job.strike_server(signal.SIGTERM)
            job.tasks["ps 0"].wait_for("SIGTERM: ending when the workers have ended")
            for task in ("worker 0", "worker 1"):
                job.expect(task, 0)
            job.expect("ps 0", 128 + signal.SIGTERM)
            assert saved_step(run) >= steps, job.text()
    in_time(case, 8000, 32000)


def waiting_task_ends_at_once(data):
    addresses = free_addresses(2)
    with Process(TENON, "train", "mnist", "--data", data, "--ps_hosts", addresses[0], "--worker_hosts",
                 addresses[1], "--job_name", "worker", "--task_index", 0) as worker:
        worker.wait_for("waits for /job:ps/replica:0/task:0")
        worker.process.send_signal(signal.SIGINT)
        assert worker.finish(45) == -signal.SIGINT, worker.text()
        assert "ended by a signal while no session was open" in worker.text(), worker.text()


def stopped_parameter_server_is_named(data):
    def case(steps):
        with tempfile.TemporaryDirectory() as run, Job(data, run, "--max_steps", steps) as job:
            job.wait_until_all_train()
            job.strike_server(signal.SIGSTOP)
            for task in ("worker 0", "worker 1"):
                job.tasks[task].wait_for("s now: /job:ps/replica:0/task:0 at ", 60)
            job.tasks["ps 0"].process.send_signal(signal.SIGCONT)
            for task in ("worker 0", "worker 1", "ps 0"):
                job.expect(task, 0)
    in_time(case, 8000, 32000)


def hanging_parameter_server_does_not_hold_who_is_to_end(data):
    """The first signal bounds the step that waits for it, and says why nothing is saved."""
    with tempfile.TemporaryDirectory() as run, Job(data, run, "--epochs", "4000") as job:
        job.wait_until_all_train()
        job.strike_server(signal.SIGSTOP)
        time.sleep(1)
        for task, number in (("worker 0", signal.SIGINT), ("worker 1", signal.SIGTERM)):
            process = job.tasks[task]
            begin = time.monotonic()
            process.process.send_signal(number)
            process.wait_for(f"{number.name}: waiting for the ", 45)
            assert process.finish(45) == -number, job.text()
            assert time.monotonic() - begin > 4, job.text()
            ended = rf"ended by {number.name} while waiting for the (step that runs|hooks \w+ the step): " \
                    "no answer from /job:ps/replica:0/task:0 at 127.0.0.1:"
            assert re.search(ended, process.text()), job.text()
            assert f"; nothing can be saved, but '{run}/model.ckpt-" in process.text(), job.text()
        job.tasks["ps 0"].process.send_signal(signal.SIGCONT)


def hanging_parameter_server_of_a_supervised_worker(data):
    addresses = free_addresses(2)
    flags = [REPLICA, "--data", data, "--ps_hosts", addresses[0], "--worker_hosts", addresses[1],
             "--training_epochs", 100000, "--task_index", 0, "--job_name"]
    with Process(*flags, "ps") as server, Process(*flags, "worker") as worker:
        worker.wait_for("Step: ")
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.finish(45) == -signal.SIGTERM, worker.text()
        assert "no answer from /job:ps/replica:0/task:0 at " in worker.text(), worker.text()


def replica_says_what_it_does(data):
    def case(steps):
        with tempfile.TemporaryDirectory() as run, Job(data, run, "--max_steps", steps) as job:
            job.wait_until_all_train()
            job.tasks["worker 1"].strike(signal.SIGUSR1)
            job.strike_server(signal.SIGUSR1)
            job.tasks["ps 0"].wait_for("/job:ps/replica:0/task:0, up for ")
            job.tasks["worker 1"].wait_for("/job:worker/replica:0/task:1, up for ")
            for task in ("worker 0", "worker 1", "ps 0"):
                job.expect(task, 0)
    in_time(case, 8000, 32000)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        write_mnist(FOLDER)
        sys.exit(main([
            ("ctrl-C of a launched job", lambda: launched_job_is_ended(FOLDER, signal.SIGINT, True)),
            ("SIGINT to the launcher", lambda: launched_job_is_ended(FOLDER, signal.SIGINT, False)),
            ("SIGTERM to the launcher", lambda: launched_job_is_ended(FOLDER, signal.SIGTERM, False)),
            ("a worker of a launched job", lambda: worker_of_a_launched_job_is_ended(FOLDER)),
            ("ctrl-C before training begins", lambda: job_that_has_not_begun_is_ended(FOLDER)),
            ("a second signal", second_signal_ends_at_once),
            ("a worker returns", lambda: worker_returns(FOLDER, "worker 1")),
            ("the chief returns", lambda: worker_returns(FOLDER, "worker 0")),
            ("the chief in step returns", lambda: chief_in_step_returns(FOLDER)),
            ("a parameter server is to end", lambda: parameter_server_outlives_its_workers(FOLDER)),
            ("a task that waits", lambda: waiting_task_ends_at_once(FOLDER)),
            ("a stopped parameter server", lambda: stopped_parameter_server_is_named(FOLDER)),
            ("a parameter server that hangs",
             lambda: hanging_parameter_server_does_not_hold_who_is_to_end(FOLDER)),
            ("a supervised worker whose parameter server hangs",
             lambda: hanging_parameter_server_of_a_supervised_worker(FOLDER)),
            ("SIGUSR1", lambda: replica_says_what_it_does(FOLDER)),
        ], at_once=3))
