#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of failures in docs/clusters.md, row by row: what is said by whoever was started in which way, and that every
task of the job has ended with a code other than 0 within 30 s. What a row has in backticks has to be printed."""
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

import slurm_nodes
import ssh_hosts
from processes_test import write_mnist
from rendezvous_test import wait_until_open
from tenon_process import BINARY, SOURCE, Process, free_addresses, main, run

SKIPPED = 77
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
SOON = 30
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", 3]
MPICH = ["mpirun.mpich", "-np", 3]
TLS = os.path.abspath(os.path.join(SOURCE, "tests", "data", "tls"))
PS, CHIEF, OTHER = ("ps", 0), ("worker", 0), ("worker", 1)
# Rows whose tests stand elsewhere.
ELSEWHERE = {
    ("wrong host", "ssh"): "ssh_launch_test.py, starts_that_fail",
}


def rows_of_the_page():
    """{(failure, way): what is said}"""
    with open(os.path.join(SOURCE, "docs", "clusters.md"), encoding="utf-8") as page:
        table = re.search(r"^\| failure \|.*?\n\n", page.read(), re.MULTILINE | re.DOTALL)[0].strip().splitlines()
    rows = {}
    for line in table[2:]:
        failure, way, said, _ = [cell.strip() for cell in line.split("|")[1:-1]]
        rows[failure, way] = said
    return rows


ROWS, SEEN = rows_of_the_page(), set()


def check_row(failure, way, text):
    """All that the page promises is printed; "..." stands for anything."""
    SEEN.add((failure, way))
    promised = re.findall(r"`([^`]+)`", ROWS[failure, way])
    assert promised, (failure, way)
    for part in (piece for sentence in promised for piece in sentence.split("...")):
        assert part in text, f"{failure}, {way}: no '{part}' in\n{text}"


def mnist(data, *more):
    """A worker that waits for the other one does not load the machine."""
    return [TENON, "train", "mnist", "--data", data, "--sync", "--epochs", 100000, *more]


class Job:
    """A parameter server and two workers, each started by hand."""

    def __init__(self, data, way, addresses=None):
        self.data, self.way = data, way
        self.addresses = addresses or free_addresses(3)
        self.tasks, self.begin = {}, time.monotonic()

    def config(self, task):
        """The variable for this task, and its flags."""
        job, index = task
        ps, *workers = self.addresses
        if self.way == "TF_CONFIG":
            return {"TF_CONFIG": json.dumps({"cluster": {"ps": [ps], "worker": workers},
                                             "task": {"type": job, "index": index}})}, []
        if self.way == "--rendezvous":
            return {}, ["--rendezvous", ps, "--num_workers", 2, "--job_name", job, "--task_index", index]
        return {}, ["--ps_hosts", ps, "--worker_hosts", ",".join(workers), "--job_name", job, "--task_index", index]

    def start(self, *tasks, more=(), variables=None):
        for task in tasks:
            environment, flags = self.config(task)
            environment.update(variables or {})
            self.tasks[task] = Process(*mnist(self.data, *flags, *more), env=dict(os.environ, **environment))
        self.restart_clock()

    def wait_until_all_are_there(self):
        """The parameter server has heard of all, who have begun to train; then the clock starts."""
        deadline = time.monotonic() + 60
        while "session" not in (said := run(TENON, "status", "grpc://" + self.addresses[0]).stdout).split("sessions", 1)[-1] \
                or "has not come yet" in said:
            assert time.monotonic() < deadline, said + self.text()
            time.sleep(0.2)
        self.restart_clock()

    def restart_clock(self):
        self.begin = time.monotonic()

    def end(self, codes=None):
        """What all have said, when they have ended."""
        for task, process in self.tasks.items():
            code = process.finish(max(1, self.begin + SOON + 10 - time.monotonic()))
            seconds = time.monotonic() - self.begin
            wanted = (codes or {}).get(task)
            assert code == wanted or (wanted is None and code == 1), (task, code, self.text())
            assert seconds < SOON, (task, seconds, self.text())
        return self.text()

    def text(self):
        return "\n".join(f"--- {task}\n{process.text()}" for task, process in self.tasks.items())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.tasks.values():
            process.__exit__()


BY_HAND = ["flags", "TF_CONFIG"]


def wrong_host(data, way):
    ps, chief, other = free_addresses(3)
    wrong = "nosuch.invalid:" + other.split(":")[1]
    with Job(data, way, [ps, chief, wrong]) as job:
        job.start(PS, CHIEF, OTHER, more=["--insecure"])
        check_row("wrong host", "flags, TF_CONFIG", job.end())


def wrong_host_to_register(data):
    with Job(data, "--rendezvous", ["nosuch.invalid:4000"]) as job:
        job.start(PS, CHIEF, OTHER, more=["--insecure"])
        check_row("wrong host", "--rendezvous", job.end())


def busy_port(data, way):
    with Job(data, way) as job, socket.socket() as other:
        host, port = job.addresses[2].split(":")
        try:
            other.bind((host, int(port)))
        except OSError:  # a connection of another case has got it meanwhile, which is no row of the table
            return busy_port(data, way)
        job.start(PS)
        job.tasks[PS].wait_for("waiting for the workers at")
        job.start(CHIEF, OTHER)
        check_row("busy port", "flags, TF_CONFIG", job.end())


def busy_port_to_register(data):
    with Job(data, "--rendezvous") as job, socket.socket() as other:
        host, port = job.addresses[0].split(":")
        other.bind((host, int(port)))
        other.listen()
        job.start(PS, CHIEF, OTHER)
        check_row("busy port", "--rendezvous", job.end())


def dies(data, way):
    with Job(data, way) as job:
        job.start(PS, CHIEF, OTHER)
        job.wait_until_all_are_there()
        job.tasks[OTHER].process.kill()
        check_row("a task dies", "flags, TF_CONFIG", job.end({OTHER: -signal.SIGKILL}))


def server_dies(data):
    with Job(data, "flags") as job:
        job.start(PS, CHIEF, OTHER)
        job.wait_until_all_are_there()
        job.tasks[PS].process.kill()
        check_row("a task dies", "flags, TF_CONFIG: the parameter server", job.end({PS: -signal.SIGKILL}))


def dies_before_it_is_registered(data):
    with Job(data, "--rendezvous") as job:
        job.start(PS, OTHER)
        job.tasks[OTHER].wait_for("2 of 3 have registered")
        job.tasks[OTHER].process.kill()
        job.restart_clock()
        check_row("a task dies", "--rendezvous, before all have come", job.end({OTHER: -signal.SIGKILL}))


def never_comes(data, way):
    for missing, who in ((OTHER, "flags, TF_CONFIG"), (PS, "flags, TF_CONFIG: the parameter server")):
        with Job(data, way) as job:
            job.start(*(task for task in (PS, CHIEF, OTHER) if task != missing))
            check_row("a task never comes", who, job.end())


def never_registers(data):
    with Job(data, "--rendezvous") as job:
        job.start(PS, CHIEF)
        check_row("a task never comes", "--rendezvous", job.end())


def wrong_key(data, way):
    row = "--rendezvous" if way == "--rendezvous" else "flags, TF_CONFIG"
    with Job(data, way) as job:
        job.start(PS, CHIEF, variables={"TENON_TOKEN": "right"})
        job.start(OTHER, variables={"TENON_TOKEN": "wrong"})
        check_row("a wrong token", row, job.end())


def wrong_certificate(data, way):
    def flags(name):
        return ["--tls_cert", f"{TLS}/{name}.pem", "--tls_key", f"{TLS}/{name}.key", "--tls_ca", f"{TLS}/ca.pem"]

    with Job(data, way) as job:
        job.start(PS, CHIEF, more=flags("task"))
        if way == "--rendezvous":  # the first one there serves the others
            wait_until_open(job.addresses[0])
        job.start(OTHER, more=flags("stranger"))
        row = way if way == "--rendezvous" else "flags, TF_CONFIG; launchers hand the flags on"
        check_row("a wrong certificate", row, job.end())


def unreadable(data):
    with Job(data, "TF_CONFIG") as job:
        job.start(PS, CHIEF)
        job.start(OTHER, variables={"TF_CONFIG": '{"cluster": {'})
        check_row("an unreadable TF_CONFIG", "TF_CONFIG", job.end({OTHER: 2}))
    # Flags come first, and with --rendezvous it is not read.
    for more in (["--ps_hosts", "a:1", "--worker_hosts", "b:1", "--job_name", "ps"],
                 ["--rendezvous", "a:1", "--num_workers", 2]):
        done = run("env", "TF_CONFIG={", TENON, "train", "mnist", "--check_config", *more)
        assert done.returncode == 0, done
    done = run("env", "TF_CONFIG={", TENON, "launch", "--", TENON, "train", "mnist", "--check_config")
    assert done.returncode == 0, done


def proxies(table):
    """Whatever proxy is set for others, tasks reach each other."""
    proxy = "http://127.0.0.1:9"
    variables = [f"{name}={proxy}" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy", "all_proxy")]
    done = run("env", "-u", "no_proxy", *variables, TENON, "launch", "--ps", 0, "--workers", 3, "--", TENON, "train", "linear",
               "y ~ x", table)
    assert done.returncode == 0 and "[worker 0] " in done.stdout, done


def linear(table):
    """A fit has no parameter server that knows who has come: the chief and each worker do by themselves."""
    def start(addresses, task, **variables):
        return Process(TENON, "train", "linear", "y ~ x", table, "--worker_hosts", ",".join(addresses), "--job_name", "worker",
                       "--task_index", task, env=dict(os.environ, **variables))

    def ended(processes, *wanted):
        begin = time.monotonic()
        text = ""
        for process in processes:
            assert process.finish(SOON + 10) == 1, process.text()
            assert time.monotonic() - begin < SOON, process.text()
            text += process.text()
        for part in wanted:
            assert part in text, (part, text)

    for here, missing in (((0, 1), 2), ((1, 2), 0)):
        addresses = free_addresses(3)
        with start(addresses, here[0]) as one, start(addresses, here[1]) as two:
            ended([one, two], f"/job:worker/replica:0/task:{missing}",
                  "did not answer within 20 s" if missing else "has not answered for 20 s")
    addresses = free_addresses(3)
    with start(addresses, 0, TENON_TOKEN="right") as one, start(addresses, 1, TENON_TOKEN="right") as two, \
            start(addresses, 2, TENON_TOKEN="wrong") as three:
        ended([one, two, three], "the call does not carry this job's token")


# What a task is, for a shell, whatever has started it: 2 is worker 1.
WHO = """rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}
case "$*" in *--job_name=worker\ --task_index=1*) rank=2;; esac
"""


def worker_1(then, data, *more):
    """A program in which worker 1 does `then` before it trains, or instead."""
    return ["sh", "-c", f'{WHO}[ "$rank" = 2 ] && {{ {then}; }}\nexec {shlex.join(map(str, mnist(data, *more)))} "$@"', "sh"]


def fails(launched, failure, way, command, seconds=SOON):
    """The whole job has ended by then, with a code."""
    begin = time.monotonic()
    done = launched(command)
    seconds_taken = time.monotonic() - begin
    assert done.returncode != 0, done.stdout + done.stderr
    assert seconds_taken < seconds, (seconds_taken, done.stdout + done.stderr)
    check_row(failure, way, done.stdout + done.stderr)


BUSY = threading.Lock()  # of the port that is taken, which two ways have in common
TAKE_PORT = "import socket, sys, time\ns = socket.socket()\ns.bind((sys.argv[1], int(sys.argv[2])))\n" \
    "print('taken', flush=True)\ntime.sleep(1000)"


def dies_in_training(data, way, launched):
    """Worker 1, when the steps of all are saved; the job has ended soon after."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir, mark = os.path.join(folder, "run"), os.path.join(folder, "mark")
        then = f"(until ls {run_dir}/model.ckpt-[1-9]*.index; do sleep 0.1; done >{mark} 2>&1; kill -KILL $$) & :"
        done = launched(worker_1(then, data, "--checkpoint_dir", run_dir, "--save_seconds", 0.2, "--root", folder))
        seconds = time.time() - os.path.getmtime(mark)
    assert done.returncode != 0, done.stdout + done.stderr
    assert seconds < SOON, (seconds, done.stdout + done.stderr)
    check_row("a task dies", way, done.stdout + done.stderr)


