#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard shows what Tenon writes: scalars, histograms and the graph, read through its HTTP API.

Trains the built-in MNIST model for two epochs with --logs and asks a TensorBoard of its own.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from tensorflow_environment import TENON, VENV, end_with_parent, main_with_tensorflow

EPOCHS = 2
STEPS = 550 * EPOCHS
PATIENCE = 240  # seconds


class TensorBoard:
    def __init__(self, logs):
        self.process = subprocess.Popen(
            [os.path.join(VENV, "bin", "tensorboard"), "--logdir", logs, "--port", "0",
             "--host", "127.0.0.1", "--load_fast=false", "--samples_per_plugin",
             f"scalars={STEPS},histograms=0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=end_with_parent)
        for line in self.process.stderr:
            found = re.search(r"at (http://127\.0\.0\.1:\d+)", line)
            if found:
                self.address = found.group(1)
                return
        raise RuntimeError("TensorBoard did not start")

    def get(self, path, **query):
        url = f"{self.address}/data/plugin/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
            return answer.read().decode()

    def wait_for(self, what, get, enough):
        """TensorBoard reads in the background: asks until `enough`."""
        end = time.monotonic() + PATIENCE
        value = None
        while time.monotonic() < end:
            try:
                value = get()
                if enough(value):
                    return value
            except urllib.error.HTTPError as error:
                value = error
            time.sleep(.5)
        raise AssertionError(f"TensorBoard has not shown {what} in {PATIENCE} s; last: {value}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def check(board, last_cost):
    costs = board.wait_for(
        "the costs", lambda: json.loads(board.get("scalars/scalars", run="worker0", tag="cost")),
        lambda points: len(points) == STEPS)
    steps = [point[1] for point in costs]
    assert steps == sorted(steps) and len(set(steps)) == STEPS, "steps are missing or double"
    assert abs(costs[-1][2] - last_cost) < 1e-3, f"found {costs[-1]}, wanted {last_cost}"
    tags = json.loads(board.get("scalars/tags"))["worker0"]
    assert set(tags) == {"cost", "accuracy"}, tags

    for tag, largest in (("hidden/weights", 8), ("output/biases", 8)):
        entries = board.wait_for(
            f"the histogram {tag}",
            lambda tag=tag: json.loads(board.get("histograms/histograms", run="worker0", tag=tag)),
            lambda found: len(found) == EPOCHS)
        size = sum(bucket[2] for bucket in entries[-1][2])
        assert size == (78400 if tag == "hidden/weights" else 10), (tag, size)
        assert all(abs(bucket[0]) < largest for bucket in entries[-1][2]), tag

    graph = board.wait_for("the graph", lambda: board.get("graphs/graph", run="worker0",
                                                          conceptual="false"),
                           lambda text: "node {" in text)
    for node in ("hidden/weights", "output/Softmax", "train/gradients/hidden/MatMul_grad/MatMul_1"):
        assert node in graph, f"the graph lacks {node}"


def main():
    with tempfile.TemporaryDirectory() as logs:
        trained = subprocess.run([TENON, "train", "mnist", "--model", "classic",
                                  "--epochs", str(EPOCHS), "--logs", logs],
                                 check=True, stdout=subprocess.PIPE, text=True).stdout
        last_cost = float(re.findall(r"100%.*cost ([\d.]+)", trained)[-1])
        with TensorBoard(logs) as board:
            check(board, last_cost)
    print(f"ok: {STEPS} costs, {EPOCHS} histograms a variable, the graph")
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
