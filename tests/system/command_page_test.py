#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/command.md print what the page says: each ```sh block runs in the folder of those before
it, and the ```output block after it is what it prints."""
import os
import re
import sys
import tempfile

from tenon_process import BINARY, SOURCE, main, run


def page():
    with open(os.path.join(SOURCE, "docs", "command.md"), encoding="utf-8") as file:
        found = re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.M | re.S)
    assert [language for language, _ in found] == ["sh", "output"] * (len(found) // 2), found
    assert len(found) > 8
    path = os.path.abspath(BINARY) + ":" + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        for (_, commands), (_, wanted) in zip(found[::2], found[1::2]):
            done = run("env", "-C", folder, "PATH=" + path, "bash", "-c", commands)
            assert done.stdout == wanted and done.stderr == "", \
                f"\n{commands}prints\n{done.stdout}{done.stderr}and not\n{wanted}"


if __name__ == "__main__":
    sys.exit(main([("the commands of the page", page)]))
