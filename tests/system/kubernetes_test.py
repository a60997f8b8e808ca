#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon launch --print_kubernetes`: the manifests by Kubernetes' schemas, and the pods that they describe as processes
with addresses of their own beyond loopback, whose trainings end as those of one process do."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from launchers_test import Scene, compare, estimates, fit
from tenon_process import BINARY, SOURCE, Process, TooLate, in_a_folder, in_time, main, run

SKIPPED = 77
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
PRINT = [TENON, "launch", "--print_kubernetes"]
PYTHON = os.path.join(os.path.expanduser(os.environ.get("TENON_KUBERNETES", "~/.cache/tenon/kubernetes-1.37")), "bin", "python")
SCHEMA = os.path.join(SOURCE, "tests", "data", "kubernetes", "tfjob.schema.json")
VERSIONS = ("1.28", "1.37")
NAMESPACES = ("--mount", "--net")


def missing():
    if not os.path.exists(PYTHON):
        return f"Kubernetes' schemas: tools/install_kubernetes.sh makes {PYTHON}"
    if os.geteuid() != 0:
        return "root, for pods with addresses"
    lacking = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if lacking:
        return "iproute2 and util-linux: there is no " + ", ".join(lacking)
    alone = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, check=False)
    return "" if alone.returncode == 0 else "namespaces: " + alone.stderr.decode().strip()


def read_manifest(folder, *arguments):
    """What is printed, and what Kubernetes makes of it."""
    done = run(*PRINT, *arguments)
    assert done.returncode == 0 and done.stderr == "", done
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    read = run(PYTHON, os.path.join(SOURCE, "tests", "system", "kubernetes_manifest.py"), path, SCHEMA, *VERSIONS)
    assert read.returncode == 0, read.stderr + done.stdout
    return done.stdout, json.loads(read.stdout)


class Pods:
    """Their network, in which each has an address and its names. The containers run as processes of this machine."""

    def __init__(self, folder, pods):
        self.pods, self.processes = pods, []
        self.addresses = [f"10.78.0.{i + 1}" for i in range(len(pods))]
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            for address, pod in zip(self.addresses, pods):
                file.write(f"{address} {' '.join(pod['hosts'])}\n")
        add = "".join(f"ip address add {address}/32 dev lo\n" for address in self.addresses)
        script = f"set -e\nmount --bind {hosts} /etc/hosts\nip link set lo up\n{add}echo begun\nexec sleep infinity"
        self.network = Process("unshare", *NAMESPACES, "bash", "-c", script)
        self.network.wait_for("begun")

    def inside(self, *command):
        return ["nsenter", "--target", str(self.network.process.pid), *NAMESPACES, *command]

    def start(self, pod):
        # A container has what its manifest and image say, and nothing of this process's.
        variables = {"PATH": os.environ["PATH"], **pod["environment"]}
        process = Process(*self.inside(*pod["command"]), env=variables)
        self.processes.append(process)
        return process

    def __enter__(self):
        for pod in self.pods:
            self.start(pod)
        return self

    def finish(self, codes=0):
        for pod, process in zip(self.pods, self.processes):
            assert process.finish(100) == codes, (pod["name"], process.text())

    def __exit__(self, *_):
        for process in [*self.processes, self.network]:
            process.__exit__()


def linear_model(scene, folder):
    """Estimates are those of one process, with the tasks' flags by index and name."""
    for flags, names in ((["--ps", 0, "--workers", 3], ["worker-0", "worker-1", "worker-2"]),
                         (["--ps", 1, "--workers", 2], ["ps-0", "worker-0", "worker-1"])):
        model = os.path.join(folder, names[0])
        _, read = read_manifest(folder, "flights", "--image", "registry.example.com:5000/tenon@sha256:0a", *flags, "--",
                                *fit(scene.table, model), "--root", "/")
        assert [pod["name"] for pod in read["pods"]] == ["flights-" + name for name in names], read["pods"]
        assert all(pod["ports"] == [2222] for pod in read["pods"]), read["pods"]
        with Pods(folder, read["pods"]) as pods:
            pods.finish()
            chief = pods.processes[names.index("worker-0")].text()
        compare(estimates(model), scene.wanted)
        assert "loopback" not in chief and "token" not in chief.lower(), chief


