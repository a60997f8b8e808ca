#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the processor's instructions in a step: unlike times, they are the same on a busy machine.

Usage: share/bench/instructions.py [--row NAME ...] TENON [OLDER_TENON]

The rows are the graphs of share/bench/graphs. Prints the instructions of one step of each, and beside them those of an older version and how
many times as many these are. They are counted by callgrind (Debian's package valgrind): those of a process that runs some steps are taken
from those of one that runs more. Valgrind knows no AVX-512, so that the programs are builds for x86-64-v3
(cmake --preset portable && cmake --build --preset portable --target tenon).
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"
FEW, MORE = 2, 6


def instructions(tenon, graph, steps):
    """Those of a process that runs so many steps of the graph."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", tenon, "run", graph, "--init", "prepare",
                   "--fetch", "measured:0", "--steps", str(steps)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except FileNotFoundError:
            sys.exit("instructions.py: there is no valgrind; it is in the package of that name")
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or counted is None:
        sys.exit(f"instructions.py: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return int(counted[1])


def of_a_step(tenon, graph):
    return (instructions(tenon, graph, MORE) - instructions(tenon, graph, FEW)) / (MORE - FEW)


def main():
    rows = sorted(path.stem for path in GRAPHS.glob("*.pbtxt"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", action="append", choices=rows, help="only these (default: all)")
    parser.add_argument("tenon")
    parser.add_argument("older", nargs="?")
    arguments = parser.parse_args()
    for row in arguments.row or rows:
        graph = GRAPHS / f"{row}.pbtxt"
        now = of_a_step(arguments.tenon, graph)
        line = f"{row:20} {now:16,.0f}"
        if arguments.older:
            before = of_a_step(arguments.older, graph)
            line += f" {before:16,.0f} {before / now:8.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
