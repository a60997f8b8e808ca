#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of the README builds outside the tree against an installed Tenon, and trains."""
import os
import re
import tempfile

import outside_project


def main():
    program = re.search(r"```cpp\n(.*?)```", outside_project.read("README.md"), re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        programs = outside_project.build_program(folder, "first", program)
        lines = outside_project.run(os.path.join(programs, "first")).splitlines()
    assert lines.pop() == "OK", lines
    losses = [float(line) for line in lines]
    assert len(losses) == 20 and losses[0] == 36 and losses[-1] < 1e-3, losses
    print("losses", losses[0], "to", losses[-1])


if __name__ == "__main__":
    main()
