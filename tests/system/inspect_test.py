#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon inspect` on checkpoints that TensorFlow wrote: what is in them, and what differs."""
import os
import sys

from tenon_process import SOURCE, TENON, main, run

FOLDER = os.path.join(SOURCE, "tests", "data", "checkpoints", "checkpoint_small")
SMALL, SHARDED = os.path.join(FOLDER, "model.ckpt-42"), os.path.join(FOLDER, "sharded")


def inspect(*arguments):
    done = run(TENON, "inspect", *arguments)
    return done.returncode, done.stdout.splitlines(), done.stderr


def listing():
    code, lines, _ = inspect(SMALL)
    assert code == 0 and "a  float[2,3], 24 bytes" in lines, lines
    assert "part  float[10,2], 80 bytes, in 3 slices" in lines, lines
    assert lines[-1] == f"{SMALL}: 8 tensors, 36 elements, 352 bytes, in 1 data files", lines
    assert inspect(SMALL + ".index")[1] == lines
    assert inspect(FOLDER)[1] == lines  # by its state file


def printing():
    code, lines, _ = inspect(SMALL, "--print", "half", "--print", "flag")
    assert code == 0 and lines == ["half = half[2] 1.5 -2", "flag = bool[] true"], lines


def comparing():
    assert inspect(SMALL, "--compare", FOLDER)[:2] == (0, ["8 tensors are the same, 0 differ"])
    code, lines, _ = inspect(SHARDED, "--compare", SMALL)
    assert code == 1 and lines[-1] == "2 tensors are the same, 6 differ", lines
    assert f"flag: only in {SMALL}" in lines, lines


def mistakes():
    for arguments, message in (
            ([SMALL, "--print", "none"], "Key none not found in checkpoint"),
            ([SMALL + "0", "--print", "a"], "there is no checkpoint"),
            ([SMALL, "--compare", SMALL + "0"], "there is no checkpoint")):
        code, lines, error = inspect(*arguments)
        assert code == 1 and not lines and message in error, (arguments, lines, error)


if __name__ == "__main__":
    sys.exit(main([("a list", listing), ("values", printing), ("differences", comparing),
                   ("mistakes", mistakes)]))
