#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each kind of task of a training with checkpoints is killed in the middle, and then started again by the
same command: what the others say and return, and that training goes on from the last checkpoint and
ends. Where the others end with the dead one, all are started again. A worker that comes again when the
chief has ended is told so. Programs of one process go on as well. With --table it prints what was seen as
the table of docs/fault_tolerance.md."""
import contextlib
import glob
import os
import re
import signal
import sys
import tempfile
import time

from grammar_text import grammar_text
from processes_test import write_mnist
from tenon_process import BINARY, REPLICA, SOURCE, TENON, Process, TooLate, free_addresses, in_time, main, run

sys.path.append(os.path.join(SOURCE, "share", "bench"))
import make_tables  # noqa: E402  pylint: disable=wrong-import-position

MNIST = os.path.join(SOURCE, "share", "mnist")


def example(name):
    return os.path.join(BINARY, "example_" + name)


def saved_step(folder):
    """Of the newest checkpoint that the state file names; 0 when there is none."""
    try:
        with open(os.path.join(folder, "checkpoint"), encoding="utf-8") as state:
            return int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read(), re.M).group(1))
    except FileNotFoundError:
        return 0


def wait_until(what, condition, text, timeout=60):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not {what}:\n{text()}"
        time.sleep(0.02)


class Kind:
    """One program: its command, which ends with the number of its steps or epochs, how it tells how far it is, and
    whether its workers wait for a parameter server that died."""

    def __init__(self, command, step, recovers=True):
        self.command, self.step, self.recovers = command, step, recovers

    def longer(self, times):
        return Kind([*self.command[:-1], str(int(self.command[-1]) * times)], self.step, self.recovers)


TRAININGS = {
    "tenon train mnist": Kind(
        [TENON, "train", "mnist", "--save_seconds", "0.5", "--max_steps", "3000"],
        r"training +\d+%  (\d+)/"),
    "tenon train mnist --sync": Kind(
        [TENON, "train", "mnist", "--save_seconds", "0.5", "--sync", "--max_steps", "1000"],
        r"training +\d+%  (\d+)/"),
    "mnist_sync": Kind([example("mnist_sync"), "--save_seconds", "0.5", "--steps", "1000"],
                       r"step (\d+), [\d.]+ steps/s"),
    "mnist_replica": Kind([REPLICA, "--learning_rate", "0.1", "--training_epochs", "700"],
                          r"Step: (\d+),", recovers=False),
}
TASKS = ("ps 0", "worker 0", "worker 1")
ROWS = []


class Training:
    """1 parameter server and 2 workers."""

    def __init__(self, kind, folder, data):
        addresses = free_addresses(3)
        self.kind, self.folder = kind, folder
        self.flags = ["--ps_hosts", addresses[0], "--worker_hosts", ",".join(addresses[1:]),
                      "--data", data, "--checkpoint_dir", folder]
        self.tasks = {}

    def start(self, task):
        job, number = task.split(" ")
        self.tasks[task] = Process(*self.kind.command, *self.flags, "--job_name", job,
                                   "--task_index", number)
        return self.tasks[task]

    def start_all(self):
        for task in TASKS:
            self.start(task)

    def last_step(self):
        steps = re.findall(self.kind.step, self.tasks["worker 0"].text())
        return int(steps[-1]) if steps else 0

    def saved_step(self):
        return saved_step(self.folder)

    def text(self):
        return "\n".join(f"--- {task}\n{p.text()}" for task, p in self.tasks.items())

    def wait_until(self, what, condition, timeout=60):
        wait_until(what, condition, self.text, timeout)

    def wait_until_under_way(self):
        self.wait_until("a checkpoint in mid-training",
                        lambda: self.saved_step() > 0 and self.last_step() > 0)

    def ended(self):
        return all(p.process.poll() is not None for p in self.tasks.values())

    def __enter__(self):
        self.start_all()
        return self

    def __exit__(self, *_):
        for process in self.tasks.values():
            process.__exit__()


def notable(lines):
    """The first line that says what happened."""
    plain = r"(training|saved|test|steps|total|learning|went|joined|step|Step|Test-|Total|Final|Steps|done)\b"
    return next((line for line in lines if not re.match(plain, line)), "")


def kill(process, text):
    process.strike(signal.SIGKILL)
    if process.finish() != -signal.SIGKILL:
        raise TooLate(text())


def killed(name, victim, times):
    kind = TRAININGS[name].longer(times)
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
        write_mnist(data)
        with Training(kind, folder, data) as training:
            tasks = dict(training.tasks)
            training.wait_until_under_way()
            survivors = {t: (p, len(p.lines)) for t, p in tasks.items() if t != victim}
            kill(tasks[victim], training.text)
            if any(process.process.poll() == 0 for process, _ in survivors.values()):
                raise TooLate(training.text())
            begin, saved = time.monotonic(), training.saved_step()
            time.sleep(0.5)
            all_again = victim == "ps 0" and not kind.recovers
            if not all_again:
                training.start(victim)
            training.wait_until("the end", training.ended, 150)
            for task, (process, before) in survivors.items():
                ROWS.append((name, victim, task, notable(process.lines[before:]), process.finish(),
                             time.monotonic() - begin))
            if all_again:
                assert all(p.finish() == 1 for p, _ in survivors.values()), training.text()
                training.start_all()
                training.wait_until("the end of the second run", training.ended, 150)
            for task, process in training.tasks.items():
                assert process.finish() == 0, \
                    f"{name}: {task} after {victim} was killed:\n{training.text()}"
            chief = training.tasks["worker 0"].text()
            if victim == "ps 0":
                restored = [int(s) for s in re.findall(r"restored \S*-(\d+)", chief)]
                assert restored and restored[-1] >= saved, chief
            accuracy = re.search(r"(?i)test.accuracy: ([\d.]+)", chief)
            assert float(accuracy.group(1)) > 0.8, chief
            assert training.saved_step() >= saved, chief


def comes_after_the_end(name, seconds, times):
    """Worker 1 is killed, and comes again when the chief has ended training."""
    kind = TRAININGS[name].longer(times)
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
        write_mnist(data)
        with Training(kind, folder, data) as training:
            # Late enough for the end to come while the parameter server still waits for its return.
            steps = int(kind.command[-1])
            training.wait_until("most steps", lambda: training.saved_step() > 0.8 * steps, 150)
            kill(training.tasks["worker 1"], training.text)
            assert training.tasks["worker 0"].finish() == 0, training.text()
            begin = time.monotonic()
            late = training.start("worker 1")
            assert late.finish() == 0, training.text()
            took = time.monotonic() - begin
            assert took < seconds, f"took {took:.1f} s, wanted less than {seconds}:\n{training.text()}"
            assert re.search(r"training had ended already, at step \d+", late.text()), training.text()
            assert training.tasks["ps 0"].finish() == 0, training.text()


def goes_on(steps, first_step, *command):
    """A program of one process is killed, and the same command goes on from its last checkpoint, whose
    step `first_step` finds in what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*command, folder, "--steps", steps]
        with Process(*command) as first:
            wait_until("a checkpoint", lambda: saved_step(folder) > 0, first.text)
            kill(first, first.text)
        saved = saved_step(folder)
        if saved == steps:
            raise TooLate(first.text())
        assert 0 < saved < steps, (saved, first.text())
        second = run(*command)
        assert second.returncode == 0, second.stdout + second.stderr
        # Read in the step, which may have counted itself.
        assert int(re.search(first_step, second.stdout).group(1)) - saved in (0, 1), (saved, second.stdout)
        assert saved_step(folder) == steps, second.stdout