def training_as_tfjob(scene, folder):
    _, read = read_manifest(folder, "mnist-1", "--image", "tenon:1", "--tfjob", "--workers", 2, "--",
                            *scene.mnist("--curve", folder + "/c.svg", "--root", "/"))
    assert [d["kind"] for d in read["documents"]] == ["Secret", "TFJob"], read
    with Pods(folder, read["pods"]) as pods:
        pods.finish()
        said = pods.processes[1].text()
    assert "ps=mnist-1-ps-0.default.svc:2222;worker=mnist-1-worker-0.default.svc:2222" in said, said
    assert "task: /job:worker/replica:0/task:0 (TF_CONFIG)" in said and "test accuracy" in said, said


def probes_and_restarts(scene, folder, epochs):
    """Probes disturb nobody, a container that is killed and started again is taken back, and SIGTERM ends all."""
    train = [s if s != 3 else epochs for s in scene.mnist()]
    run_dir = f"{folder}/run{epochs}"
    _, read = read_manifest(folder, "long", "--image", "tenon", "--workers", 2, "--", *train, "--checkpoint_dir", run_dir,
                            "--root", folder)
    with Pods(folder, read["pods"]) as pods:
        _, chief, other = pods.processes
        chief.wait_for("epoch")
        probe = "for i in $(seq 300); do for a in {}; do exec 3<>/dev/tcp/$a/2222 || exit 1; exec 3>&-; done; done; echo all"
        done = run(*pods.inside("bash", "-c", probe.format(" ".join(pods.addresses))))
        assert done.returncode == 0 and done.stdout == "all\n", done
        assert all(pod["probes"] == [{"grpc": {"port": 2222}}] * 2 for pod in read["pods"]), read["pods"]
        assert "TENON_TOKEN" in read["pods"][0]["environment"], read["pods"]
        servers = [address + ":2222" for address in pods.addresses]
        done = run(*pods.inside(PYTHON, os.path.join(SOURCE, "tests", "system", "health_probe.py"), *servers))
        assert done.returncode == 0 and done.stdout.count("serving") == 3, done
        other.strike(signal.SIGKILL)
        other.finish()
        pods.processes[2] = again = pods.start(read["pods"][2])
        while "epoch" not in again.text():
            chief.strike(0)
            assert again.process.poll() is None, again.text()
            time.sleep(0.05)
        for process in pods.processes[:3]:
            process.strike(signal.SIGTERM)
        codes = [process.finish(60) for process in pods.processes[:3]]
        if "stopped by" not in chief.text():  # tasks that are about to exit no longer watch for signals
            raise TooLate(chief.text())
        assert all(code in (0, 143) for code in codes), (codes, [process.text() for process in pods.processes[:3]])
    assert any(name.endswith(".index") for name in os.listdir(run_dir)), os.listdir(run_dir)


