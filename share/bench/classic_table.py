#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the classic program: its accuracy on MNIST and its time with 1, 2 and 3 workers, beside
TensorFlow's, each after the other. In the tree, after a build:

    share/bench/classic_table.py                      # Tenon alone
    share/bench/classic_table.py --peer_python PYTHON # and the TensorFlow of that Python
"""
import argparse
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def train(build, workers, epochs, program):
    """(accuracy of the worker that ended last, seconds it took)"""
    launch = [os.path.join(build, "tenon"), "launch", "--ps", "1", "--workers", str(workers), "--"]
    flags = ["--data", os.path.join(os.path.dirname(HERE), "mnist"), "--training_epochs", str(epochs)]
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
    out = subprocess.run(launch + program + flags, check=True, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL, env=environment).stdout
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
        for program in systems.values():
            accuracy, seconds = train(flags.build, workers, flags.epochs, program)
            row += f" {accuracy:.2f} | {seconds:.1f} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
