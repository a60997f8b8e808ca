#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon run` writes: all elements as npz, npy, CSV or JSON, checked before the first step, and kept when
a step fails or ctrl-C ends them."""
import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

from small_graphs import FLOAT, ROWS, STRING, constant, node, write_graph, write_npy
from tenon_process import GRAPHS, TENON, in_a_folder, main, read_npy, read_npz, run

X = ["--feed", "x=" + json.dumps([[float(3 * i + j) for j in range(3)] for i in range(4)])]


def printed(*arguments):
    done = run(TENON, "run", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def output(folder, name, *arguments):
    """The bytes of the file that a run writes."""
    path = os.path.join(folder, name)
    printed(*arguments, "--output", path)
    with open(path, "rb") as file:
        return file.read()


def all_elements(folder):
    graph = write_graph(folder)
    wanted = [float(2 * v) for v in range(12)]
    assert read_npy(output(folder, "y.npy", graph, *X, "--fetch", "y")) == ((4, 3), wanted)
    path = os.path.join(folder, "both.npz")
    printed(graph, *X, "--fetch", "y", "--fetch", "total", "--output", path)
    assert read_npz(path) == {"y": ((4, 3), wanted), "total": ((), [132.0])}
    found = json.loads(output(folder, "both.json", graph, *X, "--fetch", "y,total"))
    assert found == {"y": [wanted[i:i + 3] for i in range(0, 12, 3)], "total": 132.0}, found
    rows = list(csv.reader(io.StringIO(output(folder, "y.csv", graph, *X, "--fetch", "y").decode())))
    assert rows[0] == ["y[0]", "y[1]", "y[2]"], rows
    assert [[float(v) for v in row] for row in rows[1:]] == \
        [wanted[i:i + 3] for i in range(0, 12, 3)], rows
    assert output(folder, "y.tsv", graph, *X, "--fetch", "y").decode().splitlines()[:2] == \
        ["y[0]\ty[1]\ty[2]", "0\t2\t4"]
    # What was written can be fed.
    assert printed(graph, "--feed", f"x={folder}/y.tsv", "--fetch", "total") == "total = float[] 264\n"
    # "-" is CSV, and nothing else, on the standard output.
    assert printed(graph, *X, "--fetch", "y", "--output", "-").splitlines()[1] == "0,2,4"


def texts_and_what_is_no_number(folder):
    texts = constant("texts", STRING, [3], ["plain", r"a \"quoted\", one", r"\377\000\001"])
    numbers = (constant("zero", FLOAT, [2], [0.0, 0.0]) + constant("one", FLOAT, [2], [1.0, -1.0])
               + node("ratio", "RealDiv", "one", "zero", T=f"type: {FLOAT}")
               + constant("third", FLOAT, [], [1 / 3]))
    graph = write_graph(folder, texts + numbers)
    rows = list(csv.reader(io.StringIO(
        output(folder, "t.csv", graph, "--fetch", "texts").decode("latin-1"), newline="")))
    assert rows == [["texts"], ["plain"], ['a "quoted", one'], ["\xff\x00\x01"]], rows
    tabbed = write_graph(folder, constant("texts", STRING, [2], [r"a\tb", "x,y"]), "tabbed.pbtxt")
    assert output(folder, "t.tsv", tabbed, "--fetch", "texts") == b'texts\n"a\tb"\nx,y\n'
    found = json.loads(output(folder, "t.json", graph, "--fetch", "texts,ratio,third"))
    assert found["texts"] == ["plain", 'a "quoted", one', {"b64": "/wAB"}], found
    assert found["ratio"] == [None, None], found
    # As many digits as tell a float from all others.
    assert output(folder, "third.csv", graph, "--fetch", "third") == b"third\n0.33333334\n"
    assert output(folder, "ratio.csv", graph, "--fetch", "ratio") == b"ratio\ninf\n-inf\n"


def several_steps(folder):
    graph = write_graph(folder)
    steps = [graph, "--init", "init", "--fetch", "next", "--steps", 3]
    assert printed(*steps).splitlines() == ["step 0: next = float[3] 2 3 4",
                                            "step 1: next = float[3] 3 4 5",
                                            "step 2: next = float[3] 4 5 6"]
    assert output(folder, "n.csv", *steps) == \
        b"step,next[0],next[1],next[2]\n0,2,3,4\n1,3,4,5\n2,4,5,6\n"
    assert read_npy(output(folder, "n.npy", *steps)) == ((3, 3), [2, 3, 4, 3, 4, 5, 4, 5, 6])
    assert json.loads(output(folder, "n.json", *steps)) == {"next": [[2, 3, 4], [3, 4, 5], [4, 5, 6]]}
    path = os.path.join(folder, "n.npz")
    printed(*steps, "--output", path)
    assert read_npz(path) == {f"next/{i}": ((3,), [2 + i, 3 + i, 4 + i]) for i in range(3)}


def batches(folder):
    """What has the batch's rows becomes one array; what has none, a row for each batch."""
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x.npy"), (4, 3), [float(v) for v in range(12)])
    fed = [graph, "--feed", f"x={x}", "--batch", 3]
    path = os.path.join(folder, "b.npz")
    out = printed(*fed, "--fetch", "y,total,w/initial", "--output", path)
    wanted = {"y": ((4, 3), [float(2 * v) for v in range(12)]), "total": ((2,), [72.0, 60.0]),
              # As many rows as a batch has, in each: by the graph they are none of it.
              "w/initial": ((2, 3), [1, 2, 3, 1, 2, 3])}
    assert read_npz(path) == wanted, read_npz(path)
    assert f"{path}: y float[4,3], total float[2], w/initial float[2,3]" in out, out
    text = output(folder, "b.csv", *fed, "--fetch", "y").decode().splitlines()
    assert len(text) == 5 and text[4] == "18,20,22", text