def words_as_they_are(folder):
    """Whatever quotes, dollars and variables they have; values too."""
    words = ["a'b\"c", "$(HOME)", "$$", "$X $(JOB_COMPLETION_INDEX)", "", "- x: {y}", "#no", "ünï 漢 🙂", "a\tb\nc\\n", "no", "1e3",
             "\x7f\x01", "%"]
    text, read = read_manifest(folder, "on", "--image", "i", "--ps", 0, "--workers", 2, "--env", "A=$(B) $$ 'x': \"y\"", "--env",
                               "no=1", "--max_restarts", 7, "--cpus_per_task", 4, "--gpus_per_task", 2, "--", "program", *words)
    pod = read["pods"][1]
    assert pod["command"][:-3] == ["program", *words], pod
    assert pod["command"][-3:] == ["--worker_hosts=on-worker-0.on:2222,on-worker-1.on:2222", "--job_name=worker", "--task_index=1"], pod
    assert pod["environment"]["A"] == "$(B) $$ 'x': \"y\"" and pod["environment"]["no"] == "1", pod
    assert re.fullmatch("[0-9a-f]{64}", pod["environment"]["TENON_TOKEN"]), pod
    job = read["documents"][-1]["spec"]
    assert job["backoffLimit"] == 7, job
    resources = job["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == 4 and resources["limits"] == {"nvidia.com/gpu": 2}, job
    assert "ps" not in [d["metadata"]["name"].split("-")[-1] for d in read["documents"]], text
    # Parameter servers have no GPU.
    _, read = read_manifest(folder, "on", "--image", "i", "--ps", 1, "--gpus_per_task", 1, "--", "program")
    resources = [d["spec"]["template"]["spec"]["containers"][0]["resources"] for d in read["documents"] if d["kind"] == "Job"]
    assert [r.get("limits") for r in resources] == [None, {"nvidia.com/gpu": 1}], read
    # Each has a secret of its own, and none where there are flags about security.
    again = read_manifest(folder, "on", "--image", "i", "--", "program")[1]["pods"][0]["environment"]["TENON_TOKEN"]
    assert again != pod["environment"]["TENON_TOKEN"], again
    for flags in (["--tfjob"], []):
        _, read = read_manifest(folder, "on", "--image", "i", *flags, "--", "program", "--tls-cert=/c")
        assert "Secret" not in [d["kind"] for d in read["documents"]], read
        assert "TENON_TOKEN" not in read["pods"][0]["environment"], read
    # Probes have no certificate, and other programs' servers may have no health service.
    for program, flag in ((TENON, "--tls-ca=/c"), ("program", "--insecure")):
        _, read = read_manifest(folder, "on", "--image", "i", "--", program, flag)
        assert read["pods"][0]["probes"] == [{"tcpSocket": {"port": "tenon"}}] * 2, read
    for flag, wanted in (([], ["--start_up_deadline=300"]), (["--start-up-deadline", "9"], ["--start-up-deadline", "9"])):
        _, read = read_manifest(folder, "on", "--image", "i", "--tfjob", "--", "/opt/bin/tenon", "serve", *flag)
        assert read["pods"][0]["command"] == ["/opt/bin/tenon", "serve", *wanted], read
    read_manifest(folder, "a" * 53, "--image", "i", "--workers", 100, "--", "program")
    assert read_manifest(folder, "a", "--image", "i", "--tfjob", "--ps", 0, "--", "x")[1]["pods"][0]["name"] == "a-worker-0"


def wrong_flags():
    image = ["--image", "i"]
    for flags, wanted in (([""] + image, "--print_kubernetes: found '', wanted a name of small letters"),
                          (["Mnist"] + image, "--print_kubernetes: found 'Mnist', wanted a name"),
                          (["1st"] + image, "that begins with a letter"), (["a_b"] + image, "found 'a_b'"),
                          (["a-"] + image, "found 'a-'"), (["a.b"] + image, "found 'a.b'"), (["ä"] + image, "found 'ä'"),
                          (["a" * 54] + image + ["--workers", 100], "found a name of 54 characters, wanted at most 53"),
                          (["a" * 59] + image + ["--ps", 10000], "wanted at most 54"),
                          (["a"], "--image is missing"), (["a", "--image", ""], "--image is missing"),
                          (["a", "--image", "x y"], "--image: found 'x y', wanted the name of a container's image"),
                          (["a", "--image", "x\"y"], "--image: found 'x\"y'"),
                          (["a"] + image + ["--log_dir", "d"], "--log_dir: Kubernetes keeps what tasks print (kubectl logs)"),
                          (["a"] + image + ["--dry_run"], "--print_kubernetes starts nothing in any case"),
                          (["a"] + image + ["--slurm"], "--print_kubernetes excludes --slurm"),
                          (["a"] + image + ["--env", "a b=c"], "--env: found the name 'a b'"),
                          (["a"] + image + ["--env", "1=c"], "--env: found the name '1'")):
        done = run(*PRINT, *flags, "--", "program")
        assert done.returncode == 2 and wanted in done.stderr and done.stdout == "", (flags, done)
    done = subprocess.run([*PRINT, "a", *image, "--", b"p\xff"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and b"found bytes that are no UTF-8" in done.stderr and done.stdout == b"", done
    for flag in (["--image", "i"], ["--tfjob"]):
        done = run(TENON, "launch", *flag, "--", "program")
        assert done.returncode == 2 and f"{flag[0]} needs --print_kubernetes" in done.stderr, done


def pods_as_processes(folder):
    scene = Scene(folder)
    cases = [("a linear model", in_a_folder(lambda f: linear_model(scene, f))),
             ("a training as TFJob", in_a_folder(lambda f: training_as_tfjob(scene, f))),
             ("probes and restarts", in_a_folder(lambda f: in_time(lambda epochs: probes_and_restarts(scene, f, epochs), 12000, 48000))),
             ("words as they are", in_a_folder(words_as_they_are))]
    only = set(sys.argv[1:])
    assert main([case for case in cases if not only or case[0] in only]) == 0, "see above"


if __name__ == "__main__":
    alone = [("wrong flags", wrong_flags)]
    if missing():
        code = main(alone)
        print("skipped: needs", missing())
        sys.exit(SKIPPED if code == 0 else code)
    sys.exit(main([*alone, ("pods as processes", in_a_folder(pods_as_processes))]))
