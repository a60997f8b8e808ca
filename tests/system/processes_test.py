#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Between-graph replication as real processes: workers that come late, the end of the job, and what
the parameter server and the launcher make of a worker that failed."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from tenon_process import GRAPHS, REPLICA, TENON, Process, free_addresses, main, run, serve


def write_mnist(folder):
    """A small set in the files of MNIST: 5000 images for validation, 300 to train, 100 to test."""
    for prefix, count in (("train", 5300), ("t10k", 100)):
        labels = bytes((7 * i + i // 10) % 10 for i in range(count))
        # One bright block for each digit.
        blocks = [bytes(40 * d) + b"\xff" * 40 + bytes(784 - 40 * d - 40) for d in range(10)]
        with open(os.path.join(folder, prefix + "-labels-idx1-ubyte"), "wb") as out:
            out.write(struct.pack(">II", 0x801, count) + labels)
        with open(os.path.join(folder, prefix + "-images-idx3-ubyte"), "wb") as out:
            out.write(struct.pack(">IIII", 0x803, count, 28, 28))
            out.write(b"".join(blocks[d] for d in labels))


class Cluster:
    """One parameter server and two workers, each started when asked for."""

    def __init__(self, data):
        addresses = free_addresses(3)
        self.flags = ["--ps_hosts", addresses[0], "--worker_hosts", ",".join(addresses[1:])]
        self.data = data

    def start(self, job, task=0, epochs=1, data=None):
        return Process(REPLICA, *self.flags, "--job_name", job, "--task_index", task, "--data",
                       data or self.data, "--training_epochs", epochs)


def expect_trained(worker):
    assert worker.finish() == 0, worker.text()
    assert re.search(r"^Test-Accuracy: ", worker.text(), re.M), worker.text()
    assert worker.lines[-1] == "done", worker.text()


def worker_after_another(data):
    cluster = Cluster(data)
    with cluster.start("ps") as ps:
        with cluster.start("worker", 0) as first:
            expect_trained(first)
        assert ps.process.poll() is None, "the ps ended before its second worker:\n" + ps.text()
        with cluster.start("worker", 1) as second:
            expect_trained(second)
        assert ps.finish() == 0, ps.text()


def worker_joins_late(data):
    cluster = Cluster(data)
    with cluster.start("ps") as ps, cluster.start("worker", 0, epochs=400) as first:
        first.wait_for("Step: ")
        with cluster.start("worker", 1) as second:
            expect_trained(second)
            # It went on from what the first had reached.
            step = int(re.search(r"^Step: (\d+)", second.text(), re.M).group(1))
            assert step > 3, second.text()
        expect_trained(first)
        assert ps.finish() == 0, ps.text()


def chief_comes_last(data):
    cluster = Cluster(data)
    with cluster.start("worker", 1) as second, cluster.start("worker", 0) as first, \
            cluster.start("ps") as ps:
        expect_trained(first)
        expect_trained(second)
        assert ps.finish() == 0, ps.text()


def worker_fails(data):
    cluster = Cluster(data)
    with cluster.start("ps") as ps, cluster.start("worker", 0), \
            cluster.start("worker", 1, data="/nonexistent") as second:
        assert second.finish() == 1, second.text()
        assert "/nonexistent" in second.text(), second.text()
        assert ps.finish() == 1, ps.text()
        assert "/job:worker/replica:0/task:1 failed: " in ps.text(), ps.text()


def worker_killed(data):
    cluster = Cluster(data)
    with serve(*cluster.flags, "--job_name", "ps", "--until_workers_end",
               "--worker_timeout", 6) as ps, cluster.start("worker", 0, epochs=4000) as first:
        first.wait_for("Step: ")
        first.process.kill()
        assert ps.finish() == 1, ps.text()
        name = "/job:worker/replica:0/task:0 at "
        assert name in ps.text() and " is gone; waiting for its return: " in ps.text(), ps.text()
        assert " is gone and did not return within 3 s: " in ps.text(), ps.text()


def launched(data):
    done = run(TENON, "launch", "--ps", 1, "--workers", 2, "--", REPLICA, "--data", data,
               "--training_epochs", 2)
    assert done.returncode == 0, done
    for task in ("worker 0", "worker 1"):
        assert f"[{task}] done" in done.stdout, done.stdout
    for task in ("ps 0", "worker 0", "worker 1"):
        assert re.search(rf"^{task} at 127\.0\.0\.1:\d+, process \d+$", done.stdout, re.M), done.stdout


def launched_and_failed():
    done = run(TENON, "launch", "--ps", 1, "--workers", 2, "--", REPLICA, "--data", "/nonexistent")
    assert done.returncode == 1, done
    found = re.fullmatch(r"tenon: ABORTED: (worker [01]|ps 0) ended with exit code 1; the other tasks "
                         r"are ended\nThe last lines of (.*):\n(  .*\n)+", done.stderr)
    assert found and found[1] == found[2] and "/nonexistent" in done.stderr, done.stderr


def launched_by_its_name_alone():
    """A program of this folder, which is none of the path."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "prog"), "w", encoding="ascii") as out:
            out.write("#!/bin/sh\n")
        os.chmod(os.path.join(folder, "prog"), 0o755)
        for name, wanted in (("prog", "cannot run prog: No such file or directory; did you mean ./prog?"),
                             ("gorp", "cannot run gorp: No such file or directory")):
            done = subprocess.run([os.path.abspath(TENON), "launch", "--ps", "0", "--workers", "1", "--", name],
                                  cwd=folder, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1 and f"[worker 0] {wanted}\n" in done.stdout, done


def wait_until_a_step_runs(address, client):
    """A client's at the server that has this address."""
    deadline = time.monotonic() + 60
    while "1 step runs" not in run(TENON, "status", "grpc://" + address).stdout:
        assert client.process.poll() is None and time.monotonic() < deadline, client.text()
        time.sleep(0.05)


def client_killed(_):
    """The step of a client that is killed ends, and its server answers others."""
    address, = free_addresses(1)
    graph = os.path.join(GRAPHS, "while_v1")
    with serve("--port", address.split(":")[1]), \
            Process(TENON, "run", graph + ".pb", "--master", "grpc://" + address, "--feed",
                    f"x:0={graph}.npz:x0", "--feed", "n:0=2000000000", "--fetch", "count:0") as run_:
        def status():
            done = run(TENON, "status", "grpc://" + address)
            assert done.returncode == 0, done.stderr
            return done.stdout
        wait_until_a_step_runs(address, run_)
        run_.process.kill()
        deadline = time.monotonic() + 60
        while "steps: 0;" not in status():
            assert time.monotonic() < deadline, status()
            time.sleep(0.05)


def server_ends_when_idle(_):
    """`--end_when_idle` counts from the end of the last step, of clients that are killed, too, and not before
    the first one."""
    address, = free_addresses(1)
    graph = os.path.join(GRAPHS, "while_v1")
    command = [TENON, "run", graph + ".pb", "--master", "grpc://" + address, "--feed", f"x:0={graph}.npz:x0",
               "--fetch", "count:0", "--feed"]
    with serve("--port", address.split(":")[1], "--end_when_idle", "1") as server:
        time.sleep(2)
        assert server.process.poll() is None, server.text()
        with Process(*command, "n:0=2000000000") as long_run:
            wait_until_a_step_runs(address, long_run)
            time.sleep(2.5)
            assert long_run.process.poll() is None and server.process.poll() is None, server.text()
            assert run(*command, "n:0=3").returncode == 0
            time.sleep(1.5)
            assert server.process.poll() is None, server.text()
            long_run.process.terminate()
        assert server.finish(60) == 0, server.text()
        assert "no client has used this server for 1 s: ending" in server.text(), server.text()


def worker_stopped(data):
    """`tenon stop` on a worker that trains ends it, and the ps hears of it."""
    for program in (REPLICA, None):
        cluster = Cluster(data)
        address = cluster.flags[-1].split(",")[0]
        train = [REPLICA, "--training_epochs", 100000] if program else \
            [TENON, "train", "mnist", "--epochs", 100000]
        logs = ["--logs_path" if program else "--logs", os.path.join(data, "logs")]
        with cluster.start("ps") as ps, \
                Process(*train, *cluster.flags, "--job_name", "worker", "--data", data,
                        *logs) as worker:
            wait_for_file(os.path.join(data, "logs", "worker0"), worker)
            assert run(TENON, "stop", "grpc://" + address).returncode == 0
            assert worker.finish(60) == 1, worker.text()
            reason = "the server of /job:worker/replica:0/task:0 ends: tenon stop"
            assert reason in worker.text(), worker.text()
            assert ps.finish(60) == 1, ps.text()
            assert reason in ps.text(), ps.text()
        shutil.rmtree(os.path.join(data, "logs"))


def wait_for_file(folder, process, timeout=60):
    """Waits until there is a file in the folder: the training has begun."""
    deadline = time.monotonic() + timeout
    while not (os.path.isdir(folder) and os.listdir(folder)):
        assert process.process.poll() is None and time.monotonic() < deadline, process.text()
        time.sleep(0.05)


def waiting_is_said(data):
    cluster = Cluster(data)
    with cluster.start("worker", 0) as worker:
        worker.wait_for(" waits for /job:ps/replica:0/task:0 at " + cluster.flags[1] + ", 5 s now",
                        timeout=60)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        write_mnist(FOLDER)
        sys.exit(main([
            ("a worker that comes after another has finished trains to its end",
             lambda: worker_after_another(FOLDER)),
            ("a worker that joins late goes on from there", lambda: worker_joins_late(FOLDER)),
            ("the ps may come last", lambda: chief_comes_last(FOLDER)),
            ("a ps whose worker failed names it", lambda: worker_fails(FOLDER)),
            ("a ps whose workers were killed names them", lambda: worker_killed(FOLDER)),
            ("a client that is killed in mid-step leaves no step", lambda: client_killed(FOLDER)),
            ("a server that is to end when it is idle does", lambda: server_ends_when_idle(FOLDER)),
            ("a worker that was told to stop ends", lambda: worker_stopped(FOLDER)),
            ("a worker says what it waits for", lambda: waiting_is_said(FOLDER)),
            ("a launched job ends with 0", lambda: launched(FOLDER)),
            ("a launched job that failed ends with 1", launched_and_failed),
            ("a program of this folder", launched_by_its_name_alone),
        ]))
