#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md, and the end of docs/compatibility.md, are what `tenon ops` prints."""
import difflib
import os
import sys

from tenon_process import SOURCE, TENON, main, run


def read(page):
    with open(os.path.join(SOURCE, "docs", page), encoding="utf-8") as file:
        return file.read().splitlines()


def expect_printed(lines, page, option):
    done = run(TENON, "ops", option)
    assert done.returncode == 0, done.stderr
    difference = list(difflib.unified_diff(lines, done.stdout.splitlines(), page,
                                           "tenon ops " + option, lineterm="", n=0))
    assert not difference, "\n".join(difference[:40])


def page_is_current():
    expect_printed(read("ops.md"), "docs/ops.md", "--markdown")


def tables_are_current():
    lines = read("compatibility.md")
    expect_printed(lines[lines.index("## Ops") + 2:], "docs/compatibility.md", "--compatibility")


def one_op_tells_of_its_arguments():
    done = run(TENON, "ops", "MatMul")
    assert done.returncode == 0, done.stderr
    for line in ("MatMul(a: T, b: T) -> product: T", "  a: [m, k]; [k, m] with transpose_a.",
                 "  transpose_a: bool = false", "      Transpose it first.", "Gradient: yes"):
        assert line in done.stdout.splitlines(), f"no line '{line}' in\n{done.stdout}"


if __name__ == "__main__":
    sys.exit(main([("docs/ops.md is what the command prints", page_is_current),
                   ("docs/compatibility.md ends with what the command prints", tables_are_current),
                   ("tenon ops NAME tells of arguments", one_op_tells_of_its_arguments)]))
