#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each program of examples/, on a budget of seconds, ends with exit code 0 and learns."""
import glob
import os
import re
import sys
import tempfile

from grammar_text import grammar_text
from tenon_process import BINARY, SOURCE, TENON, free_addresses, main, run, serve

MNIST = os.path.join(SOURCE, "share", "mnist")
FLIGHTS = os.path.join(SOURCE, "share", "flights", "flights_sample.csv.gz")


def program(name):
    return os.path.join(BINARY, "example_" + name)


def succeed(*command):
    """What a command prints that ends with 0."""
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def example(name, *flags):
    return succeed(program(name), *flags)


def figures(pattern, printed):
    """The numbers at each place of the pattern; at least one place."""
    found = [[float(n) for n in m.groups()] for m in re.finditer(pattern, printed)]
    assert found, f"no '{pattern}' in:\n{printed}"
    return found


def last(pattern, printed):
    return figures(pattern, printed)[-1][0]


def expect_accuracy(printed, least=.9):
    accuracies = [a for a, in figures(r"test accuracy: ([0-9.]+)", printed)]
    assert all(least < a <= 1 for a in accuracies), printed
    return accuracies


class Workers:
    """`tenon serve` processes of the jobs, job -> number of tasks."""

    def __init__(self, jobs):
        addresses = iter(free_addresses(sum(jobs.values())))
        cluster = {job: [next(addresses) for _ in range(count)] for job, count in jobs.items()}
        text = ";".join(f"{job}={','.join(tasks)}" for job, tasks in cluster.items())
        self.servers = [serve("--cluster", text, "--job_name", job, "--task_index", i)
                        for job, tasks in cluster.items() for i in range(len(tasks))]
        self.target = "grpc://" + cluster["worker"][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.__exit__()


def linear_regression():
    slope, intercept = figures(r"y = (\S+) x \+ (\S+)", example("linear_regression"))[0]
    assert abs(slope - 3) < .1 and abs(intercept - 2) < .1, (slope, intercept)


def logistic_regression(folder):
    printed = example("logistic_regression", "--data", FLIGHTS, "--model_dir", os.path.join(folder, "late"))
    assert "49,995 rows used" in printed and "C(month)" in printed, printed
    odds = [o for o, in figures(r"odds (\S+) \(", printed)]
    assert len(odds) == 14 and odds == sorted(odds), odds
    assert os.path.exists(os.path.join(folder, "late", "model.json"))


def autoencoder():
    printed = example("autoencoder", "--data", MNIST, "--steps", 500)
    assert 0 < last(r"mean squared error of the test images: (\S+)", printed) < .03, printed


def mnist_conv(folder):
    logs = os.path.join(folder, "conv")
    expect_accuracy(example("mnist_conv", "--data", MNIST, "--logs", logs, "--steps", 100))
    assert glob.glob(os.path.join(logs, "events.out.tfevents.*")), os.listdir(logs)
    assert os.path.exists(os.path.join(logs, "model.ckpt-100.index")), os.listdir(logs)


def in_graph_replication():
    flags = ["--data", MNIST, "--steps", 150]
    expect_accuracy(example("in_graph_replication", *flags))
    with Workers({"ps": 1, "worker": 2}) as workers:
        expect_accuracy(example("in_graph_replication", *flags, "--target", workers.target,
                                "--replicas", 2))


def model_parallel():
    flags = ["--data", MNIST, "--steps", 200]
    expect_accuracy(example("model_parallel", *flags))
    with Workers({"worker": 2}) as workers:
        expect_accuracy(example("model_parallel", *flags, "--target", workers.target, "--devices",
                                "/job:worker/task:0", "/job:worker/task:1"))


def mnist_sync(folder):
    command = [TENON, "launch", "--ps", 1, "--workers", 2, "--", program("mnist_sync"), "--data",
               MNIST, "--checkpoint_dir", os.path.join(folder, "sync"), "--steps"]
    assert len(expect_accuracy(succeed(*command, 150), .85)) == 2
    # From the checkpoint on: the first steps have been done.
    printed = succeed(*command, 200)
    assert len(expect_accuracy(printed)) == 2
    assert all(step >= 200 for step, in figures(r"step (\d+), test accuracy", printed)), printed


def mnist_replica():
    printed = succeed(TENON, "launch", "--ps", 1, "--workers", 2, "--", program("mnist_replica"),
                      "--data", MNIST, "--training_epochs", 1, "--learning_rate", .05)
    assert last(r"Test-Accuracy: (\S+)", printed) > .4, printed


def tables_allreduce(folder):
    tables = os.path.join(folder, "tables")
    made = succeed(sys.executable, os.path.join(SOURCE, "share", "bench", "make_tables.py"), tables, "--rows", 4000)
    greatest = last(r"(\S+) on these rows", made)
    printed = succeed(TENON, "launch", "--allreduce", "--workers", 2, "--", program("tables_allreduce"), "--data", tables)
    assert len(figures(r"restart \d: loss (\S+)", printed)) == 5, printed
    assert abs(last(r"AUC (\S+) of 4000 rows", printed) - greatest) < .005, (made, printed)


def char_lstm(text, folder):
    flags = ["--text", text, "--checkpoint_dir", os.path.join(folder, "lstm"), "--steps"]
    printed = example("char_lstm", *flags, 200)
    first = figures(r"loss = .*?([0-9.e+-]+) \(step 0\)", printed)[0][0]
    assert last(r"final loss: (\S+)", printed) < first / 2, printed
    # What it writes are words: it has found the most frequent one.
    assert " the " in printed.split("it writes: ")[1], printed
    assert "final loss" not in example("char_lstm", *flags, 200)  # all steps are done
    short = os.path.join(folder, "short")
    with open(short, "w", encoding="utf-8") as file:
        file.write("too short")
    mistake = run(program("char_lstm"), "--text", short)
    assert mistake.returncode == 1 and "wanted more than 50" in mistake.stderr, mistake.stderr


def word2vec(text):
    printed = example("word2vec", "--text", text, "--steps", 2000)
    losses = [loss for loss, in figures(r"mean loss (\S+)", printed)]
    assert len(losses) == 10 and losses[-1] < losses[1] < losses[0], printed
    assert len(re.findall(r"^\S+ is near \S+ \S+ \S+$", printed, re.M)) == 5, printed
    mistake = run(program("word2vec"), "--text", text, "--negatives", 1000)
    assert mistake.returncode == 1 and "wanted at least 999" in mistake.stderr, mistake.stderr


def cases(folder):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write(grammar_text(200000))
    tested = {
        "linear_regression": linear_regression,
        "logistic_regression": lambda: logistic_regression(folder), "autoencoder": autoencoder,
        "mnist_conv": lambda: mnist_conv(folder), "in_graph_replication": in_graph_replication,
        "model_parallel": model_parallel, "mnist_sync": lambda: mnist_sync(folder),
        "mnist_replica": mnist_replica, "tables_allreduce": lambda: tables_allreduce(folder), "char_lstm": lambda: char_lstm(text, folder),
        "word2vec": lambda: word2vec(text)}

    def none_is_left_out():
        names = {os.path.basename(path)[:-len(".cc")]
                 for path in glob.glob(os.path.join(SOURCE, "examples", "*.cc"))}
        assert names == set(tested), names ^ set(tested)

    return [*tested.items(), ("all examples are tested", none_is_left_out)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(cases(temporary)))
