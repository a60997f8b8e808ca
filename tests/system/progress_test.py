#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far long work is: a bar that fits the terminal, lines in a log, and neither passes the end."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from processes_test import write_mnist
from small_graphs import write_graph, write_npy
from tenon_process import TENON, Process, in_a_folder, main, run

CLEAR = "\r\033[K"


def on_a_terminal(columns, *command):
    """What a command writes to the error stream, a terminal of so many columns, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # that nobody has the other end any more
                break
            if not piece:
                break
            text += piece
        code = process.wait(60)
    os.close(ours)
    return text.decode(), code


def bars_fit(folder):
    """Also with the validation accuracy, which makes the line long."""
    write_mnist(folder)
    train = [TENON, "train", "mnist", "--data", folder, "--batch", "1", "--max_steps", "6000"]
    for columns in (40, 80, 110, 200):
        text, code = on_a_terminal(columns, *train)
        assert code == 0, text
        lines = text.split(CLEAR)
        assert len(lines) > 3 and lines[-1] == "", (columns, text)
        assert max(map(len, lines)) < columns, (columns, max(lines, key=len))
        assert "\n" not in text, text
        bars = [line for line in lines if "[" in line]
        if columns == 40:
            assert not bars, bars
        elif columns == 200:
            assert any("validation accuracy" in line for line in lines), lines
            assert all(re.match(r"training \[[= ]{24}\]", line) for line in bars), bars


def never_past_the_end(folder):
    write_mnist(folder)
    for flags, steps in ((["--max_steps", 2], 2), (["--max_steps", 60], 60),
                         (["--batch", 100, "--epochs", 2], 6)):
        done = run(TENON, "train", "mnist", "--data", folder, *flags)
        assert done.returncode == 0, done.stderr
        found = re.findall(r"^training +(\d+)%  (\d+)/(\d+) .*epoch (\d+) ", done.stdout, re.M)
        assert found[-1][:3] == ("100", str(steps), str(steps)), done.stdout
        assert all(int(percent) <= 100 for percent, *_ in found), done.stdout
        if "--epochs" in flags:
            assert {epoch for *_, epoch in found} == {"1", "2"}, done.stdout


def a_line_a_minute():
    """Of a training that is far from its first tenth. The clock goes on while a process is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        write_mnist(folder)
        with Process(TENON, "train", "mnist", "--data", folder, "--epochs", 1000000) as process:
            time.sleep(5)
            assert "training " not in process.text(), process.text()
            process.process.send_signal(signal.SIGSTOP)
            time.sleep(57)
            process.process.send_signal(signal.SIGCONT)
            process.wait_for("training   0%", timeout=90)


def batches(folder):
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x.npy"), (1000, 3), [1.0] * 3000)
    flags = [TENON, "run", graph, "--feed", f"x={x}", "--batch", "1", "--fetch", "y", "--output"]
    done = run(*flags, os.path.join(folder, "y.npy"))
    found = re.findall(r"^running +(\d+)%  (\d+)/1000 ", done.stdout, re.M)
    assert done.returncode == 0 and ("100", "1000") in found and len(found) == 10, done.stdout
    # Nothing comes between the lines of a table.
    done = run(*flags, "-")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1001, done.stdout[:1000]
    text, code = on_a_terminal(80, *flags, os.path.join(folder, "y.csv"))
    assert code == 0 and text.endswith(CLEAR) and "running [" in text, text


if __name__ == "__main__":
    sys.exit(main([("a line a minute", a_line_a_minute),
                   ("bars fit the terminal", in_a_folder(bars_fit)),
                   ("never past the end", in_a_folder(never_past_the_end)),
                   ("batches", in_a_folder(batches))], at_once=2))
