#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of rows of `tenon bench`, which no other program on the machine changes, as times are changed.

Usage: share/bench/instructions.py [--build FOLDER] [--record FILE] [--compare FILE] ROW ... Wants valgrind, and a build for processors
that it knows: those of the preset `portable`, which is the default. Prints the instructions of one run of each row, in millions:
what two runs take less what one takes, with all threads of the process and without processes that it starts. --record writes them as
JSON; --compare reads such a file, prints how many times as many there are now, and ends with 1 where a row has 5 % more.

Rows that wait for others, as those between processes, count what they do while they wait, and vary.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ALLOWED = 1.05


def fail(reason):
    sys.exit(f"instructions.py: {reason}")


def collected(program, row, runs):
    """The instructions of a whole process that makes so many runs."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, "bench", "--row", row, "--runs", str(runs)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            fail("valgrind is not there; packages of that name have it")
    if "Unrecognised instruction" in done.stderr or "unhandled instruction" in done.stderr:
        fail(f"{program} has instructions that valgrind does not know; cmake --preset portable makes one without them")
    found = re.findall(r"Collected : (\d+)", done.stderr)  # of processes that it forked, too, before its own
    if done.returncode != 0 or not found:
        fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return int(found[-1])


def recorded(path):
    """{row: instructions} of a file that --record wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            counts = json.load(file)
        if all(isinstance(count, int) and count > 0 for count in counts.values()):
            return counts
    except (OSError, ValueError, AttributeError) as error:
        fail(f"{path} is not what --record writes: {error!r}")
    return fail(f"{path} is not what --record writes: wanted a whole number above 0 for each row")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/portable")
    parser.add_argument("--record")
    parser.add_argument("--compare")
    parser.add_argument("rows", nargs="+")
    flags = parser.parse_args()
    before = recorded(flags.compare) if flags.compare else {}
    program = os.path.join(flags.build, "tenon")
    if not os.access(program, os.X_OK):
        fail(f"there is no program {program}; --build names the folder of one")
    if flags.record and not os.access(os.path.dirname(os.path.abspath(flags.record)), os.W_OK):
        fail(f"--record: cannot write to {flags.record}")
    counts, more = {}, []
    for row in flags.rows:
        one, two = collected(program, row, 1), collected(program, row, 2)
        counts[row] = max(1, two - one)
        line = f"{row}: {counts[row] / 1e6:,.1f} million"
        if row in before:
            ratio = counts[row] / before[row]
            line += f", {ratio:.3f} times as many as recorded"
            more += [row] if ratio > ALLOWED else []
        elif flags.compare:
            line += ", not recorded"
        print(line, flush=True)
    if flags.record:
        with open(flags.record, "w", encoding="utf-8") as file:
            json.dump(counts, file, indent=1)
            file.write("\n")
    if more:
        fail(f"more than {ALLOWED:.0%} of what is recorded: {', '.join(more)}")


if __name__ == "__main__":
    main()
