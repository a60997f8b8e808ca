# SPDX-License-Identifier: Apache-2.0
"""What every test against the real TensorFlow needs: its Python, and `tenon serve` processes."""
import atexit
import ctypes
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from tenon_process import free_addresses  # noqa: E402  pylint: disable=wrong-import-position

VENV = os.environ.get("TENON_TF_VENV", os.path.expanduser("~/.cache/tenon/tf-2.15.1"))
PYTHON = os.path.join(VENV, "bin", "python")
BUILD = os.path.abspath(os.environ.get("TENON_BINARY_DIR", "build/release"))
TENON = os.path.join(BUILD, "tenon")
# Makes the simulated device a process's GPU, which takes what nothing puts elsewhere.
SIMULATED_DEVICE = {"TENON_CUDA_PLUGIN": os.path.join(BUILD, "simulated", "libtenon_simulated.so"),
                    "LD_LIBRARY_PATH": os.path.join(BUILD, "simulated")}
SKIPPED = 77


def main_with_tensorflow(main):
    """Runs `main` under TensorFlow's Python, starting that when this process is another; exits with
    what it returns, or with SKIPPED when there is no TensorFlow."""
    if not os.path.exists(PYTHON):
        print(f"no TensorFlow environment at {VENV}; tools/install_tensorflow.sh makes it")
        sys.exit(SKIPPED)
    if os.path.realpath(sys.prefix) == os.path.realpath(VENV):
        sys.exit(main())
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                       TF_ENABLE_ONEDNN_OPTS="0", NO_PROXY="*", GRPC_ENABLE_FORK_SUPPORT="0")
    sys.exit(subprocess.run([PYTHON] + sys.argv, env=environment).returncode)


def import_messages(module):
    """A module of the wire's messages ("proto.master_pb2"), made of the project's own .proto files:
    TensorFlow's Python has none for its sessions' calls."""
    root = pathlib.Path(__file__).resolve().parents[2]
    made = tempfile.mkdtemp(prefix="tenon_messages_")
    atexit.register(shutil.rmtree, made, True)
    files = [str(p.relative_to(root)) for p in (root / "proto").glob("*.proto")]
    subprocess.run(["protoc", "--python_out", made, "-I", ".", *files], cwd=root, check=True)
    sys.path.insert(0, made)
    return importlib.import_module(module)


def expect_error(session, fetch, kind, text):
    """Running `fetch` is that error of TensorFlow's, with the text in its message."""
    try:
        session.run(fetch)
    except kind as e:
        assert text in e.message, e.message
    else:
        raise AssertionError(f"no {kind.__name__}")


def end_with_parent():
    """A TensorFlow that crashes leaves no server behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


TENSORFLOW_SERVER = """
import sys
import tensorflow as tf
config = tf.compat.v1.ConfigProto(device_count={"CPU": int(sys.argv[4])})
config.experimental.collective_group_leader = sys.argv[5]
server = tf.distribute.Server(eval(sys.argv[1]), job_name=sys.argv[2], task_index=int(sys.argv[3]),
                              config=config)
print("listening", flush=True)
server.join()
"""


class Servers:
    """`tenon serve` processes, one per task of `jobs` (job -> number of tasks), ended on exit.
    `options` and variables of their `environment` are for each of them; tasks of `tensorflow`, pairs of a job and a number, are
    TensorFlow's servers, whose groups of devices `leader` leads. Each task has `cpus` CPU devices. They run in `folder`."""

    def __init__(self, jobs, options=(), tensorflow=(), folder=None, environment=None, cpus=1, leader=""):
        self.cpus, self.leader = cpus, leader
        self.options, self.tensorflow, self.folder = options, tensorflow, folder
        self.environment = dict(os.environ, **(environment or {}))
        self.processes = {}
        self.addresses = {job: free_addresses(count) for job, count in jobs.items()}
        self.cluster = ";".join(f"{job}={','.join(a)}" for job, a in self.addresses.items())
        for job, addresses in self.addresses.items():
            for task, _ in enumerate(addresses):
                self.processes[job, task] = self.begin(job, task)
        for process in self.processes.values():
            self.await_start(process)

    def begin(self, job, task):
        command = [TENON, "serve", "--cluster", self.cluster, "--job_name", job,
                   "--task_index", str(task), *self.options]
        if self.cpus > 1:
            command += ["--config", f"device_count {{ key: 'CPU' value: {self.cpus} }}"]
        if (job, task) in self.tensorflow:
            command = [PYTHON, "-c", TENSORFLOW_SERVER, repr(self.addresses), job, str(task),
                       str(self.cpus), self.leader]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder,
                                env=self.environment, preexec_fn=end_with_parent)

    @staticmethod
    def await_start(process):
        for line in process.stdout:
            if line.startswith("listening"):
                return
        raise RuntimeError("the server did not start")

    def restart(self, job, task=0):
        """Kills a task and starts it anew."""
        self.processes[job, task].kill()
        self.processes[job, task].wait()
        self.processes[job, task] = self.begin(job, task)
        self.await_start(self.processes[job, task])

    def target(self, job, task=0):
        return "grpc://" + self.addresses[job][task]

    def status(self, job, task=0):
        """What `tenon status` says of a task."""
        return subprocess.run([TENON, "status", self.target(job, task)], capture_output=True,
                              text=True, check=True).stdout

    def await_status(self, holds, job, task=0):
        """Waits until what `tenon status` says of a task is so."""
        end = time.monotonic() + 60
        while not holds(status := self.status(job, task)):
            assert time.monotonic() < end, status
            time.sleep(.05)

    def _end_when_one_crashes(self):
        """TensorFlow's client would repeat its calls to a server of ours that has crashed for ever."""
        crashes = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
        while True:
            for (job, task), process in list(self.processes.items()):
                code = process.poll()
                if (job, task) not in self.tensorflow and code is not None and -code in crashes:
                    print(f"FAILED: the server of /job:{job}/task:{task} has ended by "
                          f"{signal.Signals(-code).name}", flush=True)
                    os._exit(1)
            time.sleep(.5)

    def __enter__(self):
        threading.Thread(target=self._end_when_one_crashes, daemon=True).start()
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
