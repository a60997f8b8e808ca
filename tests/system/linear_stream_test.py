#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams of rows (tenon train linear --stream) on clusters of any number of workers and parameter servers: every
row once an epoch, coefficients near the exact ones; a worker that is killed costs its rows of that epoch, which is
said; a parameter server that is killed ends the fit, naming it; flags that do not go with a stream."""
import json
import math
import os
import random
import signal
import sys
import time

from tenon_process import TENON, Process, TooLate, free_addresses, in_a_folder, in_time, main, run

ROWS = 30000
FORMULA = "y ~ x + g + C(h)"


def write_table(folder):
    draw, path = random.Random(1), os.path.join(folder, "t.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("x,g,h,y\n")
        for _ in range(ROWS):
            x, g, h = draw.gauss(3, 2), draw.randrange(40), draw.randrange(5)
            y = draw.random() < 1 / (1 + math.exp(0.7 - 0.3 * x - 0.2 * h + 0.02 * g))
            file.write(f"{x:.4f},g{g},{h},{int(y)}\n")
    return path


def metrics(folder):
    with open(os.path.join(folder, "metrics.json"), encoding="utf-8") as file:
        return json.load(file)


def fit(*command, timeout=120):
    done = run(*command, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clusters(folder):
    path, exact = write_table(folder), os.path.join(folder, "exact")
    command = [TENON, "train", "linear", FORMULA, path, "--family", "binomial", "--quiet", "--model_dir"]
    fit(*command, exact)
    wanted = metrics(exact)["training"]["log_loss"]
    for servers, workers, more in ((0, 1, ()), (0, 2, ()), (1, 2, ()), (2, 3, ("--memory", "20K")), (3, 1, ())):
        out = os.path.join(folder, f"{servers}-{workers}")
        fit(TENON, "launch", "--ps", servers, "--workers", workers, "--", *command, out, "--stream", "--epochs",
            "2", "--batch", "128", *more)
        found = metrics(out)
        assert found["stream"]["rows_read"] == 2 * ROWS and found["stream"]["rows_missed"] == 0, found
        assert found["method"] == "ftrl" and not found["converged"], found
        assert wanted <= found["training"]["log_loss"] < wanted + 0.002, (wanted, found)
        predicted = os.path.join(folder, "p.csv")
        fit(TENON, "predict", out, path, "--output", predicted)
        with open(predicted, encoding="utf-8") as file:
            assert sum(1 for _ in file) == ROWS + 1


def tasks(command, workers, servers):
    """The arguments of each worker and each parameter server."""
    addresses = free_addresses(workers + servers)
    hosts = ["--worker_hosts", ",".join(addresses[:workers])]
    if servers:
        hosts += ["--ps_hosts", ",".join(addresses[workers:])]
    return [[*command, *hosts, "--job_name", job, "--task_index", str(task)]
            for job, count in (("worker", workers), ("ps", servers)) for task in range(count)]


def long_stream(path, out):
    return [TENON, "train", "linear", FORMULA, path, "--family", "binomial", "--model_dir", out, "--threads", "1",
            "--stream", "--batch", "8", "--epochs"]


def killed_worker(folder):
    in_time(lambda epochs: worker_is_killed(folder, epochs), 12, 48, 192)


def worker_is_killed(folder, epochs):
    path, out = write_table(folder), os.path.join(folder, f"model{epochs}")
    first, second, third, server = tasks([*long_stream(path, out), epochs], 3, 1)
    with Process(*first) as chief, Process(*second) as two, Process(*third) as three, Process(*server) as ps:
        chief.wait_for("pass ", 120)
        three.strike(signal.SIGKILL)
        if three.finish() == 0 or f"pass {epochs}" in chief.text():
            raise TooLate(chief.text())
        assert chief.finish() == 0, chief.text()
        assert two.finish() == 0 and ps.finish() == 0, two.text() + ps.text()
        text = chief.text()
    assert "/job:worker/replica:0/task:2 is lost, and its rows of this epoch are missed" in text, text
    found = metrics(out)
    assert found["stream"]["rows_missed"] > 0, found
    assert found["stream"]["rows_read"] + found["stream"]["rows_missed"] == epochs * ROWS, found
    assert any("rows of a table of 30,000" in warning for warning in found["warnings"]), found
    assert found["rows"]["used"] == ROWS, found


def killed_server(folder):
    path, out = write_table(folder), os.path.join(folder, "model")
    first, second, server, other = tasks([*long_stream(path, out), "1000"], 2, 2)
    with Process(*first) as chief, Process(*second) as two, Process(*server) as ps, Process(*other) as gone:
        chief.wait_for("pass ", 120)
        gone.process.kill()
        began = time.monotonic()
        assert chief.finish() == 1, chief.text()
        assert time.monotonic() - began < 60, chief.text()
        assert two.finish() == 1 and ps.finish() == 1, two.text() + ps.text()
        text = chief.text()
    assert "/job:ps/replica:0/task:1 is gone, and its part of the coefficients with it" in text, text


def wrong_flags(folder):
    path = write_table(folder)
    for flags, said in ((("--stream", "--robust"), "--robust wants standard errors, which --stream has not"),
                        (("--stream", "--path", "5"), "--path is one of exact fits"),
                        (("--stream", "--method", "lbfgs"), "--method is one of exact fits"),
                        (("--epochs", "2"), "--epochs is one of --stream"),
                        (("--batch", "2"), "--batch is one of --stream"),
                        (("--stream", "--batch", "0"), "--batch"),
                        (("--stream", "--learning_rate", "-1"), "--learning_rate")):
        done = run(TENON, "train", "linear", "y ~ x", path, "--family", "binomial", *flags)
        assert done.returncode == 2 and said in done.stderr, (flags, done.stderr)
    done = run(TENON, "train", "linear", "y ~ x", path, "--stream", "--lasso", "1", "--standardize", "all")
    assert done.returncode == 1 and "--standardize numeric" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(main([(case.__name__.replace("_", " "), in_a_folder(case))
                   for case in (clusters, killed_worker, killed_server, wrong_flags)]))
