#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""share/bench/linear_peers.py on a few of the flights: its table, its JSON, the lines of who is missing; and that others who
are installed find the same as Tenon."""
import gzip
import json
import os
import subprocess
import sys

from tenon_process import SOURCE, TENON, in_a_folder, main

SCRIPT = os.path.join(SOURCE, "share", "bench", "linear_peers.py")
PEERS = os.path.expanduser(os.environ.get("TENON_LINEAR_PEERS", "~/.cache/tenon/linear-peers"))


def bench(folder, *arguments, **environment):
    """What it prints of the first 6,000 rows of the sample, of which the last 1,000 are held out."""
    with gzip.open(os.path.join(SOURCE, "share", "flights", "flights_sample.csv.gz"), "rt") as file:
        header, *rows = [next(file) for _ in range(6001)]
    for name, part in ("train", rows[:5000]), ("test", rows[5000:]):
        with open(os.path.join(folder, f"flights_{name}.csv"), "w", encoding="utf-8") as out:
            out.write(header + "".join(part))
    done = subprocess.run([sys.executable, SCRIPT, "--tenon", os.path.abspath(TENON), "--data", folder, "--runs", "1",
                           "--cores", "1", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250,
                          env=dict(os.environ, **environment), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tenon_alone(folder):
    table = os.path.join(folder, "table.json")
    out = bench(folder, "--tasks", "flights,lm,cloglog,counts", "--peers", "tenon", "--json", table)
    with open(table, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    assert [row["task"] for row in rows] == ["flights", "lm", "cloglog", "counts"], rows
    for row in rows:
        assert row["seconds"] > 0 and row["megabytes"] > 1 and row["deviance"] > 0, row
        assert f"| {row['task']} | tenon | 1 |" in out, out
    assert 0.3 < rows[0]["log_loss"] < 0.7, rows[0]


def who_is_missing(folder):
    nothing = os.path.join(folder, "nothing")
    os.mkdir(nothing)
    for tool in ("taskset", "python3"):
        os.symlink("/usr/bin/" + tool, os.path.join(nothing, tool))
    out = bench(folder, "--tasks", "flights", "--peers", "r,glum,vw", TENON_LINEAR_PEERS=nothing, PATH=nothing)
    for line in (f"skipped: flights, glum: {nothing} has no glum; --install makes it",
                 f"skipped: flights, vw: {nothing} has no vowpalwabbit; --install makes it",
                 "skipped: flights, r: there is no Rscript; apt has it as r-base-core"):
        assert out.count(line) == 1, out


def others_agree(folder):
    """Deviances, of those that are installed."""
    table = os.path.join(folder, "table.json")
    bench(folder, "--tasks", "flights", "--peers", "tenon,sklearn,glum,statsmodels", "--json", table)
    with open(table, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["rows"] if "skipped" not in row]
    assert rows[0]["system"] == "tenon", rows
    for row in rows[1:]:
        assert abs(row["deviance"] / rows[0]["deviance"] - 1) < 1e-4, (row["system"], row["deviance"], rows[0]["deviance"])
    print("compared with", ", ".join(row["system"] for row in rows[1:]) or f"nobody: there is nothing at {PEERS}")


if __name__ == "__main__":
    sys.exit(main([(name, in_a_folder(case)) for name, case in (("Tenon alone", tenon_alone), ("who is missing", who_is_missing),
                                                                ("others agree", others_agree))]))
