#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs find out from what has started them which task of which cluster they are: TF_CONFIG, Open MPI, MPICH
and Slurm, the real ones. The estimates are those of one process."""
import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import slurm_nodes
from processes_test import write_mnist
from tenon_process import BINARY, SOURCE, Process, free_addresses, main, run

SKIPPED = 77
# Tasks of Slurm begin in a folder of their own.
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"]
MPICH = ["mpirun.mpich", "-np"]


def write_table(folder):
    draw = random.Random(5)
    path = os.path.join(folder, "t.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("y,x,g\n")
        for _ in range(3000):
            x, g = draw.gauss(0, 1), draw.choice("abc")
            file.write(f"{int(draw.random() < 1 / (1 + 2.7 ** -(x + (g == 'b'))))},{x:.4f},{g}\n")
    return path


def estimates(folder):
    with open(os.path.join(folder, "coefficients.csv"), newline="", encoding="utf-8") as file:
        return {row["name"]: (float(row["estimate"]), float(row["std_error"])) for row in csv.DictReader(file)
                if row["status"] == "ok"}


def fit(table, folder):
    return [TENON, "train", "linear", "y ~ x + g", table, "--family", "binomial", "--model_dir", folder]


def compare(found, wanted):
    assert found.keys() == wanted.keys(), found
    for name, numbers in wanted.items():
        for a, b in zip(found[name], numbers):
            assert abs(a - b) <= 1e-9 * abs(b), (name, a, b)


class Scene:
    """A table, the estimates of one process, and small images."""

    def __init__(self, folder):
        self.folder = folder
        self.table = write_table(folder)
        alone = run(*fit(self.table, os.path.join(folder, "alone")))
        assert alone.returncode == 0, alone.stderr
        assert "TF_CONFIG" not in alone.stdout and "cluster:" not in alone.stdout, alone.stdout
        self.wanted = estimates(os.path.join(folder, "alone"))
        self.images = os.path.join(folder, "mnist")
        os.mkdir(self.images)
        write_mnist(self.images)

    def check_fit(self, name, launch, launched=subprocess.run):
        folder = os.path.join(self.folder, name)
        done = launched([*launch, *fit(self.table, folder)], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        compare(estimates(folder), self.wanted)
        return done.stdout

    def mnist(self, *more):
        return [TENON, "train", "mnist", "--data", self.images, "--epochs", 3, *more]


def config_of(cluster, job, index):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index},
                                     "environment": "cloud"})}


def tf_config(scene):
    ps, chief, *workers = free_addresses(4)
    cluster = {"chief": [chief], "worker": workers, "ps": [ps]}
    tasks = [("ps", 0), ("chief", 0), ("worker", 0), ("worker", 1)]

    def start(command, job, index):
        return Process(*command, env=dict(os.environ, **config_of(cluster, job, index)))

    folder = os.path.join(scene.folder, "tf_config")
    processes = [start(fit(scene.table, folder), *task) for task in tasks]
    for process, (job, _) in zip(processes, tasks):
        assert process.finish() == 0, (job, process.text())
    compare(estimates(folder), scene.wanted)
    assert "task: /job:worker/replica:0/task:0 (TF_CONFIG)" in processes[1].text(), processes[1].text()
    assert "task: /job:worker/replica:0/task:2 (TF_CONFIG)" in processes[3].text(), processes[3].text()
    # Training needs its parameter server, and steps of all workers count.
    processes = [start(scene.mnist("--curve", os.path.join(scene.folder, "c.svg")), *task) for task in tasks]
    for process, (job, _) in zip(processes, tasks):
        assert process.finish() == 0, (job, process.text())
    assert "test accuracy" in processes[1].text(), processes[1].text()
    # The evaluator, which has no server, follows the checkpoints until the chief has gone.
    run_dir = os.path.join(scene.folder, "run")
    command = scene.mnist("--checkpoint_dir", run_dir, "--save_seconds", 0.1)
    evaluator = start(command, "evaluator", 0)
    processes = [start(command, *task) for task in tasks]
    for process, (job, _) in zip(processes, tasks):
        assert process.finish() == 0, (job, process.text())
    assert evaluator.finish() == 0, evaluator.text()
    lines = re.findall(r"^evaluation at step (\d+): accuracy ([\d.]+), loss ", evaluator.text(), re.MULTILINE)
    told = re.search(r"^test accuracy: ([\d.]+) \(step (\d+)\)", processes[1].text(), re.MULTILINE)
    assert lines and lines[-1][0] == told[2] and abs(float(lines[-1][1]) - float(told[1])) < 1e-4, evaluator.text()
    assert any(name.startswith("events.out.tfevents.") for name in os.listdir(os.path.join(run_dir, "eval")))
    for command, wanted in ((scene.mnist(), "an evaluator wants --checkpoint_dir"),
                            (fit(scene.table, folder), "this task is an evaluator (TF_CONFIG)")):
        done = subprocess.run([str(c) for c in command], env=dict(os.environ, **config_of(cluster, "evaluator", 0)),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and wanted in done.stderr, done


def one_number_twice(scene):
    """The published script of a guide starts both workers of a node with --task_index=0."""
    ps, *workers = free_addresses(4)
    flags = ["--ps_hosts", ps, "--worker_hosts", ",".join(workers), "--job_name", "worker", "--task_index", 0]
    with Process(*scene.mnist(*flags[:4], "--job_name", "ps")), Process(TENON, "serve", *flags) as first:
        first.wait_for("listening at")
        done = run(*scene.mnist(*flags))
        assert done.returncode == 1, done
        for text in (f"cannot listen at {workers[0]}: Address already in use: /job:worker/replica:0/task:0 answers there, "
                     "in another process that was started with this --job_name and --task_index",
                     "nobody is worker 1, 2 yet: each process has a --task_index of its own"):
            assert text in done.stderr, done.stderr


def hosts_that_are_elsewhere(_):
    """The address of another machine, a name that nobody has, and a name that hides this machine from the others."""
    for host, wanted in (("192.0.2.1", "Cannot assign requested address: no network interface of this machine has it"),
                         ("nosuch.invalid", "cannot listen at nosuch.invalid:2222: ")):
        done = run(TENON, "serve", "--ps_hosts", host + ":2222", "--job_name", "ps", "--insecure", "--start_up_deadline", 1)
        assert done.returncode == 1 and wanted in done.stderr, done
        assert ("waiting for the name nosuch.invalid of this machine: " in done.stdout) == (host == "nosuch.invalid"), done
    address = free_addresses(1)[0]
    with Process(TENON, "serve", "--ps_hosts", address, "--worker_hosts", "192.0.2.1:2222", "--job_name", "ps") as server:
        server.wait_for("127.0.0.1 is a loopback address on this machine, perhaps by /etc/hosts: "
                        "/job:worker/replica:0/task:0 at 192.0.2.1:2222 cannot reach it")
        server.wait_for("listening at")


def checked_config(_):
    """All mistakes at once, and who a server would be; nothing is started."""
    config = config_of({"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "d:1"]}, "worker", 1)
    for command, wanted in (
            (["serve"], "task: /job:worker/replica:0/task:1 (TF_CONFIG)"),
            (["train", "mnist"], "task: /job:worker/replica:0/task:2 (TF_CONFIG)"),
            (["train", "linear", "y ~ x", "none.csv"], "ps=b:1;worker=a:1,c:1,d:1 (TF_CONFIG; its chief is worker 0"),
            (["serve", "--task_index", "0"], "task: /job:worker/replica:0/task:0 (--job_name, --task_index)")):
        more = ["--job_name", "worker"] if "--task_index" in command else []
        done = subprocess.run([TENON, *command, *more, "--check-config"], env=dict(os.environ, **config),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and wanted in done.stdout, done
    with open(os.path.join(SOURCE, "docs", "clusters.md"), encoding="utf-8") as page:
        rows = re.findall(r"^\| `(\{.*?\})` \| (.*) \|$", page.read(), re.MULTILINE)
    assert len(rows) > 10, rows
    for text, said in rows:
        done = subprocess.run([TENON, "serve", "--check-config"], env=dict(os.environ, TF_CONFIG=text),
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and f"TF_CONFIG: {said}" in done.stderr, (text, said, done.stderr)
    wrong = {"TF_CONFIG": '{"cluster": {"wroker": ["a"], "ps": ["b:1", "b:1"]}, "task": 3}'}
    done = subprocess.run([TENON, "serve", "--check-config"], env=dict(os.environ, **wrong), capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("TF_CONFIG: ") == 4, done
    done = run(os.path.join(BINARY, "example_mnist_replica"), "--data", "/nowhere")
    assert done.returncode == 1 and "nothing says which task of which cluster this is: give --ps_hosts" in done.stderr, done
    alone = run(TENON, "train", "mnist", "--check-config")
    assert alone.returncode == 0 and alone.stdout.startswith("cluster: none: this process is alone"), alone


def mpi(scene, name, launch):
    said = scene.check_fit(name, [*launch, "3"])
    assert len(re.findall(r"^task: /job:worker/replica:0/task:[012] ", said, re.MULTILINE)) == 3, said
    # Rank 0 is the parameter server, where one is wanted.
    done = run(*launch, 3, *scene.mnist("--num_ps", 1, "--curve", os.path.join(scene.folder, name + ".svg")))
    assert done.returncode == 0 and done.stdout.count("test accuracy") == 2, done
    assert "task: /job:ps/replica:0/task:0 (" in done.stdout, done.stdout
    # One process alone is no cluster; more parameter servers than processes are none either.
    assert "cluster:" not in scene.check_fit(name + "1", [*launch, "1"])
    done = run(*launch, 2, *scene.mnist("--num_ps", 2))
    assert done.returncode != 0 and "--num_ps: 2 of the 2 processes of " in done.stderr, done
    # Hosts by flags, places by ranks.
    addresses = free_addresses(3)
    done = run(*launch, 3, TENON, "train", "mnist", "--check-config", "--ps_hosts", addresses[0], "--worker_hosts",
               ",".join(addresses[1:]))
    assert done.returncode == 0 and done.stdout.count("(--ps_hosts, --worker_hosts)") == 3, done
    assert "task: /job:worker/replica:0/task:1 (" in done.stdout, done.stdout


def slurm(scene):
    with slurm_nodes.SlurmNodes() as nodes:
        def launched(command, **_):
            return nodes.run(*command)

        said = scene.check_fit("slurm", ["srun", "-N3", "-n5"], launched)
        assert len(re.findall(r"^task: /job:worker/replica:0/task:[0-4] \(SLURM_PROCID\)", said, re.MULTILINE)) == 5, said
        assert re.search(r"worker=n1:(\d+),n1:\d+,n1:\d+,n2:\1,n3:\1 ", said), said
        scene.check_fit("cyclic", ["srun", "-N3", "-n4", "--distribution=cyclic"], launched)
        done = nodes.run("srun", "-N3", "-n3", *scene.mnist("--curve", os.path.join(scene.folder, "slurm.svg")))
        assert done.returncode == 0 and done.stdout.count("test accuracy") == 2, done.stdout + done.stderr
        assert re.search(r"cluster: ps=n1:\d+;worker=n2:\d+,n3:\d+ \(Slurm", done.stdout), done.stdout
        # A shell of salloc and a batch script are no tasks.
        done = nodes.run("salloc", "-N2", "-n2", TENON, "train", "mnist", "--check-config")
        assert done.returncode == 0 and "this process is alone" in done.stdout, done.stdout + done.stderr
        # A task that fails ends the step, and srun says so.
        done = nodes.run("srun", "-N3", "-n3", TENON, "train", "mnist", "--data", "/nowhere")
        assert done.returncode != 0 and "/nowhere" in done.stderr, done.stdout + done.stderr


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        the_scene = Scene(shared)
        chosen = [("TF_CONFIG", lambda: tf_config(the_scene)), ("--check-config", lambda: checked_config(the_scene)),
                  ("hosts that are elsewhere", lambda: hosts_that_are_elsewhere(the_scene)),
                  ("one number twice", lambda: one_number_twice(the_scene))]
        lacking = []
        for system, command in (("Open MPI", OPEN_MPI), ("MPICH", MPICH)):
            if shutil.which(command[0]) is None:
                lacking.append(f"{system}: there is no {command[0]}")
                continue
            chosen.append((system, lambda s=system, c=command: mpi(the_scene, s.replace(" ", ""), c)))
        if slurm_nodes.missing():
            lacking.append("Slurm needs " + slurm_nodes.missing())
        else:
            chosen.append(("Slurm", lambda: slurm(the_scene)))
        result = main(chosen)
        for reason in lacking:
            print("skipped:", reason)
        sys.exit(SKIPPED if result == 0 and lacking else result)
