#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes end the command with exit code 1 and one line that says what was found and what was
wanted, wrong usage with 2; a server that was sent them serves the next client."""
import gzip
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

from processes_test import write_mnist
from tenon_process import REPLICA, TENON, free_addresses, main, run, serve

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
GOOD = f"""
node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
       attr {{ key: "shape" value {{ shape {{ dim {{ size: 2 }} }} }} }} }}
node {{ name: "y" op: "Neg" input: "x" {FLOAT} }}
node {{ name: "v" op: "VariableV2" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
       attr {{ key: "shape" value {{ shape {{ }} }} }} }}
node {{ name: "read" op: "Identity" input: "v" {FLOAT} }}
node {{ name: "z" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_UINT8 }} }} }}
"""
CYCLE = f'node {{ name: "a" op: "Neg" input: "b" {FLOAT} }} ' \
        f'node {{ name: "b" op: "Neg" input: "a" {FLOAT} }}'
UNPLACEABLE = """
node { name: "q" op: "Placeholder" attr { key: "dtype" value { type: DT_QINT8 } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "best" op: "ArgMax" input: "q" input: "zero"
       attr { key: "T" value { type: DT_QINT8 } } }
"""
TASK = "/job:localhost/replica:0/task:0"
DEVICE = TASK + "/device:CPU:0"

# name: (graph, flags, the message as a pattern). GRAPH stands for the file's name.
MISTAKES = {
    "an unknown op": (
        'node { name: "x" op: "NoSuchOp" }', ["--target", "x"],
        r"NOT_FOUND: GRAPH: node 'x' \(NoSuchOp\): Op type not registered 'NoSuchOp' in binary "
        r"running on \S+\. `tenon ops` lists the ones that are\."),
    "an attribute of the wrong type": (
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { i: 3 } } }',
        ["--fetch", "x"],
        r"INVALID_ARGUMENT: GRAPH: node 'x' \(Placeholder\): attr 'dtype' of op Placeholder has the "
        r"wrong type: found int, wanted type"),
    "a cycle": (
        CYCLE, ["--fetch", "a"],
        r"INVALID_ARGUMENT: GRAPH: the graph has a cycle that does not go through NextIteration; it "
        r"holds or feeds 'a', 'b'"),
    "a duplicate node": (
        'node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }', ["--target", "a"],
        r"INVALID_ARGUMENT: GRAPH: Node 'a' is not unique"),
    "a missing feed": (
        GOOD, ["--fetch", "y"],
        rf"INVALID_ARGUMENT: (From {TASK}: )?node 'x' \(Placeholder\) on {DEVICE}: You must "
        r"feed a value for placeholder tensor 'x' with dtype float and shape \[2\]; give --feed x=VALUE"),
    "a feed of the wrong dtype": (
        GOOD, ["--fetch", "y", "--feed", 'x=["a", "b"]'],
        r"INVALID_ARGUMENT: --feed x: found \"a\", wanted a number"),
    "a feed that is nested too deeply": (
        GOOD, ["--fetch", "y", "--feed", "x=" + "[" * 30000 + "]" * 30000],
        r"INVALID_ARGUMENT: --feed x: a shape has at most 254 dimensions, found 30000"),
    "a feed that the dtype cannot hold": (
        GOOD, ["--fetch", "z", "--feed", "z=300"],
        r"INVALID_ARGUMENT: --feed z: found 300, which uint8 cannot hold"),
    "a feed that no number holds": (
        GOOD, ["--fetch", "y", "--feed", "x=[[1, -1e400]]"],
        r"INVALID_ARGUMENT: --feed x: found -1e400, which float cannot hold"),
    "a feed that only a double holds": (
        GOOD, ["--fetch", "y", "--feed", "x=[1e39, 2]"],
        r"INVALID_ARGUMENT: --feed x: found 1e\+39, which float cannot hold"),
    "a feed that no integer holds": (
        GOOD, ["--fetch", "z", "--feed", "z=99999999999999999999"],
        r"INVALID_ARGUMENT: --feed z: found 1e\+20, which uint8 cannot hold"),
    "a signature where there is none": (
        GOOD, ["--signature", "foo", "--feed", "x=[1, 2]"],
        r"NOT_FOUND: the graph has no signature 'foo', nor any other; without --signature names are "
        r"those of nodes"),
    "a feed of the wrong shape": (
        GOOD, ["--fetch", "y", "--feed", "x=[1, 2, 3]"],
        r"INVALID_ARGUMENT: feed 'x' has shape \[3\], wanted \[2\]"),
    "an uninitialised variable": (
        GOOD, ["--fetch", "read"],
        rf"FAILED_PRECONDITION: (From {TASK}: )?node 'read' \(Identity\) on {DEVICE}: "
        r"Attempting to use uninitialized value v; variables get values by --init NODE, by "
        r"--checkpoint PREFIX, or from the folder variables/ of a SavedModel"),
    "an unknown device": (
        GOOD, ["--fetch", "y", "--feed", "x=[1, 2]", "--place", "y=/device:GPU:7"],
        r"INVALID_ARGUMENT: Cannot assign a device for operation y: \{\{node y\}\} was explicitly "
        rf"assigned to /device:GPU:7 but available devices are \[ {DEVICE} \]\. Make sure the device "
        r"specification refers to a valid device\.( No GPU is there: .*)?"),
    "an op that no device can run": (
        UNPLACEABLE, ["--fetch", "best"],
        rf"INVALID_ARGUMENT: (From {TASK}: )?node 'best' \(ArgMax\) on {DEVICE}: No OpKernel was registered to support "
        r"Op 'ArgMax' on CPU with these attrs: \[T=[a-z0-9]+, Tidx=int32, output_type=int64\]; "
        r"registered kernels: CPU, T in \{[a-z0-9, ]+\}"),
}


def check_line(done, pattern, code=1):
    assert done.returncode == code, f"exit code {done.returncode}:\n{done.stderr}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, f"not one line:\n{done.stderr}"
    assert re.fullmatch("tenon: " + pattern, lines[0]), f"found  {lines[0]}\nwanted {pattern}"


def with_graph(text, use):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pbtxt")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return use(path)


def mistake(name, master=()):
    text, flags, pattern = MISTAKES[name]

    def use(path):
        check_line(run(TENON, "run", path, *flags, *master),
                   pattern.replace("GRAPH", re.escape(path)))
    with_graph(text, use)


def good_run(*flags):
    def use(path):
        done = run(TENON, "run", path, "--fetch", "y", "--feed", "x=[1, 2]", *flags)
        assert done.returncode == 0 and done.stdout == "y = float[2] -1 -2\n", done
    with_graph(GOOD, use)


def server_lives_on():
    address = free_addresses(1)[0]
    master = ["--master", "grpc://" + address]
    with serve("--port", address.split(":")[1]) as server:
        for name in MISTAKES:
            mistake(name, master)
            good_run(*master)
        assert server.process.poll() is None
        assert run(TENON, "stop", "grpc://" + address).returncode == 0
        assert server.finish() == 0, server.text()


def parameter_server_missing():
    ps, worker = free_addresses(2)
    with serve("--ps_hosts", ps, "--worker_hosts", worker, "--job_name", "worker",
               "--start_up_deadline", "1"):
        master = ["--master", "grpc://" + worker]

        def use(path):
            check_line(
                run(TENON, "run", path, "--fetch", "read", "--place", "v=/job:ps/task:0", *master),
                rf"DEADLINE_EXCEEDED: task /job:ps/replica:0/task:0 at {ps} did not answer.*")
        with_graph(GOOD, use)
        good_run(*master)


def server_missing():
    """Waited for as long as a flag says, not as others would."""
    address = free_addresses(1)[0]

    def use(path):
        begin = time.monotonic()
        check_line(run(TENON, "run", path, "--fetch", "y", "--feed", "x=[1, 2]", "--master",
                       "grpc://" + address, "--start_up_deadline", "1"),
                   rf"DEADLINE_EXCEEDED: the server at grpc://{address} did not answer within 1 s; .*refused.*")
        assert time.monotonic() - begin < 45
    with_graph(GOOD, use)


def port_in_use():
    address = free_addresses(1)[0]
    port = address.split(":")[1]
    with serve("--port", port):
        check_line(run(TENON, "serve", "--port", port),
                   rf"UNAVAILABLE: .*{address}.*Address already in use.*")
        good_run("--master", "grpc://" + address)


def short_idx_file():
    """The images say 60 and hold 10. The parameter server hears of it too."""
    ps, worker = free_addresses(2)
    cluster = ["--ps_hosts", ps, "--worker_hosts", worker]
    with tempfile.TemporaryDirectory() as folder:
        for prefix in ("train", "t10k"):
            with gzip.open(os.path.join(folder, prefix + "-images-idx3-ubyte.gz"), "wb") as out:
                out.write(struct.pack(">IIII", 0x803, 60, 28, 28) + bytes(10 * 784))
            with gzip.open(os.path.join(folder, prefix + "-labels-idx1-ubyte.gz"), "wb") as out:
                out.write(struct.pack(">II", 0x801, 60) + bytes(60))
        with serve(*cluster, "--job_name", "ps", "--until_workers_end") as server:
            done = run(REPLICA, *cluster, "--job_name", "worker", "--data", folder)
            assert server.finish() == 1, server.text()
    assert done.returncode == 1, done
    assert re.search(r"DATA_LOSS: .*train-images-idx3-ubyte", done.stderr), done.stderr
    assert re.search("ABORTED: .* failed: .*train-images-idx3-ubyte", server.text()), server.text()


def full_disk():
    """What cannot be written is not done, whoever prints it."""
    def use(path):
        for arguments in (["ops"], ["ops", "MatMul"], ["--help"], ["--version"],
                          ["run", path, "--fetch", "y", "--feed", "x=[1, 2]"],
                          ["serve", "--check-config", "--port", "0"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([TENON, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=120)
            assert done.returncode == 1, (arguments, done)
            assert "cannot write to the standard output" in done.stderr, (arguments, done)
            # What has filled the buffer, or was flushed by the library, fails too early to ask why.
            if arguments not in (["ops"], ["--help"], ["--version"]):
                assert "No space left on device" in done.stderr, (arguments, done)
    with_graph(GOOD, use)


def suggestions():
    for arguments, code, wanted in (
            (["ops", "matmul"], 1, "there is no op matmul; did you mean MatMul?"),
            (["ops", "Convolution2D"], 1, "there is no op Convolution2D: it is of the C++ API for "
             "training, under 'Layers' in docs/training_reference.md"),
            (["ops", "MeanSquaredErorr"], 1, "did you mean MeanSquaredError? It is of the C++ API "
             "for training, under 'Losses' and 'Metrics' in docs/training_reference.md"),
            (["ops", "Mat_Mull"], 1, "there is no op Mat_Mull; did you mean MatMul?"),
            (["trian"], 2, "there is no subcommand trian; did you mean train?"),
            (["train", "mnits"], 2, "there is no subcommand mnits; did you mean mnist?"),
            (["run", "g", "--fetchs", "y"], 2, "there is no flag --fetchs; did you mean --fetch?"),
            (["launch", "--ps", "1", "prog", "--data", "d"], 2,
             "there is no flag --data; put -- before the program"),
            (["serve", "--JOB-NAMES=ps"], 2,
             "there is no flag --JOB-NAMES; did you mean --job_name?")):
        done = run(TENON, *arguments)
        assert done.returncode == code and wanted in done.stderr, (arguments, done)
    for arguments in (["ops", "Xyzzy"], ["frobnicate"], ["run", "g", "--nonsense"]):
        done = run(TENON, *arguments)
        assert done.returncode != 0 and "did you mean" not in done.stderr, (arguments, done)


def wrong_numbers():
    for flag in ("--epochs", "--batch"):
        for value in ("0", "-3"):
            done = run(TENON, "train", "mnist", flag, value)
            assert done.returncode == 2, done
            assert f"{flag}: found {value}, wanted at least 1" in done.stderr, done
    for arguments in (["serve", "--port", "65536"], ["serve", "--port", "0", "--threads", "-1"],
                      ["serve", "--port", "0", "--start_up_deadline", "1e300"],
                      ["run", "graph.pb", "--timeout_ms", "-1"]):
        done = run(TENON, *arguments)
        assert done.returncode == 2 and len(done.stderr) < 300, done


def training_that_cannot_be():
    with tempfile.TemporaryDirectory() as folder:
        write_mnist(folder)
        train = [TENON, "train", "mnist", "--data", folder, "--epochs", "3", "--model", "classic"]
        check_line(run(*train, "--batch", "301"),
                   r"--batch 301 is more than the 300 images to train with \(see tenon train mnist "
                   r"--help\)", code=2)
        check_line(run(*train, "--learning_rate", "1e30"),
                   "OUT_OF_RANGE: training has diverged: the cost is -?(nan|inf) after .*"
                   r"--learning_rate smaller than 1e\+30")


def wrong_usage():
    for arguments in ([], ["frobnicate"], ["run"], ["run", "graph.pb", "--nonsense"],
                      ["run", "graph.pb", "--steps", "0"], ["run", "graph.pb", "--feed", "x"],
                      ["run", "graph.pb", "--place", "x"], ["serve"], ["stop"],
                      ["serve", "--job_name", "ps", "--ps_hosts", "localhost:1", "--task_index", "3"]):
        done = run(TENON, *arguments)
        assert done.returncode == 2, f"{arguments}: exit code {done.returncode}"
        assert done.stderr and done.stdout == "", done


if __name__ == "__main__":
    CASES = [(name, lambda name=name: mistake(name)) for name in MISTAKES]
    sys.exit(main(CASES + [
        ("a server lives on", server_lives_on),
        ("a parameter server that is not there", parameter_server_missing),
        ("a server that is not there", server_missing),
        ("a port in use", port_in_use),
        ("an IDX file cut short", short_idx_file),
        ("a full disk under the output", full_disk),
        ("names that are nearly right", suggestions),
        ("numbers that are too small", wrong_numbers),
        ("training that cannot be", training_that_cannot_be),
        ("wrong usage", wrong_usage),
    ]))
