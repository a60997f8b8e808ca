#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The classic network on MNIST, written by hand, takes at most 400 tokens of C++, builds outside the
tree against an installed Tenon, and learns."""
import os
import re
import subprocess
import tempfile
import time

import outside_project

MOST_TOKENS = 400
SKIPPED = r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*"
TOKEN = r"""
    (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
  | (?P<operator><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S)
"""


def count_tokens(text):
    # What looks like a comment in a string is none.
    text = re.sub(rf'("(?:\\.|[^"\\])*")|{SKIPPED}', lambda m: m.group(1) or " ", text,
                  flags=re.S | re.M)
    return sum(1 for _ in re.finditer(TOKEN, text, re.X))


def main():
    assert count_tokens('#include <a>\nint x = f("//", 1e-3);  // no\n') == 10
    program = outside_project.read("tests", "system", "mlp.cc")
    tokens = count_tokens(program)
    assert tokens <= MOST_TOKENS, f"found {tokens} tokens, wanted at most {MOST_TOKENS}"
    with tempfile.TemporaryDirectory() as folder:
        programs = outside_project.build_program(folder, "mlp", program)
        start = time.monotonic()
        # It reads share/mnist.
        text = subprocess.run([os.path.join(programs, "mlp")], cwd=outside_project.SOURCE,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
        seconds = time.monotonic() - start
    accuracy = float(re.search(r"^accuracy (\S+)$", text, re.M).group(1))
    assert accuracy > 0.85 and seconds < 60, (text, seconds)
    print(f"{tokens} tokens, accuracy {accuracy:.3f} after {seconds:.0f} s")


if __name__ == "__main__":
    main()
