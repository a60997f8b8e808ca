#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Linear models on the workers of a cluster: the estimates do not depend on how many there are, how many
files there are or how these are compressed; a worker that is killed costs a pass and changes nothing; a chief
that is killed goes on where it was when it is started again; forty workers on one machine."""
import csv
import gzip
import os
import random
import re
import signal
import sys
import time

from tenon_process import TENON, Process, free_addresses, in_a_folder, main, run

FORMULA = "y ~ x + g + C(h)"


def rows_of(count, seed):
    """Lines of a table with quotes, ends of lines within quotes, and missing values."""
    draw = random.Random(seed)
    for i in range(count):
        x, g, h = draw.gauss(3, 2), draw.choice(["a", "b,c", 'd "e"', "f\ng"]), draw.randrange(5)
        y = 1 if draw.random() < 1 / (1 + 2.718 ** (0.7 - 0.3 * x - 0.2 * h)) else 0
        quoted = '"' + g.replace('"', '""') + '"'
        yield f"{i},{x:.4f},{quoted},{h},{'NA' if i % 97 == 0 else y}\n"


def write_tables(folder, count, files, compressed=False, seed=1):
    """The paths of tables with `count` rows together, each with a header."""
    lines, paths = list(rows_of(count, seed)), []
    for f in range(files):
        part = lines[f * count // files:(f + 1) * count // files]
        text = ("id,x,g,h,y\n" + "".join(part)).encode()
        path = os.path.join(folder, f"part{f}-of-{files}.csv" + (".gz" if compressed else ""))
        with open(path, "wb") as out:
            out.write(gzip.compress(text) if compressed else text)
        paths.append(path)
    return paths


def coefficients(folder):
    with open(os.path.join(folder, "coefficients.csv"), newline="", encoding="utf-8") as file:
        return {(r["term"], r["level"]): (r["estimate"], r["std_error"], r["rows"])
                for r in csv.DictReader(file)}


def compare(found, wanted, tolerance=1e-9):
    assert found.keys() == wanted.keys(), (found.keys(), wanted.keys())
    for key, values in wanted.items():
        assert found[key][2] == values[2], (key, found[key], values)
        for a, b in zip(found[key][:2], values[:2]):
            assert (a == b == "") or abs(float(a) - float(b)) <= tolerance * abs(float(b)), (key, a, b)


def fit(*command, timeout=120):
    done = run(*command, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def same_on_any_number(folder):
    family = ["--family", "binomial", "--quiet"]
    whole = write_tables(folder, 30000, 1)
    one = os.path.join(folder, "one")
    fit(TENON, "train", "linear", FORMULA, *whole, *family, "--model_dir", one)
    wanted = coefficients(one)
    assert sum(int(v[2]) for k, v in wanted.items() if k[0] == "g") == 30000 - 310, wanted
    cases = [(1, 0, 1, False), (2, 0, 1, False), (3, 1, 5, False), (7, 2, 5, True), (3, 0, 1, True)]
    for workers, servers, files, compressed in cases:
        paths = write_tables(folder, 30000, files, compressed)
        out = os.path.join(folder, f"{workers}-{servers}-{files}-{compressed}")
        fit(TENON, "launch", "--ps", servers, "--workers", workers, "--", TENON, "train", "linear",
            FORMULA, *paths, *family, "--model_dir", out)
        compare(coefficients(out), wanted)
    # The rows that do not fit into memory are read again, and the same workers give the same bits.
    again = os.path.join(folder, "again")
    for memory in ("0", "1K"):
        fit(TENON, "train", "linear", FORMULA, *whole, *family, "--model_dir", again, "--memory", memory)
        compare(coefficients(again), wanted)
    texts = []
    for name in ("first", "second"):
        out = os.path.join(folder, name)
        fit(TENON, "launch", "--ps", "0", "--workers", "3", "--", TENON, "train", "linear", FORMULA, *whole,
            *family, "--model_dir", out)
        with open(os.path.join(out, "coefficients.csv"), encoding="utf-8") as file:
            texts.append(file.read())
    assert texts[0] == texts[1], texts


def gradients_alone(folder):
    """lbfgs, with a ridge and without: the same answer on any number of workers, and the same bits twice."""
    (path,) = write_tables(folder, 30000, 1)
    for penalty in ([], ["--ridge", "1"], ["--lasso", "0.001"]):
        found, texts = [], []
        for name, workers in (("one", 1), ("two", 2), ("three", 3), ("again", 3)):
            out = os.path.join(folder, name)
            fit(TENON, "launch", "--ps", "0", "--workers", workers, "--", TENON, "train", "linear", FORMULA, path,
                "--family", "binomial", "--method", "lbfgs", "--quiet", "--model_dir", out, *penalty)
            found.append(coefficients(out))
            with open(os.path.join(out, "coefficients.csv"), encoding="utf-8") as file:
                texts.append(file.read())
        assert texts[2] == texts[3], texts
        assert all(error == "" for _, error, _ in found[0].values()), found[0]
        for other in found[1:]:
            assert other.keys() == found[0].keys(), (other, found[0])
            for key, (estimate, _, _) in found[0].items():
                assert abs(float(other[key][0]) - float(estimate)) <= 1e-8, (key, other[key], estimate)


def write_wide(folder, count, columns):
    """A table, and a formula of all products of two of its columns."""
    path, draw = os.path.join(folder, "wide.csv"), random.Random(3)
    names = [f"x{c}" for c in range(columns)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(["y"] + names) + "\n")
        for _ in range(count):
            values = [draw.randrange(100) for _ in range(columns)]
            file.write(",".join(map(str, [int(draw.random() < 0.1 + 0.007 * values[0])] + values)) + "\n")
    products = [f"{a}:{b}" for i, a in enumerate(names) for b in names[:i]]
    return path, "y ~ " + " + ".join(names + products)


def wait_for_a_pass(process, folder):
    """Until a pass has left its checkpoint, which is gone when the fit is over."""
    deadline = time.monotonic() + 120
    while not os.path.exists(os.path.join(folder, "fit.checkpoint")):
        assert process.process.poll() is None and time.monotonic() < deadline, process.text()
        time.sleep(0.01)


def task(index, addresses, *command):
    return Process(*command, "--worker_hosts", ",".join(addresses), "--job_name", "worker", "--task_index",
                   index)


def deaths(folder):
    path, formula = write_wide(folder, 60000, 30)
    command = [TENON, "train", "linear", formula, path, "--family", "binomial", "--threads", "1", "--model_dir"]
    one = os.path.join(folder, "one")
    fit(*command, one, "--quiet", timeout=300)
    wanted = coefficients(one)

    # A worker dies for good.
    out, addresses = os.path.join(folder, "worker"), free_addresses(3)
    with task(0, addresses, *command, out) as chief, task(1, addresses, *command, out) as second, \
            task(2, addresses, *command, out) as third:
        wait_for_a_pass(chief, out)
        third.process.kill()
        assert chief.finish() == 0, chief.text()
        assert second.finish() == 0, second.text()
        assert "worker 2 is gone; the rows are dealt anew to 2 of 3 workers" in chief.text(), chief.text()
    compare(coefficients(out), wanted)

    # A worker dies and is started again.
    out, addresses = os.path.join(folder, "returned"), free_addresses(2)
    with task(0, addresses, *command, out) as chief, task(1, addresses, *command, out) as second:
        wait_for_a_pass(chief, out)
        second.process.kill()
        second.finish()  # the port is free when the process has gone
        with task(1, addresses, *command, out) as returned:
            assert chief.finish() == 0, chief.text()
            assert returned.finish() == 0, returned.text()
    compare(coefficients(out), wanted)

    # The same under a launcher that starts again what was killed.
    out = os.path.join(folder, "restarted")
    launch = [TENON, "launch", "--ps", "0", "--workers", "2", "--max_restarts", "1", "--"]
    with Process(*launch, *command, out) as launcher:
        wait_for_a_pass(launcher, out)
        killed = re.search(r"worker 1 at .*, process (\d+)", launcher.text()).group(1)
        os.kill(int(killed), signal.SIGKILL)
        assert launcher.finish() == 0, launcher.text()
        assert "[worker 1] was ended by signal 9" in launcher.text(), launcher.text()
        assert "[worker 1] started again, process " in launcher.text(), launcher.text()
    compare(coefficients(out), wanted)

    # A parameter server, which has no part in it, dies.
    out, addresses, (server,) = os.path.join(folder, "server"), free_addresses(2), free_addresses(1)
    with_server = [*command, out, "--ps_hosts", server]
    with task(0, addresses, *with_server) as chief, task(1, addresses, *with_server) as second, \
            Process(*with_server, "--worker_hosts", ",".join(addresses), "--job_name", "ps", "--task_index",
                    0) as third:
        wait_for_a_pass(chief, out)
        third.process.kill()
        assert chief.finish() == 0, chief.text()
        assert second.finish() == 0, second.text()
    compare(coefficients(out), wanted)

    # The chief dies, and the same command goes on.
    out, addresses = os.path.join(folder, "chief"), free_addresses(2)
    with task(0, addresses, *command, out) as chief, task(1, addresses, *command, out) as second:
        wait_for_a_pass(chief, out)
        chief.process.kill()
        chief.finish()
        assert os.path.exists(os.path.join(out, "fit.checkpoint"))
        with task(0, addresses, *command, out) as again:
            assert again.finish() == 0, again.text()
            assert re.search(r"the fit goes on where it was in pass \d", again.text()), again.text()
        assert second.finish() == 0, second.text()
    compare(coefficients(out), wanted)
    assert not os.path.exists(os.path.join(out, "fit.checkpoint"))


def failures_end_all(folder):
    (path,) = write_tables(folder, 1000, 1)
    done = run(TENON, "launch", "--ps", "1", "--workers", "2", "--", TENON, "train", "linear", "y ~ nothing",
               path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "[worker 0] tenon: " in done.stdout and "nothing" in done.stdout, done.stdout
    done = run(TENON, "launch", "--ps", "0", "--workers", "2", "--", TENON, "train", "linear", "y ~ x", "-")
    assert "the standard input can be read by one process alone" in done.stdout, done.stdout


def forty_workers(folder):
    (path,) = write_tables(folder, 30000, 1)
    out, one = os.path.join(folder, "forty"), os.path.join(folder, "one")
    fit(TENON, "launch", "--ps", "1", "--workers", "40", "--", TENON, "train", "linear", FORMULA, path,
        "--family", "binomial", "--quiet", "--model_dir", out, timeout=280)
    fit(TENON, "train", "linear", FORMULA, path, "--family", "binomial", "--quiet", "--model_dir", one)
    compare(coefficients(out), coefficients(one))


if __name__ == "__main__":
    sys.exit(main([(case.__name__.replace("_", " "), in_a_folder(case))
                   for case in (same_on_any_number, gradients_alone, deaths, failures_end_all, forty_workers)]))
