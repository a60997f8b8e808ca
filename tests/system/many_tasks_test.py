#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of many tasks on one machine: 40 of Slurm's, which print a line or fit a model, and 200 of `tenon launch`, which fit
one together. Their times are printed, and have a limit that grows with what else the machine does; the estimates are those of one process."""
import os
import re
import sys
import tempfile
import time

import slurm_nodes
from launchers_test import compare, estimates, fit, write_table
from tenon_process import BINARY, main, run, slowness

SKIPPED = 77
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
# Two hundred processes may take longer to start than tasks are waited for by default.
PATIENT = ["--start_up_deadline", 100]


def timed(name, limit, launched, *command):
    before, begin = slowness(), time.monotonic()
    done = launched(*command)
    seconds = time.monotonic() - begin
    slow = max(before, slowness())
    print(f"{name}: {seconds:.1f} s, on a machine that takes {slow:.1f} times as long as alone")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert seconds < limit * slow, (name, seconds, slow)
    return done.stdout


def two_hundred(table, wanted, folder):
    model = os.path.join(folder, "200")
    said = timed("200 tasks by tenon launch", 60, run, TENON, "launch", "--ps", 0, "--workers", 200, "--",
                 *fit(table, model), *PATIENT, "--threads", 1)
    compare(estimates(model), wanted)
    assert len(set(re.findall(r"^worker (\d+) at ", said, re.MULTILINE))) == 200, said[:3000]


def forty_of_slurm(table, wanted, folder):
    with slurm_nodes.SlurmNodes("10.77.0.1") as nodes:
        said = timed("40 tasks by srun", 20, nodes.run, "srun", "-N3", "-n40", "sh", "-c", "echo task $SLURM_PROCID")
        assert sorted(map(int, re.findall(r"^task (\d+)$", said, re.MULTILINE))) == list(range(40)), said
        launch = [TENON, "launch", "--slurm", "--nodes", 3, "--ps", 0, "--workers", 40, "--"]
        said = timed("40 tasks by tenon launch --slurm", 20, nodes.run, *launch, "sh", "-c", "echo it ends")
        assert len(set(re.findall(r"^\[worker (\d+)\] it ends$", said, re.MULTILINE))) == 40, said
        model = os.path.join(folder, "40")
        timed("a fit of 40 tasks by tenon launch --slurm", 20, nodes.run, *launch, *fit(table, model), "--root", "/", "--threads", 1)
        compare(estimates(model), wanted)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        TABLE, ALONE = write_table(FOLDER), os.path.join(FOLDER, "alone")
        assert run(*fit(TABLE, ALONE)).returncode == 0
        WANTED = estimates(ALONE)
        chosen = [("200 tasks", lambda: two_hundred(TABLE, WANTED, FOLDER))]
        if not slurm_nodes.missing():
            chosen.append(("40 tasks of Slurm", lambda: forty_of_slurm(TABLE, WANTED, FOLDER)))
        result = main(chosen)
        if slurm_nodes.missing():
            print("skipped: Slurm needs", slurm_nodes.missing())
            result = result or SKIPPED
        sys.exit(result)
