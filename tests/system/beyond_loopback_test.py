#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An example as a job on a network: its tasks save and restore beneath --root, and nowhere else. Needs an
address of this machine beyond loopback."""
import os
import socket
import sys
import tempfile

from processes_test import write_mnist
from tenon_process import BINARY, Process, free_addresses, main, run

SKIPPED = 77
SYNC = os.path.join(BINARY, "example_mnist_sync")


def own_host():
    """The address that this machine has in its network, or None. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))
        except OSError:
            return None
        host = probe.getsockname()[0]
        return None if host.startswith("127.") else host


def job(data, folder, steps, *flags):
    """The exit code and the output of the worker of a job of two tasks that saves to `folder`."""
    ps, worker = (address.replace("127.0.0.1", HOST) for address in free_addresses(2))
    command = [SYNC, "--ps_hosts", ps, "--worker_hosts", worker, "--data", data, "--checkpoint_dir", folder,
               "--steps", steps, "--insecure", *flags, "--job_name"]
    with Process(*command, "ps") as server, Process(*command, "worker") as chief:
        code = chief.finish()
        server.finish()
        return code, chief.text()


def saves_beneath_root():
    with tempfile.TemporaryDirectory() as root:
        data, folder = os.path.join(root, "data"), os.path.join(root, "run")
        os.mkdir(data)
        write_mnist(data)
        code, said = job(data, folder, 5, "--root", root)
        assert code == 0 and os.path.exists(os.path.join(folder, "model.ckpt-5.index")), said
        code, said = job(data, folder, 8, "--root", root)
        assert code == 0 and "restored " in said, said
        code, said = job(data, os.path.join(root, "other"), 5)
        assert code == 1 and "--root" in said, said
        code, said = job(data, os.path.join(root, "other"), 5, "--root", data)
        assert code == 1 and data in said, said


def root_that_is_none():
    done = run(SYNC, "--ps_hosts", "a:1", "--worker_hosts", "b:1", "--job_name", "ps", "--data", "d",
               "--checkpoint_dir", "c", "--root", "/nonexistent")
    assert done.returncode == 1 and "/nonexistent" in done.stderr, done


if __name__ == "__main__":
    HOST = own_host()
    if HOST is None:
        print("skipped: this machine has no address beyond loopback")
        sys.exit(SKIPPED)
    sys.exit(main([("an example saves beneath --root", saves_beneath_root),
                   ("a --root that is none", root_that_is_none)]))
