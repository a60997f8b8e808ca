#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that are started again, ended by signals, or given folders that nobody can write in: the
example mnist_replica, whose workers train at their own pace, as those of `tenon train mnist` do, and the
other examples with checkpoints."""
import os
import re
import signal
import subprocess
import sys
import tempfile

from grammar_text import grammar_text
from processes_test import write_mnist
from tenon_process import BINARY, REPLICA, SOURCE, TENON, Process, TooLate, free_addresses, in_time, main, run

PER_EPOCH = 3  # batches of a worker


def saved_step(folder):
    """Of the newest checkpoint that the state file names."""
    with open(os.path.join(folder, "checkpoint"), encoding="utf-8") as state:
        return int(re.search(r'^model_checkpoint_path: ".*-(\d+)"', state.read(), re.M).group(1))


def expect_ended(folder, last, printed):
    """Each worker may be at a step when the other makes the last one."""
    assert last <= saved_step(folder) < last + 4, printed


def launch(data, folder, epochs):
    done = run(TENON, "launch", "--ps", 1, "--workers", 2, "--", REPLICA, "--data", data, "--checkpoint_dir",
               folder, "--training_epochs", epochs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_task(task, printed):
    return [line[len(task) + 3:] for line in printed.splitlines() if line.startswith(f"[{task}] ")]


class Job:
    """1 parameter server and 2 workers, a process each."""

    def __init__(self, program, data, *flags):
        addresses = free_addresses(3)
        self.program = [*program, "--data", data]
        self.hosts = ["--ps_hosts", addresses[0], "--worker_hosts", ",".join(addresses[1:])]
        self.tasks = {}
        self.start(*flags)

    def start(self, *flags):
        for task in ("ps 0", "worker 0", "worker 1"):
            job, index = task.split()
            self.tasks[task] = Process(*self.program, *flags, *self.hosts, "--job_name", job,
                                       "--task_index", index)

    def text(self):
        return "\n".join(f"--- {task}\n{p.text()}" for task, p in self.tasks.items())

    def expect(self, task, code, seconds=60):
        found = self.tasks[task].finish(seconds)
        assert found == code, f"{task} ended with {found}, wanted {code}:\n{self.text()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.tasks.values():
            process.__exit__()


def finished_job_is_started_again(data):
    with tempfile.TemporaryDirectory() as folder:
        first = launch(data, folder, 40)
        last = 2 * 40 * PER_EPOCH
        assert saved_step(folder) == last, first
        assert f"(step {last})" in "".join(of_task("worker 0", first)), first
        for _ in range(2):
            again = launch(data, folder, 40)
            for task in ("worker 0", "worker 1"):
                lines = of_task(task, again)
                assert f"training had ended already, at step {last}" in lines, again
                assert lines[-1] == "done", again
            assert "Step: " not in again and "Steps per second" not in again, again
            assert saved_step(folder) == last, again


def steps_of_this_process_are_counted(data):
    with tempfile.TemporaryDirectory() as folder:
        launch(data, folder, 400)
        printed = launch(data, folder, 410)
        expect_ended(folder, 2 * 410 * PER_EPOCH, printed)
        for task in ("worker 0", "worker 1"):
            text = "\n".join(of_task(task, printed))
            rate = re.search(r"^Steps per second: (\d+)$", text, re.M)
            seconds = re.search(r"^Total Time: ([\d.]+)s$", text, re.M)
            if rate is None:  # the other one has made them all
                assert "training had ended already" in text, printed
                continue
            # Both numbers are rounded.
            assert (int(rate.group(1)) - 1) * (float(seconds.group(1)) - .01) < 65, printed


def last_checkpoint_has_the_steps_of_all(data, program, flag, begun, accuracy, epochs):
    with tempfile.TemporaryDirectory() as folder, \
            Job(program, data, "--checkpoint_dir", folder, flag, epochs) as job:
        slow, chief = job.tasks["worker 1"], job.tasks["worker 0"]
        slow.wait_for(begun)
        slow.strike(signal.SIGSTOP)
        if re.search(accuracy, slow.text()):
            raise TooLate(job.text())
        chief.wait_for("waiting for the end of /job:worker/replica:0/task:1 at 127.0.0.1:")
        assert chief.process.poll() is None, job.text()
        slow.process.send_signal(signal.SIGCONT)
        for task in ("worker 0", "worker 1", "ps 0"):
            job.expect(task, 0)
        last = 2 * epochs * PER_EPOCH
        assert saved_step(folder) == last, job.text()
        assert re.search(rf"^{accuracy}: [\d.]+ \(step {last}\)$", chief.text(), re.M), job.text()
        assert f"saved {folder}/model.ckpt-{last}" in chief.lines, job.text()


def dead_worker_holds_nobody(data, epochs):
    with tempfile.TemporaryDirectory() as folder, \
            Job([REPLICA], data, "--checkpoint_dir", folder, "--training_epochs", epochs) as job:
        # The parameter server gives the job up 30 s after the death, so the rest has to be short.
        job.tasks["worker 1"].wait_for("Step: ")
        job.tasks["worker 1"].strike(signal.SIGKILL)
        if job.tasks["worker 1"].finish() == 0 or "Test-Accuracy" in job.tasks["worker 0"].text():
            raise TooLate(job.text())
        job.expect("worker 0", 0)
        assert "waiting for the end" not in job.tasks["worker 0"].text(), job.text()


def expect_refused(data, folder, reason):
    with Job([REPLICA], data, "--checkpoint_dir", folder, "--training_epochs", 100000) as job:
        job.expect("worker 0", 1, 30)
        chief = job.tasks["worker 0"].text()
        assert f"no checkpoint can be written in '{folder}': {reason}" in chief, job.text()
        assert "Step: " not in chief and "is not saved" not in chief and "temp" not in chief, job.text()
        job.expect("ps 0", 1)
        job.expect("worker 1", 1)


def folder_that_cannot_be_made(data):
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("no folder")
        run_ = os.path.join(plain, "run")
        expect_refused(data, run_, f"cannot make the folder '{run_}': Not a directory")


def alone_in_no_folder(data):
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        with open(plain, "w", encoding="ascii") as file:
            file.write("no folder")
        run_ = os.path.join(plain, "run")
        done = run(TENON, "train", "mnist", "--data", data, "--checkpoint_dir", run_)
        assert done.returncode == 1, done
        wanted = f"no checkpoint can be written in '{run_}': cannot make the folder '{run_}': Not a directory"
        assert wanted in done.stderr, done


def folder_that_is_read_only(data):
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=False,
                                 capture_output=True).returncode == 0
        try:
            if not mounted:  # not without rights to mount; then root's rights are none to write either
                if os.geteuid() == 0:
                    return
                os.chmod(folder, 0o555)
            expect_refused(data, folder, "Read-only file system" if mounted else "Permission denied")
        finally:
            if mounted:
                subprocess.run(["umount", "-l", folder], check=True)
            else:
                os.chmod(folder, 0o755)


def signalled_job_goes_on(data):
    with tempfile.TemporaryDirectory() as folder, \
            Job([REPLICA], data, "--checkpoint_dir", folder, "--training_epochs", 1000000) as job:
        tasks = ("worker 0", "worker 1", "ps 0")
        for task in tasks[:2]:
            job.tasks[task].wait_for("Step: ")
        for task in tasks:
            job.tasks[task].process.send_signal(signal.SIGINT)
        for task in tasks[:2]:
            job.expect(task, 128 + signal.SIGINT)
        # Where all workers have ended already, it ends as any process.
        assert job.tasks["ps 0"].finish(60) in (128 + signal.SIGINT, -signal.SIGINT), job.text()
        for task in tasks[:2]:
            text = job.tasks[task].text()
            stopped = re.search(r"^stopped by a signal after step (\d+); the same command goes on from there$",
                                text, re.M)
            assert stopped, job.text()
            for word in ("Test-Accuracy", "Steps per second", "done"):
                assert word not in text, job.text()
            if task == "worker 0":
                assert int(stopped.group(1)) == saved_step(folder), job.text()
        saved = saved_step(folder)
        # The job that goes on has an end that is near, however many steps the first one made.
        epochs = saved // (2 * PER_EPOCH) + 500
        job.start("--checkpoint_dir", folder, "--training_epochs", epochs)
        for task in tasks:
            job.expect(task, 0)
        # The other worker may have made steps before it looks.
        went_on = re.search(r"^went on from step (\d+)$", job.tasks["worker 0"].text(), re.M)
        assert went_on and int(went_on.group(1)) >= saved, job.text()
        joined = [re.match("joined at step |went on from step |Step: ", line)
                  for line in job.tasks["worker 1"].lines]
        assert [m.group() for m in joined if m][0] == "joined at step ", job.text()
        expect_ended(folder, 2 * epochs * PER_EPOCH, job.text())


def example(name):
    return os.path.join(BINARY, "example_" + name)


def signalled_job_in_step(data):
    with tempfile.TemporaryDirectory() as folder, \
            Job([example("mnist_sync")], data, "--checkpoint_dir", folder, "--steps", 1000000) as job:
        for task in ("worker 0", "worker 1"):
            job.tasks[task].wait_for(" steps/s")
        for task in ("worker 0", "worker 1"):
            job.tasks[task].process.send_signal(signal.SIGTERM)
        for task in ("worker 0", "worker 1"):
            job.expect(task, 128 + signal.SIGTERM)
            text = job.tasks[task].text()
            assert re.search(r"^stopped by a signal after step \d+; ", text, re.M), job.text()
            assert "test accuracy" not in text, job.text()
        job.expect("ps 0", 0)


def signalled_program(begun, *command):
    with tempfile.TemporaryDirectory() as folder, Process(*command, folder) as process:
        process.wait_for(begun)
        process.process.send_signal(signal.SIGINT)
        assert process.finish(60) == 128 + signal.SIGINT, process.text()
        stopped = re.search(r"^stopped by a signal after step (\d+); ", process.text(), re.M)
        assert stopped and int(stopped.group(1)) == saved_step(folder), process.text()
        assert process.lines[-1] == stopped.string[stopped.start():].splitlines()[0], process.text()


def char_lstm():
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write(grammar_text(20000))
        signalled_program("(step 0)", example("char_lstm"), "--text", text, "--steps", 1000000,
                          "--checkpoint_dir")


def mnist_conv():
    signalled_program("saved ", example("mnist_conv"), "--data", os.path.join(SOURCE, "share", "mnist"),
                      "--logs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        write_mnist(FOLDER)
        sys.exit(main([
            ("a finished job is started again", lambda: finished_job_is_started_again(FOLDER)),
            ("the rate is of the steps that this process ran",
             lambda: steps_of_this_process_are_counted(FOLDER)),
            ("the last checkpoint has the last steps of all",
             lambda: in_time(lambda epochs: last_checkpoint_has_the_steps_of_all(
                 FOLDER, [REPLICA], "--training_epochs", "Step: ", "Test-Accuracy", epochs), 400, 1600, 6400)),
            ("the last checkpoint of tenon train mnist has the last steps of all",
             lambda: in_time(lambda epochs: last_checkpoint_has_the_steps_of_all(
                 FOLDER, [TENON, "train", "mnist"], "--epochs", "training ", "test accuracy", epochs), 400, 1600, 6400)),
            ("a process alone whose folder cannot be made", lambda: alone_in_no_folder(FOLDER)),
            ("a worker that has died is not waited for", lambda: in_time(
                lambda epochs: dead_worker_holds_nobody(FOLDER, epochs), 300, 1200)),
            ("a folder that cannot be made", lambda: folder_that_cannot_be_made(FOLDER)),
            ("a folder that is read-only", lambda: folder_that_is_read_only(FOLDER)),
            ("a job that signals end goes on", lambda: signalled_job_goes_on(FOLDER)),
            ("workers in step that signals end", lambda: signalled_job_in_step(FOLDER)),
            ("char_lstm that a signal ends", char_lstm),
            ("mnist_conv that a signal ends", mnist_conv),
        ], at_once=2))