def by_ranks(data, way, launched, port, first_port):
    """What goes wrong with worker 1 of the tasks that a launcher has started. `port` takes the port of that one."""
    # MPICH waits for what hangs; the others have some seconds until they end it.
    fails(launched, "a task never comes", way, worker_1(f"exec sleep {SOON if way == 'MPICH' else 1000}", data), SOON + 10)
    fails(launched, "a wrong token", way, worker_1("export TENON_TOKEN=wrong", data))
    dies_in_training(data, way, launched)
    with BUSY, Process(*port) as occupant:
        occupant.wait_for("taken")
        fails(lambda command: launched(command, first_port), "busy port", way, worker_1(":", data))


def by_launch(data):
    def launched(command):
        return run(TENON, "launch", "--ps", 1, "--workers", 2, "--", *command)

    fails(launched, "a task never comes", "launch", worker_1("exec sleep 1000", data))
    dies_in_training(data, "launch", launched)


def by_ssh(data):
    with ssh_hosts.SshHosts() as hosts:
        launch = [TENON, "launch", "--ssh", shlex.join(["ssh", "-F", hosts.path("client.conf")]), "--hosts", "h1,h2,h3"]
        inside = ["nsenter", "--target", str(hosts.started[3].pid), "--net"]
        by_ranks(data, "ssh", lambda command, port=20100: hosts.run(*launch, "--first_port", port, "--", *command),
                 [*inside, sys.executable, "-c", TAKE_PORT, "10.203.7.3", 20200], 20200)