def mistakes(folder):
    """Found before a step is run, which would count `next` up, and before the feeds are read."""
    graph, nowhere = write_graph(folder), os.path.join(folder, "none", "o.npz")
    for name, wanted in ((nowhere, f"--output: cannot write '{nowhere}': there is no folder"),
                         (folder, "wanted a name that ends in .npz, .npy, .csv, .tsv or .json, or -"),
                         ("o.txt", "wanted a name that ends in .npz, .npy, .csv, .tsv or .json, or -"),
                         ("o.npy", "an .npy file holds one array, found 2 fetches, y, total")):
        done = run(TENON, "run", graph, "--feed", "x=missing.npy", "--fetch", "y,total",
                   "--output", name)
        assert done.returncode in (1, 2) and wanted in done.stderr, (name, done)
        assert not os.path.exists(name) or name == folder, name
    trace = os.path.join(folder, "none", "t.json")
    done = run(TENON, "run", graph, "--feed", "x=missing.npy", "--fetch", "y", "--trace", trace)
    assert done.returncode == 1 and f"--trace: cannot write '{trace}'" in done.stderr, done
    path = os.path.join(folder, "o.csv")
    done = run(TENON, "run", graph, *X, "--feed", "n=[1]", "--fetch", "y,twice", "--output", path)
    assert done.returncode == 1, done
    assert "'y' has 4 rows and 'twice' 1, of which a table wants as many" in done.stderr, done
    done = run(TENON, "run", graph, "--target", "init", "--output", path)
    assert done.returncode == 2 and "--output is for fetches, of which there is none" in done.stderr


def output_that_is_fed(folder):
    """It is refused before anything is written, also where a pattern or another name finds it."""
    graph = write_graph(folder)
    npy = write_npy(os.path.join(folder, "o.npy"), (4, 3), [1.0] * 12)
    table = os.path.join(folder, "o.csv")
    with open(table, "w", encoding="utf-8") as out:
        out.write("1,2,3\n" * 4)
    os.symlink(npy, os.path.join(folder, "link.npy"))
    for fed, path in ((npy, npy), (f"{folder}/[o]*.npy", npy), (f"{folder}/link.npy", npy), (table, table),
                      (f"{folder}/*.csv", table), (f"{npy},{folder}/link.npy", npy)):
        with open(path, "rb") as file:
            before = file.read()
        done = run(TENON, "run", graph, "--feed", f"x={fed}", "--fetch", "y", "--batch", "1", "--output", path)
        assert done.returncode == 2, (fed, done)
        assert f"--output: '{path}' is fed to x; wanted another file" in done.stderr, (fed, done)
        with open(path, "rb") as file:
            assert file.read() == before, fed


def steps_before_a_failure(folder):
    """The second batch cannot be divided: what the first gave is there."""
    graph = write_graph(folder, ROWS.replace('name: "twice" op: "AddV2" input: "n" input: "n"',
                                             'name: "twice" op: "FloorDiv" input: "n" input: "n"'))
    n = write_npy(os.path.join(folder, "n.npy"), (4,), [1, 2, 3, 0], descr="<i4")
    path = os.path.join(folder, "o.npy")
    done = run(TENON, "run", graph, "--feed", f"n={n}", "--batch", 2, "--fetch", "twice",
               "--output", path)
    assert done.returncode == 1 and f"; {path} has twice int32[2]" in done.stderr, done
    with open(path, "rb") as file:
        assert read_npy(file.read()) == ((2,), [1, 1])


def wait_until(holds, process):
    deadline = time.monotonic() + 60
    while not holds():
        assert process.poll() is None and time.monotonic() < deadline, process.args
        time.sleep(0.02)


