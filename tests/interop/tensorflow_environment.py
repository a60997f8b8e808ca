# SPDX-License-Identifier: Apache-2.0
"""What every test against the real TensorFlow needs: its Python, and `tenon serve` processes."""
import ctypes
import os
import signal
import socket
import subprocess
import sys

VENV = os.environ.get("TENON_TF_VENV", os.path.expanduser("~/.cache/tenon/tf-2.15.1"))
PYTHON = os.path.join(VENV, "bin", "python")
TENON = os.path.join(os.environ.get("TENON_BINARY_DIR", "build/release"), "tenon")
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


def end_with_parent():
    """A TensorFlow that crashes leaves no server behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Servers:
    """`tenon serve` processes, one per task of `jobs` (job -> number of tasks), ended on exit."""

    def __init__(self, jobs):
        self.processes, held = {}, []
        self.addresses = {}
        for job, count in jobs.items():
            for _ in range(count):
                s = socket.socket()
                s.bind(("127.0.0.1", 0))
                held.append(s)
                self.addresses.setdefault(job, []).append("127.0.0.1:%d" % s.getsockname()[1])
        for s in held:
            s.close()
        self.cluster = ";".join(f"{job}={','.join(a)}" for job, a in self.addresses.items())
        for job, addresses in self.addresses.items():
            for task, _ in enumerate(addresses):
                self.processes[job, task] = self.start(job, task)

    def start(self, job, task):
        process = subprocess.Popen(
            [TENON, "serve", "--cluster", self.cluster, "--job_name", job, "--task_index", str(task)],
            stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        for line in process.stdout:
            if line.startswith("listening"):
                return process
        raise RuntimeError("the server did not start")

    def restart(self, job, task=0):
        """Kills a task and starts it anew."""
        self.processes[job, task].kill()
        self.processes[job, task].wait()
        self.processes[job, task] = self.start(job, task)

    def target(self, job, task=0):
        return "grpc://" + self.addresses[job][task]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(timeout=20)