def by_slurm(data):
    with slurm_nodes.SlurmNodes("10.77.0.1") as nodes:
        launch = [TENON, "launch", "--slurm", "--nodes", 3, "--ps", 1, "--workers", 2]
        flags = ["--first_port", 20200]
        by_ranks(data, "Slurm", lambda command, port=0: nodes.run(*launch, "--", *command, *(flags if port else [])),
                 nodes.command(sys.executable, "-c", TAKE_PORT, "10.77.0.13", 20200), 20200)
        fails(lambda command: nodes.run("env", "TF_CONFIG={", *launch, "--", *command), "an unreadable TF_CONFIG",
              "Slurm, mpirun", mnist(data))


def by_mpi(data, way, launch):
    begin = {"Open MPI": 20600, "MPICH": 21200}[way]  # which are tried at the same time

    def launched(command, port=0):
        first = port or int(free_addresses(1)[0].split(":")[1]) % 500 + begin
        environment = ["env", "TENON_TOKEN=right"]
        return run(*environment, *launch, *command, "--first_port", first)

    by_ranks(data, way, launched, [sys.executable, "-c", TAKE_PORT, "127.0.0.1", 20402], 20400)
    fails(lambda command: run("env", "TF_CONFIG={", *launch, *command), "an unreadable TF_CONFIG", "Slurm, mpirun", mnist(data))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        write_mnist(FOLDER)
        TABLE = os.path.join(FOLDER, "t.csv")
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write("y,x\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(100)))
        chosen = [(f"{case.__name__}, {way}", lambda case=case, way=way: case(FOLDER, way))
                  for case in (wrong_host, busy_port, dies, never_comes, wrong_key, wrong_certificate) for way in BY_HAND]
        chosen += [(case.__name__, lambda case=case: case(FOLDER)) for case in
                   (wrong_host_to_register, busy_port_to_register, server_dies, dies_before_it_is_registered, never_registers,
                    unreadable)]
        chosen += [("wrong key, --rendezvous", lambda: wrong_key(FOLDER, "--rendezvous")), ("linear", lambda: linear(TABLE)),
                   ("wrong certificate, --rendezvous", lambda: wrong_certificate(FOLDER, "--rendezvous")),
                   ("proxies", lambda: proxies(TABLE))]
        chosen.append(("launch", lambda: by_launch(FOLDER)))
        lacking = [f"ssh: {ssh_hosts.missing()}"] if ssh_hosts.missing() else []
        if not lacking:
            chosen.append(("ssh", lambda: by_ssh(FOLDER)))
        if slurm_nodes.missing():
            lacking.append("Slurm: " + slurm_nodes.missing())
        else:
            chosen.append(("Slurm", lambda: by_slurm(FOLDER)))
        for system, command in (("Open MPI", OPEN_MPI), ("MPICH", MPICH)):
            if shutil.which(command[0]) is None:
                lacking.append(f"{system}: there is no {command[0]}")
            else:
                chosen.append((system, lambda s=system, c=command: by_mpi(FOLDER, s, c)))
        only = set(sys.argv[1:])
        chosen = [case for case in chosen if not only or case[0] in only]
        result = main(chosen, at_once=8)
        unseen = set(ROWS) - SEEN - set(ELSEWHERE) - {row for row, said in ROWS.items() if said.startswith("cannot happen: ")}
        if result == 0 and not only and not lacking and unseen:
            print("FAILED: rows of the page without a test:", unseen)
            result = 1
        for reason in lacking:
            print("skipped: needs", reason)
        sys.exit(SKIPPED if result == 0 and lacking else result)
