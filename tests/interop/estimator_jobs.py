# SPDX-License-Identifier: Apache-2.0
"""Jobs that TF_CONFIG describes, each task a process, and what becomes of scripts/flights_estimator.py in them."""
import csv
import gzip
import json
import os
import re
import sys
import time

from server_programs import FLIGHTS, SOURCE, TENON, run
from tensorflow_environment import BUILD, PYTHON, VENV

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from tenon_process import Process, free_addresses  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tests", "interop", "scripts", "flights_estimator.py")
TENSORFLOW = {"PATH": f"{BUILD}:{VENV}/bin:{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
              "TF_ENABLE_ONEDNN_OPTS": "0", "NO_PROXY": "*", "GRPC_ENABLE_FORK_SUPPORT": "0", "OMP_NUM_THREADS": "1"}
EVALUATOR = [("evaluator", 0)]
ROWS, EVALUATED = 20000, 4000
BATCH = 64  # of the script, whose loss is a sum over it


class Job:
    """The tasks of a cluster, each a process with a TF_CONFIG of its own."""

    def __init__(self, workers=7, servers=2):
        addresses = free_addresses(1 + workers + servers)
        self.cluster = {"chief": addresses[:1], "worker": addresses[1:1 + workers], "ps": addresses[1 + workers:]}
        self.trainers = [("chief", 0)] + [("worker", i) for i in range(workers)]
        self.servers = [("ps", i) for i in range(servers)]
        self.processes = {}

    def start(self, tasks, command, variables):
        for job, index in tasks:
            config = {"cluster": self.cluster, "task": {"type": job, "index": index}}
            self.processes[job, index] = Process(*command, env=dict(variables, TF_CONFIG=json.dumps(config)))

    def start_evaluator_first(self, others, command, variables):
        """It waits for checkpoints before the others, who may be fast, make any."""
        self.start(EVALUATOR, command, variables)
        self.processes[EVALUATOR[0]].wait_for("secs before starting eval", 300)
        self.start(others, command, variables)

    def text(self, job, index=0):
        return self.processes[job, index].text()

    def finish(self, tasks, seconds):
        """They end by themselves, and well."""
        end = time.monotonic() + seconds
        for task in tasks:
            process = self.processes[task]
            code = process.finish(max(1, end - time.monotonic()))
            assert code == 0, (task, code, process.text()[-3000:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.__exit__()


class Flights:
    """Rows of the sample in files."""

    def __init__(self, folder):
        with gzip.open(FLIGHTS, "rt", encoding="utf-8") as file:
            header, *lines = [next(file) for _ in range(1 + ROWS + EVALUATED)]
        self.folder = os.path.join(folder, "flights")
        os.mkdir(self.folder)
        for i in range(4):
            self.write(f"train-{i}.csv", header, lines[i:ROWS:4])
        self.write("eval.csv", header, lines[ROWS:])

    def write(self, name, header, lines):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.writelines([header, *lines])

    @staticmethod
    def flags(where, model_dir):
        """The script's, for the rows of a folder."""
        return ["--train", f"{where}/train-*.csv", "--eval", f"{where}/eval.csv", "--model_dir", model_dir]


def evaluations(text):
    """{step: {metric: value}} of what tf.estimator logs."""
    found = re.findall(r"Saving dict for global step (\d+): (.*)$", text, re.MULTILINE)
    return {int(step): {name: float(value) for name, value in (pair.split(" = ") for pair in line.split(", "))}
            for step, line in found}


def check_model(model_dir, found, wanted, flights):
    """The metrics are those of TensorFlow alone, and the exported model is the one that was evaluated."""
    for name, difference in (("accuracy", .03), ("average_loss", .03), ("auc", .05)):
        assert abs(found[name] - wanted[name]) < difference, f"{name}: {found}, TensorFlow's {wanted}"
    assert found["auc"] > .65, found
    (version,) = os.listdir(os.path.join(model_dir, "export", "final"))
    table, output = os.path.join(flights.folder, "eval.csv"), os.path.join(flights.folder, "predicted.csv")
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    feeds = [f"--feed={name}={table}:{name}" for name in ("hour", "distance", "temp", "humid", "visib", "month", "carrier")]
    run(dict(os.environ), TENON, "run", os.path.join(model_dir, "export", "final", version), "--signature", "predict",
        *feeds, "--batch", 1000, "--fetch", "class_ids", "--output", output)
    with open(output, encoding="utf-8") as file:
        predicted = [int(float(line)) for line in file.read().split()[1:]]
    assert len(predicted) == len(rows) == EVALUATED
    right = sum(p == int(row["late"]) for p, row in zip(predicted, rows)) / len(rows)
    assert abs(right - found["accuracy"]) < 1e-3, (right, found)


def alone(flights, folder):
    """What TensorFlow reaches by itself."""
    with Process(PYTHON, SCRIPT, *flights.flags(flights.folder, os.path.join(folder, "alone")), "--max_steps", 2000,
                 env=dict(os.environ, **TENSORFLOW)) as process:
        assert process.finish() == 0, process.text()[-3000:]
        return list(evaluations(process.text()).items())[-1][1]


def check_ended(job, steps, model_dir, wanted, flights):
    """All have trained, and a checkpoint of all steps has been evaluated."""
    for task in job.trainers:
        loss = re.search(r"Loss for final step: ([\d.]+)\.$", job.processes[task].text(), re.MULTILINE)
        assert loss and float(loss[1]) < .8 * BATCH, (task, job.processes[task].text()[-3000:])
    found = evaluations(job.text("evaluator"))
    last = max(found)
    assert last >= steps and len(found) > 1, found
    saved = max(int(name.split("-")[1].split(".")[0]) for name in os.listdir(model_dir) if name.endswith(".index"))
    # Steps of other workers count themselves between the name of a checkpoint and its content, and between the chief's
    # last checkpoint but one, with which the evaluator is content once it has all steps, and the last.
    assert abs(last - saved) <= 2 * len(job.trainers), (saved, found)
    assert os.listdir(os.path.join(model_dir, "export", "latest")), "nothing was exported"
    check_model(model_dir, found[last], wanted, flights)


def stop_servers(job):
    """The parameter servers end when they are told."""
    for _, index in job.servers:
        run(dict(os.environ), TENON, "stop", "grpc://" + job.cluster["ps"][index])
    job.finish(job.servers, 30)
