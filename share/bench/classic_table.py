#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the classic program: its accuracy on MNIST and its time with 1, 2 and 3 workers, beside
TensorFlow's, each after the other. In the tree, after a build:

    share/bench/classic_table.py                      # Tenon alone
    share/bench/classic_table.py --peer_python PYTHON # and the TensorFlow of that Python
"""
import argparse
import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def launched(build, workers, command):
    """What the tasks print."""
    launch = [os.path.join(build, "tenon"), "launch", "--ps", "1", "--workers", str(workers), "--"]
    return subprocess.run(launch + command, check=True, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL).stdout


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def wait_until_it_listens(process, port, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nothing listens at port {port}") from error
            time.sleep(.1)


def in_turn(workers, command):
    """The same for TensorFlow, whose workers die when they ask a parameter server that does not listen
    yet: that one first."""
    ports = free_ports(1 + workers)
    hosts = [f"127.0.0.1:{port}" for port in ports]
    command = command + ["--ps_hosts", hosts[0], "--worker_hosts", ",".join(hosts[1:])]
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
    with tempfile.TemporaryFile("w+") as errors, contextlib.ExitStack() as stack:

        def start(job, index):
            process = subprocess.Popen(command + ["--job_name", job, "--task_index", str(index)],
                                       stdout=subprocess.PIPE, stderr=errors, text=True,
                                       env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        wait_until_it_listens(start("ps", 0), ports[0])
        started = [start("worker", i) for i in range(workers)]
        out = "".join(process.communicate()[0] for process in started)
        if any(process.returncode != 0 for process in started):
            errors.seek(0)
            raise RuntimeError(f"a worker failed:\n{errors.read()[-3000:]}")
        return out


def train(build, workers, epochs, program, is_tensorflow):
    """(accuracy of the worker that ended last, seconds it took)"""
    command = program + ["--data", os.path.join(os.path.dirname(HERE), "mnist"), "--training_epochs",
                         str(epochs)]
    if not is_tensorflow:
        out = launched(build, workers, command)
    for attempt in range(3 if is_tensorflow else 0):
        try:
            out = in_turn(workers, command)
            break
        except RuntimeError:
            if attempt == 2:
                raise
    accuracy = re.findall(r"Test-Accuracy: ([\d.]+)", out)
    seconds = re.findall(r"Total Time: ([\d.]+)s", out)
    assert len(accuracy) == len(seconds) == workers, out
    return max((float(s), float(a)) for s, a in zip(seconds, accuracy))[::-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--peer_python", help="a Python that has TensorFlow 2.15")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3])
    flags = parser.parse_args()
    systems = {"tenon": [os.path.join(flags.build, "example_mnist_replica")]}
    if flags.peer_python:
        peer = os.path.join(HERE, "tensorflow_mnist_replica.py")
        systems["TensorFlow"] = [flags.peer_python, peer]
    print("| workers |" + "".join(f" {s}: accuracy | {s}: s |" for s in systems))
    print("|---" * (1 + 2 * len(systems)) + "|")
    for workers in flags.workers:
        row = f"| {workers} |"
        for system, program in systems.items():
            accuracy, seconds = train(flags.build, workers, flags.epochs, program,
                                      system == "TensorFlow")
            row += f" {accuracy:.2f} | {seconds:.1f} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
