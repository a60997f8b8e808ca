#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host that vanishes without a word, as by a power cut: the network between the parameter server
and the worker, each in a namespace of its own, loses everything. Needs root and `ip`."""
import os
import shutil
import subprocess
import sys
import time

from tenon_process import REPLICA, TENON, Process, main, run

SKIPPED = 77
SOURCE = os.environ["TENON_SOURCE_DIR"]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Network:
    """The namespaces `ps` and `worker`, joined by a bridge in a third."""

    def __init__(self):
        self.names = {n: f"tenon{os.getpid()}{n}" for n in ("bridge", "ps", "worker")}
        self.addresses = {"ps": "10.203.0.1", "worker": "10.203.0.2"}

    def __enter__(self):
        for name in self.names.values():
            ip("netns", "add", name)
        bridge = self.names["bridge"]
        ip("-n", bridge, "link", "add", "bridge0", "type", "bridge")
        ip("-n", bridge, "link", "set", "bridge0", "up")
        for task, address in self.addresses.items():
            ip("-n", bridge, "link", "add", task, "type", "veth", "peer", "name", "eth0", "netns",
               self.names[task])
            ip("-n", bridge, "link", "set", task, "master", "bridge0", "up")
            ip("-n", self.names[task], "address", "add", address + "/24", "dev", "eth0")
            ip("-n", self.names[task], "link", "set", "eth0", "up")
            ip("-n", self.names[task], "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def start(self, task, *command):
        return Process("ip", "netns", "exec", self.names[task], *command)

    def wait_until_a_step_runs(self, client):
        """The client's, at the parameter server."""
        deadline = time.monotonic() + 90
        status = ["ip", "netns", "exec", self.names["worker"], TENON, "status", f"grpc://{self.addresses['ps']}:2222"]
        while "1 step runs" not in run(*status).stdout:
            assert client.process.poll() is None and time.monotonic() < deadline, client.text()
            time.sleep(0.1)

    def cut(self):
        ip("-n", self.names["bridge"], "link", "set", "bridge0", "down")


def both_ends_notice():
    with Network() as network:
        flags = []
        for task, address in network.addresses.items():
            flags += [f"--{task}_hosts", address + ":2222"]
        flags.append("--insecure")
        with network.start("ps", TENON, "serve", *flags, "--job_name", "ps", "--until_workers_end",
                           "--worker_timeout", 30) as ps:
            ps.wait_for("listening at")
            with network.start("worker", REPLICA, *flags, "--job_name", "worker", "--data",
                               os.path.join(SOURCE, "share", "mnist"), "--training_epochs",
                               100000) as worker:
                worker.wait_for("Step: ")
                # A client, whose step on the ps would take hours.
                graph = os.path.join(SOURCE, "tests", "data", "graphs", "while_v1")
                with network.start("worker", TENON, "run", graph + ".pb", "--master",
                                   f"grpc://{network.addresses['ps']}:2222", "--feed",
                                   f"x:0={graph}.npz:x0", "--feed", "n:0=2000000000", "--fetch",
                                   "count:0") as client:
                    network.wait_until_a_step_runs(client)
                    network.cut()
                    cut = time.monotonic()
                    assert worker.finish(90) == 1, worker.text()
                    assert client.finish(90) == 1, client.text()
                    assert time.monotonic() - cut < 70, worker.text()
                    assert "UNAVAILABLE: " in worker.text(), worker.text()
                    assert "UNAVAILABLE: " in client.text(), client.text()
            assert ps.finish(90) == 1, ps.text()
            # Whichever is noticed first: that it says nothing, or that it cannot be reached.
            name = "/job:worker/replica:0/task:0 at 10.203.0.2:2222"
            assert ("no sign of life for 30 s from " + name in ps.text() or
                    name + " is gone and did not return within 15 s" in ps.text()), ps.text()


def can_make_networks():
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    name = f"tenon{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], stderr=subprocess.PIPE).returncode == 0
    if made:
        ip("netns", "delete", name)
    return made


if __name__ == "__main__":
    if not can_make_networks():
        print("skipped: needs root and `ip`, to make network namespaces")
        sys.exit(SKIPPED)
    sys.exit(main([("both ends notice that the network is gone", both_ends_notice)]))
