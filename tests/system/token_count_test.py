#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The classic network on MNIST, written by hand, takes at most 400 tokens of C++; one of layers with Adam,
saving and restoring at most 450. Both build outside the tree against an installed Tenon, and learn."""
import os
import re
import resource
import subprocess
import tempfile

import outside_project

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


def check(name, most_tokens, least_accuracy):
    program = outside_project.read("tests", "system", name + ".cc")
    tokens = count_tokens(program)
    assert tokens <= most_tokens, f"{name}: found {tokens} tokens, wanted at most {most_tokens}"
    with tempfile.TemporaryDirectory() as folder:
        programs = outside_project.build_program(folder, name, program)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # It reads share/mnist.
        text = subprocess.run([os.path.join(programs, name), folder], cwd=outside_project.SOURCE,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=200).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processors' time: what else runs lengthens that of a clock.
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    accuracy = float(re.search(r"^accuracy (\S+)$", text, re.M).group(1))
    assert accuracy > least_accuracy and seconds < 60, (name, text, seconds)
    print(f"{name}: {tokens} tokens, accuracy {accuracy:.3f} after {seconds:.0f} s of processors' time")


def main():
    assert count_tokens('#include <a>\nint x = f("//", 1e-3);  // no\n') == 10
    check("mlp", 400, 0.85)
    check("mlp_adam", 450, 0.96)


if __name__ == "__main__":
    main()
