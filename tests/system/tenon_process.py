# SPDX-License-Identifier: Apache-2.0
"""Tenon's programs as processes, for the system tests: only Python's own library is needed."""
import ast
import concurrent.futures
import hashlib
import itertools
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

SOURCE = os.environ.get("TENON_SOURCE_DIR", ".")
BINARY = os.environ.get("TENON_BINARY_DIR", "build/release")
TENON = os.path.join(BINARY, "tenon")
REPLICA = os.path.join(BINARY, "example_mnist_replica")
GRAPHS = os.path.join(SOURCE, "tests", "data", "graphs")


class TooLate(Exception):
    """What a fault was to strike had ended before, as where the machine is fast or this process stood still."""


def in_time(case, *lengths):
    """Runs the case with the first length of its work, and with the next one where the fault came too late."""
    for length in lengths[:-1]:
        try:
            return case(length)
        except TooLate as late:
            print(f"too late, once more and longer: {late}", flush=True)
    return case(lengths[-1])


def slowness():
    """How many times as long as alone work on all cores takes now, by which a limit grows that nobody is promised: 1
    where nothing else runs, and never above 4."""
    work, cores = 0.3, len(os.sched_getaffinity(0))

    def seconds(_):
        begin, end = time.monotonic(), time.thread_time() + work
        while time.thread_time() < end:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 10000)
        return time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        return min(max(1, sum(pool.map(seconds, range(cores))) / cores / work), 4)


# Ports below those that the system gives to connections and to sockets that take any. A name of a socket, which ends
# with the process that has it, keeps a port for one test among all that run.
_PORTS, _KEPT, _CHOOSING = range(22000, 30000), [], threading.Lock()


def _keep(port):
    """Whether the port is free, and from now on this process's."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0tenon test, port {port}")
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))
            s.listen()
    except OSError:
        name.close()
        return False
    _KEPT.append(name)
    return True


def free_addresses(count):
    """Loopback addresses that nobody listens on, each given once to the cases of a test, and to no other test."""
    with _CHOOSING:
        drawn = random.SystemRandom().sample(_PORTS, len(_PORTS))
        ports = list(itertools.islice(filter(_keep, drawn), count))
        assert len(ports) == count, "no ports are left"
        return [f"127.0.0.1:{port}" for port in ports]


def run(*command, timeout=240):
    """The finished process: returncode, stdout, stderr."""
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout)


class Process:
    """A process whose output is collected as it comes; killed at the end of the with block."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, **options)
        self.lines, self.changed = [], threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def wait_for(self, text, timeout=120):
        """Waits until a line has `text`."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not any(text in line for line in self.lines):
                assert self.process.poll() is None or self.reader.is_alive(), \
                    f"ended without '{text}':\n{self.text()}"
                assert time.monotonic() < deadline, f"no '{text}' in {timeout} s:\n{self.text()}"
                self.changed.wait(0.1)

    def strike(self, number):
        """Sends a signal to a process that has not ended."""
        if self.process.poll() is not None:
            raise TooLate(f"{self.process.args} has ended with {self.process.poll()}")
        self.process.send_signal(number)

    def finish(self, timeout=120):
        """The exit code."""
        code = self.process.wait(timeout)
        self.reader.join(timeout)
        return code

    def text(self):
        return "\n".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def processes_of_session(session):
    """{process: command} of those that live and belong to the session of this number."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
                name, rest = stat.read().split("(", 1)[1].rsplit(") ", 1)
        except OSError:  # it has ended
            continue
        state, _, _, its_session = rest.split()[:4]
        if int(its_session) == session and state not in "ZX":
            found[int(process)] = name
    return found


def processes_with(text):
    """{process: {variable: value}} of those that have `text` on their command lines."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as line:
                if text not in line.read():
                    continue
            with open(f"/proc/{process}/environ", encoding="utf-8", errors="replace") as pairs:
                found[int(process)] = dict(pair.split("=", 1) for pair in pairs.read().split("\0") if "=" in pair)
        except OSError:  # it has ended
            continue
    return found


def serve(*flags):
    """A `tenon serve` that listens."""
    server = Process(TENON, "serve", *flags)
    server.wait_for("listening at")
    return server


def read_npy(data):
    """(shape, flat list) of an array in NumPy's format; bytes for an array of uint8 or text."""
    assert data[:6] == b"\x93NUMPY", data[:6]
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else \
        (struct.unpack("<I", data[8:12])[0], 12)
    header = ast.literal_eval(data[start:start + size].decode("latin1"))
    kind, body = header["descr"].lstrip("<>|="), data[start + size:]
    if kind[0] in "SU" or kind == "u1":
        return header["shape"], body
    code = {"f2": "e", "f4": "f", "f8": "d", "i4": "i", "i8": "q", "b1": "?", "i1": "b"}[kind]
    return header["shape"], [v[0] for v in struct.iter_unpack("<" + code, body)]


def read_npz(path):
    """{key: (shape, values)}"""
    with zipfile.ZipFile(path) as archive:
        return {name[:-len(".npy")]: read_npy(archive.read(name)) for name in archive.namelist()}


def in_a_folder(case):
    """A case of main's, which gets a folder that goes with it."""
    def run_it():
        with tempfile.TemporaryDirectory() as folder:
            case(folder)
    return run_it


def main(cases, at_once=1):
    """Runs the (name, function) cases, so many `at_once`, as those may that mostly wait; the exit code."""

    def passes(named):
        name, case = named
        begin = time.monotonic()
        try:
            case()
            line = f"ok: {name}, {time.monotonic() - begin:.1f} s"
        except Exception as e:  # pylint: disable=broad-except
            line = f"FAILED: {name}\n  {type(e).__name__}: {e}"
        print(line, flush=True)
        return line.startswith("ok")

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return 0 if all(list(pool.map(passes, cases))) else 1
