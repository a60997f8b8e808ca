#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server and two workers on three nodes, and on three ports of one node, with a real Slurm and the scripts of
docs/cluster_examples.md: by ranks, by the launcher, by flags made of the list of nodes, and as a script for TensorFlow.
In step all end with the same checkpoint."""
import ast
import os
import re
import sys

import slurm_nodes
from processes_test import write_mnist
from tenon_process import BINARY, SOURCE, in_a_folder, main, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
from tensorflow_environment import PYTHON, VENV  # noqa: E402

SKIPPED = 77
# Tasks of Slurm begin in a folder of their own.
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
SCRIPT = os.path.abspath(os.path.join(SOURCE, "tests", "interop", "scripts", "mnist_replica.py"))
PAGE = os.path.join(SOURCE, "docs", "cluster_examples.md")
STEPS = 40


class Layout:
    """How the three tasks are spread over nodes."""

    def __init__(self, nodes, count):
        self.nodes, self.count = nodes, count
        self.path = f"PATH={os.path.dirname(TENON)}:{os.environ['PATH']}"
        self.spread = (f"--nodes={count}", "--ntasks=3")

    def srun(self, *words):
        return self.nodes.run("env", self.path, "srun", *self.spread, *words)

    def check_addresses(self, said, port=r"\d+"):
        """The cluster that the tasks print has the addresses of the layout."""
        cluster = re.search(r"cluster: ps=(n\d):(\d+);worker=(n\d):(\d+),(n\d):(\d+) ", said)
        assert cluster and re.fullmatch(port, cluster[2]), said
        hosts, ports = cluster.group(1, 3, 5), [int(p) for p in cluster.group(2, 4, 6)]
        assert len(set(hosts)) == self.count, said
        wanted = [ports[0]] * 3 if self.count == 3 else [ports[0], ports[0] + 1, ports[0] + 2]
        assert ports == wanted, said


def script_of_page(nodes, number, name):
    """The path of a script that the page has."""
    with open(PAGE, encoding="utf-8") as page:
        text = page.read().split("```bash\n")[1 + number].split("```")[0]
    nodes.write(name, text)
    return os.path.join(nodes.folder, name)


def trained(layouts, folder):
    """The checkpoints of the three ways in both layouts are those of one process."""
    images = os.path.join(folder, "mnist")
    os.mkdir(images)
    write_mnist(images)
    mnist = ["--data", images, "--max_steps", STEPS, "--sync", "--shards", 2, "--root", folder]
    alone = os.path.join(folder, "alone")
    done = run(TENON, "train", "mnist", *mnist, "--checkpoint_dir", alone)
    assert done.returncode == 0, done
    accuracy = re.search(r"^test accuracy: .*$", done.stdout, re.MULTILINE)[0]
    by_hand = script_of_page(layouts[0].nodes, 0, "train.sh")
    for layout in layouts:
        train = ["tenon", "train", "mnist"]
        launch = ["env", layout.path, TENON, "launch", "--slurm", "--nodes", layout.count, "--ps", 1, "--workers", 2, "--"]
        for name, start in (
                ("ranks", lambda words, layout=layout: layout.srun(*train, *words, "--insecure")),
                ("launcher", lambda words, layout=layout: layout.nodes.run(*launch, *train, *words)),
                ("by hand", lambda words, layout=layout: layout.srun("bash", by_hand, *words, "--insecure"))):
            where = os.path.join(folder, f"{name}{layout.count}")
            done = start([*mnist, "--checkpoint_dir", where])
            assert done.returncode == 0, (name, layout.count, done.stdout + done.stderr)
            assert accuracy in done.stdout, (name, layout.count, accuracy, done.stdout)
            if name != "by hand":  # flags are not said again
                layout.check_addresses(done.stdout)
            same = run(TENON, "inspect", where, "--compare", alone)
            assert same.returncode == 0 and ", 0 differ" in same.stdout, (name, layout.count, same)
            assert f"model.ckpt-{STEPS}.index" in os.listdir(where), os.listdir(where)


def scripted(layouts, folder):
    """Workers' clients are TensorFlow's, and servers end with the job."""
    job = script_of_page(layouts[0].nodes, 1, "job.sh")
    for layout in layouts:
        where, log = os.path.join(folder, f"script{layout.count}"), os.path.join(folder, f"log{layout.count}")
        os.mkdir(where)
        environment = ["env", layout.path, "NO_PROXY=*", "TF_CPP_MIN_LOG_LEVEL=3", "CUDA_VISIBLE_DEVICES="]
        done = layout.nodes.run(*environment, "sbatch", "--wait", *layout.spread, f"--output={log}", job, where, PYTHON,
                                SCRIPT, f"--log_dir={where}", timeout=120)
        with open(log, encoding="utf-8") as file:
            said = file.read()
        assert done.returncode == 0, done.stdout + done.stderr + said
        layout.check_addresses(said, "4000")
        results = re.findall(r"^\{'accuracy'.*\}$", said, re.MULTILINE)
        assert len(results) == 2, said
        for result in results:
            result = ast.literal_eval(result)
            assert result["accuracy"] > .85 and result["global_step"] >= 300, result
        assert said.count("SIGTERM: ending") == 3, said
        kept = run(TENON, "inspect", where)
        assert kept.returncode == 0 and "hidden_w" in kept.stdout, kept


def with_slurm(folder):
    with slurm_nodes.SlurmNodes("10.77.0.1") as nodes:
        layouts = [Layout(nodes, 3), Layout(nodes, 1)]
        chosen = [("tenon train mnist", lambda: trained(layouts, folder))]
        if os.path.exists(PYTHON):
            chosen.append(("a script for TensorFlow", lambda: scripted(layouts, folder)))
        assert main(chosen) == 0, "see above"


if __name__ == "__main__":
    if slurm_nodes.missing():
        print("skipped: Slurm needs", slurm_nodes.missing())
        sys.exit(SKIPPED)
    if not os.path.exists(PYTHON):
        print(f"skipped: there is no TensorFlow at {VENV} for the script; tools/install_tensorflow.sh installs it")
    sys.exit(main([("Slurm", in_a_folder(with_slurm))]))
