#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks that are started without a list of addresses find each other at one (--rendezvous), also as ranks of MPI on
several hosts; what goes wrong is said by each."""
import os
import re
import shutil
import socket
import sys
import tempfile
import time

from launchers_test import MPICH, SKIPPED, Scene, compare, estimates, fit
from tenon_process import TENON, Process, free_addresses, main, run


def ended(processes, wanted=0):
    for process in processes:
        assert process.finish() == wanted, process.text()


def fits(scene):
    """Three workers whose numbers are as they come, and a parameter server that says what it is."""
    address = free_addresses(1)[0]
    folder = os.path.join(scene.folder, "registered")
    command = [*fit(scene.table, folder), "--rendezvous", address, "--num_workers", 3]
    processes = [Process(*command) for _ in range(3)]
    ended(processes)
    compare(estimates(folder), scene.wanted)
    tasks = sorted(re.search(r"^task: (\S+) \(registered at " + address, p.text(), re.MULTILINE).group(1) for p in processes)
    assert tasks == [f"/job:worker/replica:0/task:{i}" for i in range(3)], tasks
    command = scene.mnist("--curve", os.path.join(scene.folder, "r.svg"), "--rendezvous", free_addresses(1)[0],
                          "--num_workers", 2)
    processes = [Process(*command), Process(*command, "--job_name", "worker", "--task_index", 1),
                 Process(*command, "--job_name", "ps")]
    ended(processes)
    assert "task: /job:worker/replica:0/task:0 (" in processes[0].text(), processes[0].text()
    assert "task: /job:worker/replica:0/task:1 (" in processes[1].text(), processes[1].text()
    assert "task: /job:ps/replica:0/task:0 (" in processes[2].text(), processes[2].text()


def servers_that_end(scene):
    """The task that serves the others dies before all have come: another one of its host serves them."""
    address = free_addresses(1)[0]
    folder = os.path.join(scene.folder, "second")
    command = [*fit(scene.table, folder), "--rendezvous", address, "--num_workers", 3]
    with Process(*command) as first:
        wait_until_open(address)
        second = Process(*command)
        second.wait_for("2 of 3 have registered")
        first.process.kill()
    rest = [Process(*command) for _ in range(2)]
    ended([second, *rest])
    compare(estimates(folder), scene.wanted)


def wait_until_open(address):
    host, port = address.rsplit(":", 1)
    for _ in range(300):
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("nobody listens at " + address)


def serve(address, *more, deadline=2):
    return [TENON, "serve", "--rendezvous", address, "--num_workers", 2, "--start_up_deadline", deadline, *more]


def what_goes_wrong(scene):
    # Too few, and nobody at all: the name of another machine, an address of no machine.
    address = free_addresses(1)[0]
    done = run(*serve(address))
    assert done.returncode == 1 and ("not all tasks have come within 2 s: 1 of 3 have registered at "
                                     + address) in done.stderr, done
    for host, text in (("192.0.2.1:4000", "not all tasks have come within 2 s: "),
                       ("nosuch.invalid:4000", "the name nosuch.invalid is not known: ")):
        done = run(*serve(host, "--insecure"))
        assert done.returncode == 1 and text in done.stderr and "runs on that host" in done.stderr, done
    # Another program, and a task of another job.
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = run(*serve("127.0.0.1:%d" % other.getsockname()[1]))
        assert done.returncode == 1 and "not all tasks have come within 2 s" in done.stderr, done
    with Process(TENON, "serve", "--port", 0) as server:
        server.wait_for("listening at grpc://")
        taken = re.search(r"grpc://(\S+) as", server.text()).group(1)
        done = run(*serve(taken))
        assert done.returncode == 1 and f"another program answers at {taken} (--rendezvous)" in done.stderr, done
    # Who contradicts.
    address = free_addresses(1)[0]
    with Process(*serve(address, "--job_name", "worker", "--task_index", 1, deadline=20)):
        wait_until_open(address)
        for more, text in ((["--num_ps", 3], "this task has --num_ps 3 and --num_workers 2, and the one at 127.0.0.1:"),
                           (["--job_name", "worker", "--task_index", 1],
                            "/job:worker/replica:0/task:1 has registered already, at 127.0.0.1:")):
            done = run(*serve(address, *more))
            assert done.returncode == 1 and text in done.stderr, done
        # A secret that the others do not have.
        token = os.path.join(scene.folder, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("a-secret-of-this-job\n")
        with Process(*serve(free_addresses(1)[0], "--token_file", token, deadline=20)) as first:
            secret = first.process.args[3]
            wait_until_open(secret)
            done = run(*serve(secret))
            assert done.returncode == 1 and "token" in done.stderr, done
    # Mistakes in flags are told before anything is started.
    done = run(TENON, "train", "mnist", "--rendezvous", "nowhere", "--job_name", "chief")
    assert done.returncode == 2 and "--rendezvous: 'nowhere'" in done.stderr and "--num_workers" in done.stderr, done
    done = run(TENON, "train", "mnist", "--rendezvous", "h:1", "--num_workers", 2, "--check_config")
    assert done.returncode == 0 and done.stdout.startswith("cluster: 1 ps and 2 workers, which register at h:1 ("), done


def mpi_on_hosts(scene):
    """Ranks on hosts that no variable names; these are all this one."""
    launch = [MPICH[0], "-launcher", "fork", "-hosts", "127.0.0.2,127.0.0.3", "-np", 4]
    done = run(*launch, *fit(scene.table, os.path.join(scene.folder, "none")))
    assert done.returncode != 0 and "MPICH has started 4 processes, of which 2 are on this host" in done.stderr, done
    assert "give --rendezvous with a port of one of the hosts" in done.stderr, done
    folder = os.path.join(scene.folder, "hosts")
    done = run(*launch, *fit(scene.table, folder), "--rendezvous", free_addresses(1)[0])
    assert done.returncode == 0, done
    compare(estimates(folder), scene.wanted)
    assert len(re.findall(r"^task: /job:worker/replica:0/task:[0-3] \(registered", done.stdout, re.MULTILINE)) == 4, done


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        the_scene = Scene(shared)
        chosen = [("fits", lambda: fits(the_scene)), ("servers that end", lambda: servers_that_end(the_scene)),
                  ("what goes wrong", lambda: what_goes_wrong(the_scene))]
        has_mpi = shutil.which(MPICH[0]) is not None
        if has_mpi:
            chosen.append(("MPI on hosts", lambda: mpi_on_hosts(the_scene)))
        result = main(chosen)
        if not has_mpi:
            print("skipped: MPICH: there is no", MPICH[0])
        sys.exit(SKIPPED if result == 0 and not has_mpi else result)