def catches(pid, number):
    """Whether the process has said what a signal does."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"^SigCgt:\s*(\w+)$", status.read(), re.M)[1], 16) >> (number - 1) & 1


def interrupted(folder, name, number=signal.SIGINT):
    graph = write_graph(folder)
    path, trace = os.path.join(folder, name), os.path.join(folder, "trace.json")
    command = [TENON, "run", graph, "--init", "init", "--fetch", "next", "--steps", "1000000000",
               "--output", path, "--trace", trace]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 1000, process)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, (process.returncode, said)
    assert f"stopped by {number.name} after " in said and f"; {path} has next float[" in said, said
    assert os.path.getsize(trace) > 100
    return path


def interrupted_steps(folder):
    with open(interrupted(folder, "n.npy"), "rb") as file:
        (rows, columns), values = read_npy(file.read())
    assert rows > 1 and columns == 3 and values[:6] == [2, 3, 4, 3, 4, 5], (rows, columns)
    with open(interrupted(folder, "n.csv", signal.SIGTERM), encoding="ascii") as file:
        lines = file.read().splitlines()
    assert lines[1] == "0,2,3,4" and len(lines[-1].split(",")) == 4, lines[-1]


def interrupted_in_a_step(folder):
    """A step that would not end is cancelled."""
    loop = os.path.join(GRAPHS, "while_v1.pb")
    path = os.path.join(folder, "o.csv")
    command = [TENON, "run", loop, "--feed", f"x={loop[:-3]}.npz:x0", "--feed", "n=2000000000",
               "--fetch", "count", "--steps", "2", "--output", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        wait_until(lambda: catches(process.pid, signal.SIGINT), process)
        time.sleep(1)  # in which the step begins
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)  # the step would take hours
    assert process.returncode == 130 and "stopped by SIGINT after 0 steps" in said, said


def times_and_limits(folder):
    """--stats and --timeout_ms are of steps, not of what prepares the first one, which here takes far longer."""
    count = 20000
    chain = constant("n0", FLOAT, [], [1.0]) + "".join(
        node(f"n{i + 1}", "Neg", f"n{i}", T=f"type: {FLOAT}") for i in range(count))
    graph = write_graph(folder, chain)

    def timed(limit):
        begin = time.monotonic()
        done = run(TENON, "run", graph, "--fetch", f"n{count}", "--disable-pass", "constant-folding", "--stats",
                   "--timeout_ms", limit)
        return done, 1000 * (time.monotonic() - begin)

    done, milliseconds = timed(10000)
    assert done.returncode == 0, done.stderr
    for _ in range(5):  # once, unless the machine stood still in the step, or in the run before
        limit = int(milliseconds / 4)
        done, milliseconds = timed(limit)
        if done.returncode == 0 and milliseconds > 2 * limit:
            break
    assert done.returncode == 0 and milliseconds > 2 * limit, (limit, milliseconds, done)
    assert float(re.search(r"1 step: min ([\d.]+) ms", done.stdout)[1]) <= limit, (limit, done.stdout)
    loop = os.path.join(GRAPHS, "while_v1.pb")
    done = run(TENON, "run", loop, "--feed", f"x={loop[:-3]}.npz:x0", "--feed", "n=2000000000", "--fetch", "count",
               "--timeout_ms", "1")
    assert done.returncode == 1 and "the step took longer than 1 ms" in done.stderr, done


def full_disk(folder):
    """A table has whole lines, and of the others half a file does not stay."""
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x.npy"), (3000, 3), [float(v) for v in range(9000)])
    for name in ("o.csv", "o.json", "o.npz"):
        path = os.path.join(folder, name)
        # A file may not get larger than the limit. Python ignores the signal for that, and so does what it starts.
        done = subprocess.run([TENON, "run", graph, "--feed", f"x={x}", "--fetch", "y", "--batch", "100",
                               "--output", path], capture_output=True, text=True, timeout=60, check=False,
                              restore_signals=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        assert done.returncode == 1 and "File too large" in done.stderr, done
        if name != "o.csv":
            assert not os.path.exists(path), done
            continue
        lines = open(path, encoding="ascii").read().splitlines(keepends=True)
        rows = int(re.search(r"o\.csv has y float\[(\d+),3\]", done.stderr).group(1))
        assert len(lines) == 1 + rows and rows % 100 == 0 and rows > 0, (len(lines), done.stderr)
        assert all(line.endswith("\n") for line in lines), lines[-1]


def long_step(folder):
    """It says that it runs."""
    loop = os.path.join(GRAPHS, "while_v1.pb")
    done = run(TENON, "run", loop, "--feed", f"x={loop[:-3]}.npz:x0", "--feed", "n=2000000000", "--fetch", "count",
               "--timeout_ms", "9500")
    assert done.returncode == 1, done
    said = done.stderr.splitlines()
    assert re.fullmatch("the step runs, [5-9] s now; --batch N runs the rows of files in parts", said[0]), done
    assert "the step took longer than 9500 ms" in said[-1] and len(said) > 1, done
    assert all(re.fullmatch(r"the step runs, \d+ s now", line) for line in said[1:-1]), done


if __name__ == "__main__":
    sys.exit(main([(name, in_a_folder(case)) for name, case in (
        ("all elements", all_elements),
        ("texts, and what is no number", texts_and_what_is_no_number),
        ("several steps", several_steps),
        ("batches", batches),
        ("mistakes before the first step", mistakes),
        ("an output that is fed", output_that_is_fed),
        ("steps before a failure", steps_before_a_failure),
        ("times and limits", times_and_limits),
        ("a long step", long_step),
        ("a full disk", full_disk),
        ("interrupted", interrupted_steps),
        ("interrupted in a step", interrupted_in_a_step))]))
