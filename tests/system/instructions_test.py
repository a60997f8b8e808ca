#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""share/bench/instructions.py: a real row where valgrind knows the program's instructions, the comparison, and wrong files."""
import json
import os
import re
import shutil
import subprocess
import sys

from tenon_process import BINARY, SOURCE, in_a_folder, main

SCRIPT = os.path.join(SOURCE, "share", "bench", "instructions.py")


def run(folder, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "--build", os.path.abspath(BINARY), *arguments], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=240)


def a_row_is_counted_and_compared(folder):
    ended = run(folder, "--record", "counts.json", "smallest_run")
    if shutil.which("valgrind") is None:
        assert ended.returncode == 1 and "valgrind is not there" in ended.stderr, ended
        return
    if ended.returncode != 0:  # as of processors that are newer than valgrind
        assert "has instructions that valgrind does not know; cmake --preset portable" in ended.stderr, ended
        return
    assert re.fullmatch(r"smallest_run: [\d,]+\.\d million\n", ended.stdout), ended.stdout
    with open(os.path.join(folder, "counts.json"), encoding="utf-8") as file:
        count = json.load(file)["smallest_run"]
    same = run(folder, "--compare", "counts.json", "smallest_run")
    assert same.returncode == 0 and re.search(r", (0\.9[5-9]|1\.0[0-5])\d times as many as recorded", same.stdout), same
    with open(os.path.join(folder, "fewer.json"), "w", encoding="utf-8") as file:
        json.dump({"smallest_run": count * 9 // 10}, file)
    more = run(folder, "--compare", "fewer.json", "smallest_run")
    assert more.returncode == 1 and "more than 105% of what is recorded: smallest_run" in more.stderr, more


def wrong_files_are_named(folder):
    for name, text in (("list.json", "[1]"), ("cut.json", '{"a"'), ("none.json", '{"a": 0}'), ("words.json", '{"a": "b"}')):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for name in ("list.json", "cut.json", "none.json", "words.json", "missing.json"):
        ended = run(folder, "--compare", name, "smallest_run")
        assert ended.returncode == 1 and f"instructions.py: {name} is not what --record writes" in ended.stderr, ended


def a_missing_program_is_named(folder):
    ended = run(folder, "--build", "nowhere", "smallest_run")
    assert ended.returncode == 1 and "there is no program nowhere/tenon" in ended.stderr, ended


def wrong_arguments_are_told(folder):
    ended = run(folder)
    assert ended.returncode == 2 and "the following arguments are required: rows" in ended.stderr, ended
    ended = run(folder, "--record", "nowhere/counts.json", "smallest_run")
    assert ended.returncode == 1 and "--record: cannot write to nowhere/counts.json" in ended.stderr, ended
    ended = run(folder, "--help")
    assert ended.returncode == 0 and "5 % more" in ended.stdout, ended


if __name__ == "__main__":
    sys.exit(main([("a row", in_a_folder(a_row_is_counted_and_compared)),
                   ("wrong arguments", in_a_folder(wrong_arguments_are_told)),
                   ("wrong files", in_a_folder(wrong_files_are_named)),
                   ("a missing program", in_a_folder(a_missing_program_is_named))]))
