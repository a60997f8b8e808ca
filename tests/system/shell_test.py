#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon completion` and `tenon manual` print is what bash and groff take, and has every flag."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tenon_process import TENON, main, run


def commands():
    """The words of each command: ("tenon", "train", "mnist"), with its help."""
    found, left = {}, [("tenon",)]
    while left:
        words = left.pop()
        found[words] = run(TENON, *words[1:], "--help").stdout
        listed = found[words].partition("Subcommands:\n")[2].partition("\n\n")[0]
        left += [words + (name,) for name in re.findall(r"^  (\w+)", listed, re.M)]
    assert len(found) >= 14, found.keys()
    return found


def flags(text):
    return re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M)


def completed(*words):
    """What bash offers for the last of the words."""
    done = subprocess.run(["bash", "-c", """
        source <("$1" completion) && shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tenon; printf '%s\n' "${COMPREPLY[@]}"
        """, "bash", TENON, "tenon", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


def words_are_completed():
    assert completed("tr") == ["train"] and "mnist" in completed("train", "")
    assert completed("train", "mnist", "--mod") == ["--model"]
    assert completed("train", "mnist", "--epochs", "3", "--model", "") == ["mlp", "conv", "classic"]
    assert completed("train", "mnist", "--model", "c") == ["conv", "classic"]
    assert completed("run", "graph.pb") == []  # a file: bash's own
    for words, text in commands().items():
        offered = completed(*words[1:], "--")
        assert flags(text) and not set(flags(text)) - set(offered), (words, offered)


def the_page_has_every_flag():
    page = run(TENON, "manual").stdout
    for words, text in commands().items():
        section = page if len(words) == 1 else \
            page.partition(f".SS {' '.join(words)}\n")[2].partition("\n.S")[0]
        for flag in flags(text):
            if flag not in ("--help", "--version"):
                assert "\\fB" + flag.replace("-", "\\-") + "\\fR" in section, (words, flag)
    if shutil.which("groff") is None:
        return print("no groff here: how the page is set has not been tried")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tenon.1")
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
        done = run("groff", "-man", "-Tutf8", "-ww", "-rLL=100n", path)
    assert done.returncode == 0 and done.stderr == "", done.stderr[:2000]
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "tenon train mnist" in shown and "--checkpoint_dir TEXT" in shown.replace("\u2010", "-"), shown


if __name__ == "__main__":
    sys.exit(main([("words are completed", words_are_completed),
                   ("the page has every flag", the_page_has_every_flag)]))
