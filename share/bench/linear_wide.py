#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fit by lbfgs costs as a model gets wider: tables with the same number of rows and of nonzero entries, whose
four factors have more and more levels.

    share/bench/linear_wide.py FOLDER                       # 10^3 to 10^6 coefficients on 10^6 rows; makes the tables

A line a width: coefficients, passes, milliseconds a pass, seconds from the CSV file to the end without files of a
model, those of computing on all cores, the same two with the model's files, the most memory, and seconds of tenon
predict on the table with that model. The least of --runs, since whoever else computes on the machine shows.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMBERS, FACTORS = 4, 4
FORMULA = "y ~ " + " + ".join([f"x{i}" for i in range(NUMBERS)] + [f"f{i}" for i in range(FACTORS)])


def make(path, rows, columns):
    """A table whose factors have together about so many levels; each level has about as many rows."""
    draw = random.Random(columns)
    levels = max(2, columns // FACTORS)
    effects = [[draw.gauss(0, 0.5) for _ in range(levels)] for _ in range(FACTORS)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(["y"] + [f"x{i}" for i in range(NUMBERS)] + [f"f{i}" for i in range(FACTORS)]) + "\n")
        for _ in range(rows):
            numbers = [draw.gauss(0, 1) for _ in range(NUMBERS)]
            codes = [int(draw.random() * levels) for _ in range(FACTORS)]
            chance = 0.3 * numbers[0] - 0.2 * numbers[1] + sum(e[c] for e, c in zip(effects, codes))
            late = int(draw.random() < 1 / (1 + 2.718281828 ** -chance))
            file.write(f"{late}," + ",".join(f"{x:.3f}" for x in numbers) + "".join(f",k{c}" for c in codes) + "\n")


def measure(command):
    """Seconds, those of computing, and MB of a process that ends well."""
    begin = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"linear_wide.py: {' '.join(map(str, command[:3]))} ends with {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def seconds_of_passes(folder):
    """How many passes there were, and the seconds of one, between the first and the last."""
    with open(os.path.join(folder, "iterations.csv"), newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    first, last = lines[0], lines[-1]
    passes = int(last["pass"]) - int(first["pass"])
    return int(last["pass"]), (float(last["seconds"]) - float(first["seconds"])) / max(passes, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--tenon", default=str(ROOT / "build" / "release" / "tenon"), metavar="PATH")
    parser.add_argument("--columns", default="1000,10000,100000,1000000")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--penalty", default="--ridge 1 --standardize numeric", help="flags of tenon train linear")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=3)
    flags = parser.parse_args()
    flags.folder.mkdir(parents=True, exist_ok=True)
    print("| coefficients | passes | ms a pass | s | of computing | s with files | of computing | MB | s to predict |\n" + "|---" * 9 + "|", flush=True)
    for columns in map(int, flags.columns.split(",")):
        table = flags.folder / f"wide_{flags.rows}_{columns}.csv"
        if not table.exists():
            make(table, flags.rows, columns)
        command = [flags.tenon, "train", "linear", FORMULA, table, "--family", "binomial", "--method", "lbfgs", "--quiet",
                   "--threads", flags.threads, *flags.penalty.split()]
        alone, with_files, predicted, passes, coefficients = [], [], [], [], 0
        for _ in range(flags.runs):
            with tempfile.TemporaryDirectory() as model:
                alone.append(measure(command))
                with_files.append(measure([*command, "--model_dir", model]))
                passes.append(seconds_of_passes(model))
                with open(os.path.join(model, "metrics.json"), encoding="utf-8") as file:
                    coefficients = json.load(file)["coefficients"]
                predicted.append(measure([flags.tenon, "predict", model, table, "--output", os.path.join(model, "p.csv")]))
        least = [[min(column) for column in zip(*runs)] for runs in (passes, alone, with_files, predicted)]
        print(f"| {coefficients:,} | {least[0][0]} | {1000 * least[0][1]:.1f} | {least[1][0]:.1f} | {least[1][1]:.1f} | "
              f"{least[2][0]:.1f} | {least[2][1]:.1f} | {least[2][2]:,.0f} | {least[3][0]:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
