#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's own tests, of a checkout of its sources, in graph mode on a server: Tenon's, or
TensorFlow's to compare with. Every session that a test opens in its process goes to the server instead,
isolated from the others, as each would have variables of its own.

    tensorflow_own_tests.py CHECKOUT --list FILES.txt --server tensorflow --output theirs.jsonl
    tensorflow_own_tests.py CHECKOUT --list FILES.txt --server tenon --output ours.jsonl
    tensorflow_own_tests.py --compare theirs.jsonl ours.jsonl

FILES.txt has a path a line, such as tensorflow/python/kernel_tests/math_ops/argmax_op_test.py; lines that begin
with '#' do not count. A line of the output is a method: file, test, outcome, the first lines of its error."""
import argparse
import collections
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import time

import tensorflow_environment

# One method; whoever waits longer hangs.
METHOD_LIMIT = 120


def extend_packages(checkout):
    """Modules that the wheel leaves out, such as those that several tests share, come from the checkout."""
    import importlib
    root = os.path.join(checkout, "tensorflow", "python")
    for folder, folders, _ in os.walk(root):
        inner = os.path.relpath(folder, checkout)
        name = inner.replace("/", ".")
        try:
            package = importlib.import_module(name)
        except ImportError:
            folders[:] = []
            continue
        if hasattr(package, "__path__"):
            package.__path__.append(folder)


def redirect_sessions(target):
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.client import session
    original = session.BaseSession.__init__

    def init(self, given="", graph=None, config=None):
        if not given:
            given = target
            isolated = config_pb2.ConfigProto()
            if config is not None:
                isolated.CopyFrom(config)
            isolated.isolate_session_state = True
            config = isolated
        original(self, given, graph, config)

    session.BaseSession.__init__ = init


def run_file(checkout, path, target, output):
    """In the process of one file: its methods, each with its outcome."""
    import importlib.util
    import unittest

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    extend_packages(checkout)
    redirect_sessions(target)
    name = "own_tests_" + path.replace("/", "_").removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, os.path.join(checkout, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

    class Late(Exception):
        pass

    def late(*_):
        raise Late(f"took longer than {METHOD_LIMIT} s")

    signal.signal(signal.SIGALRM, late)

    class Result(unittest.TestResult):
        def note(self, test, outcome, error=None):
            text = ""
            if error is not None:
                # Where a node was built says nothing of what went wrong.
                lines = [line for line in str(error[1]).splitlines()
                         if line.strip() and not line.startswith((" ", "Detected at node"))]
                text = f"{error[0].__name__}: " + " | ".join(lines[:6])[:1500]
            print(json.dumps({"file": path, "test": test.id().split(".", 1)[-1], "outcome": outcome,
                              "error": text}), file=output, flush=True)

        def startTest(self, test):
            super().startTest(test)
            self.failed = False
            print(json.dumps({"file": path, "test": test.id().split(".", 1)[-1],
                              "outcome": "begun"}), file=output, flush=True)
            signal.alarm(METHOD_LIMIT)

        def stopTest(self, test):
            signal.alarm(0)
            super().stopTest(test)

        def addSuccess(self, test):
            if not self.failed:
                self.note(test, "ok")

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None and not self.failed:
                self.failed = True
                self.note(test, "failed", err)

        def addError(self, test, err):
            self.failed = True
            self.note(test, "failed", err)

        addFailure = addError

        def addSkip(self, test, reason):
            self.note(test, "skipped", (Warning, reason, None))

        def addExpectedFailure(self, test, err):
            self.note(test, "ok")

    unittest.defaultTestLoader.loadTestsFromModule(module).run(Result())


class Server:
    """A server of its own process, on loopback."""

    def __init__(self, kind):
        self.kind = kind
        self.start()

    def start(self):
        port = free_port()
        self.target = f"grpc://127.0.0.1:{port}"
        if self.kind == "tenon":
            command = [tensorflow_environment.TENON, "serve", "--port", str(port)]
        else:
            code = ("import sys, tensorflow.compat.v1 as tf; s = tf.train.Server({'localhost': "
                    "['127.0.0.1:' + sys.argv[1]]}, job_name='localhost', task_index=0); s.join()")
            command = [sys.executable, "-c", code, str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, "no server"
                time.sleep(.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_one(checkout, path, kind):
    """The lines of one file, by a server of its own."""
    server = Server(kind)
    try:
        child = subprocess.run([sys.executable, os.path.abspath(__file__), checkout, "--file", path,
                                "--target", server.target], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, timeout=1800)
        out, code, errors = child.stdout, child.returncode, child.stderr
    except subprocess.TimeoutExpired as e:
        out, code, errors = (e.stdout or b"").decode(), "too late", ""
    alive = server.process.poll() is None
    server.stop()
    outcomes, begun = {}, None
    for line in out.splitlines():
        if not line.startswith("{"):
            continue
        method = json.loads(line)
        if method["outcome"] == "begun":
            begun = method
        else:
            outcomes[method["test"]] = method
    if begun is not None and begun["test"] not in outcomes:
        outcomes[begun["test"]] = dict(begun, outcome="failed", error=f"the client ended: {code}")
    if not outcomes:
        outcomes["(file)"] = {"file": path, "test": "(file)", "outcome": "failed",
                              "error": f"{code}: {errors[-800:]}"}
    if not alive:
        outcomes["(server)"] = {"file": path, "test": "(server)", "outcome": "failed",
                                "error": "the server has died"}
    return list(outcomes.values())


def read(path):
    with open(path, encoding="utf-8") as lines:
        return {(m["file"], m["test"]): m for m in map(json.loads, lines)}


def compare(theirs, ours):
    """Prints each method that passes there and not here; the exit code."""
    theirs, ours = read(theirs), read(ours)
    passed = [k for k, m in theirs.items() if m["outcome"] == "ok"]
    differ = [k for k in passed if ours.get(k, {}).get("outcome") != "ok"]
    for k in differ:
        print(f"{k[0]} {k[1]}: {ours.get(k, {}).get('error', 'did not run')}")
    count = collections.Counter(m["outcome"] for m in theirs.values())
    mine = collections.Counter(m["outcome"] for m in ours.values())
    print(f"TensorFlow's server: {dict(count)}; Tenon's: {dict(mine)}; {len(differ)} of {len(passed)} "
          "that pass there do not pass here")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?")
    parser.add_argument("--list")
    parser.add_argument("--server", choices=["tenon", "tensorflow"], default="tenon")
    parser.add_argument("--output")
    parser.add_argument("--at_once", type=int, default=2)
    parser.add_argument("--compare", nargs=2)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.compare:
        return compare(*flags.compare)
    if flags.file:
        run_file(flags.checkout, flags.file, flags.target, sys.stdout)
        return 0
    with open(flags.list, encoding="utf-8") as lines:
        files = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    with open(flags.output, "w", encoding="utf-8") as output, \
            concurrent.futures.ThreadPoolExecutor(flags.at_once) as pool:
        runs = {pool.submit(run_one, flags.checkout, f, flags.server): f for f in files}
        for done in concurrent.futures.as_completed(runs):
            for method in done.result():
                print(json.dumps(method), file=output, flush=True)
            count = collections.Counter(m["outcome"] for m in done.result())
            print(f"{runs[done]}: {dict(count)}", flush=True)
    return 0


if __name__ == "__main__":
    tensorflow_environment.main_with_tensorflow(main)
