#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md is what `tenon ops --markdown` prints."""
import difflib
import os
import sys

from tenon_process import SOURCE, TENON, main, run


def page_is_current():
    with open(os.path.join(SOURCE, "docs", "ops.md"), encoding="utf-8") as file:
        page = file.read()
    done = run(TENON, "ops", "--markdown")
    assert done.returncode == 0, done.stderr
    difference = list(difflib.unified_diff(page.splitlines(), done.stdout.splitlines(), "docs/ops.md",
                                           "tenon ops --markdown", lineterm="", n=0))
    assert not difference, "\n".join(difference[:40])


def one_op_tells_of_its_arguments():
    done = run(TENON, "ops", "MatMul")
    assert done.returncode == 0, done.stderr
    for line in ("MatMul(a: T, b: T) -> product: T", "  a: [m, k]; [k, m] with transpose_a.",
                 "  transpose_a: bool = false", "      Transpose it first.", "Gradient: yes"):
        assert line in done.stdout.splitlines(), f"no line '{line}' in\n{done.stdout}"


if __name__ == "__main__":
    sys.exit(main([("docs/ops.md is what the command prints", page_is_current),
                   ("tenon ops NAME tells of arguments", one_op_tells_of_its_arguments)]))