def char_lstm():
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write(grammar_text(20000))
        command = [example("char_lstm"), "--text", text, "--units", 32, "--batch", 8, "--length", 20, "--checkpoint_dir"]
        in_time(lambda steps: goes_on(steps, r"\(step (\d+)\)", *command), 1000, 4000, 16000)


def mnist_conv():
    command = [example("mnist_conv"), "--data", MNIST, "--save_steps", 15, "--logs"]
    in_time(lambda steps: goes_on(steps, r"restored \S*-(\d+)", *command), 60, 240)


def tables_allreduce():
    """A rank is killed in the second of two trainings. The same command keeps the first one and makes the second anew."""
    in_time(a_rank_is_killed, 3000, 12000, 48000)


def a_rank_is_killed(iterations):
    with tempfile.TemporaryDirectory() as folder:
        tables, checkpoints = os.path.join(folder, "tables"), os.path.join(folder, "run")
        make_tables.write_shards(tables, 4, 400, 1)
        command = [TENON, "launch", "--allreduce", "--workers", 2, "--", example("tables_allreduce"), "--data", tables,
                   "--restarts", 2, "--iterations", iterations, "--checkpoint_dir", checkpoints]
        with Process(*command) as first:
            first.wait_for("restart 1: loss")
            (pid,) = re.findall(r"worker 1 at .*, process (\d+)", first.text())
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            if first.finish() == 0 or saved_step(os.path.join(checkpoints, "restart_2")) == iterations:
                raise TooLate(first.text())
        assert saved_step(os.path.join(checkpoints, "restart_1")) == iterations, first.text()
        second = run(*command)
        assert second.returncode == 0, second.stdout + second.stderr
        (loss,) = re.findall(r"restart 1: loss (\S+)", first.text())
        assert f"restart 1: loss {loss}" in second.stdout and "best: restart" in second.stdout, second.stdout
        for restart in (1, 2):
            assert saved_step(os.path.join(checkpoints, f"restart_{restart}")) == iterations, second.stdout


def none_is_left_out():
    names = {os.path.basename(path)[:-len(".cc")]
             for path in glob.glob(os.path.join(SOURCE, "examples", "*.cc"))}
    lasting = {name for name in names if "--checkpoint_dir" in run(example(name), "--help").stdout}
    assert lasting == {"char_lstm", "mnist_sync", "mnist_replica", "tables_allreduce"}, lasting


def table():
    print("| training | killed | task | says first | exit code | ended after |")
    print("|---|---|---|---|---|---|")
    order = [(name, victim) for name in TRAININGS for victim in ("worker 1", "worker 0", "ps 0")]
    for name, victim, task, line, code, seconds in sorted(ROWS, key=lambda r: order.index(r[:2])):
        line = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", line)
        line = re.sub(r"(waiting for its return): .*", r"\1 ...", line)
        print(f"| `{name}` | {victim} | {task} | {line or '(nothing)'} | {code} | {seconds:.0f} s |")


if __name__ == "__main__":
    CASES = [(f"{name}: {victim} is killed", lambda n=name, v=victim: in_time(lambda times: killed(n, v, times), 1, 4, 16))
             for name in TRAININGS for victim in ("worker 1", "worker 0", "ps 0")]
    CASES += [(f"{name}: a worker comes after the end",
               lambda n=name, s=seconds: in_time(lambda times: comes_after_the_end(n, s, times), 1, 4, 16))
              for name, seconds in (("tenon train mnist", 20), ("mnist_sync", 40))]
    CASES += [("char_lstm is killed", char_lstm), ("mnist_conv is killed", mnist_conv),
              ("tables_allreduce: a rank is killed", tables_allreduce),
              ("all programs with checkpoints are tested", none_is_left_out)]
    RESULT = main(CASES, at_once=3)
    if "--table" in sys.argv:
        table()
    sys.exit(RESULT)
