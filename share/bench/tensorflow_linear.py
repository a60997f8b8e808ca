#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The linear model of docs/linear_models_tensorflow.md by TensorFlow's feature columns and premade Estimators, in one process
and in a cluster, on TensorFlow's servers and on Tenon's, beside `tenon train linear`, in turn on one machine:

    make_flights.py FOLDER
    tensorflow_linear.py --train FOLDER/flights_train.csv --eval FOLDER/flights_test.csv

A line a run: seconds of all, CPU seconds of all its processes, and how well it predicts. --input measures the pipeline alone.
"""
import argparse
import contextlib
import gzip
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "interop" / "scripts" / "flights_linear.py"
PYTHON = os.path.join(os.environ.get("TENON_TF_VENV", os.path.expanduser("~/.cache/tenon/tf-2.15.1")), "bin", "python")
FORMULA = ("late ~ C(month) + C(dow) + hour + carrier + origin + dest + distance + temp + humid + wind_speed + precip + "
           "pressure + visib")
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "NO_PROXY": "*", "GRPC_ENABLE_FORK_SUPPORT": "0"}
SYSTEMS = ["command", "tensorflow", "tenon", "tensorflow_cluster", "tenon_cluster"]

# One iterator of the script's pipeline, from whose batches nothing is made.
INPUT = """
import sys, time
sys.path.insert(0, sys.argv[1])
import tensorflow.compat.v1 as tf
import flights_linear
pattern, batch, rows, parsed = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "parsed"
if not parsed:
    flights_linear.parse = lambda lines: lines
batches = flights_linear.read(pattern, batch, shuffle=20000)
fetched = tf.nest.flatten(tf.data.make_one_shot_iterator(batches).get_next())
with tf.Session() as session:
    session.run(fetched)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(rows // batch):
        session.run(fetched)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
done = rows // batch * batch
print(f"{'parsed' if parsed else 'lines'}, batches of {batch}: {wall / done * 1e6:.2f} us a row, {cpu / done * 1e6:.2f} of CPU")
"""


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        yield from file


def addresses(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]


class Bench:
    def __init__(self, flags, folder):
        self.flags = flags
        self.folder = folder
        self.vocabulary = os.path.join(folder, "dest.txt")
        lines = lines_of(flags.train)
        column = next(lines).strip().split(",").index("dest")
        dests, self.rows = set(), 0
        for line in lines:
            dests.add(line.split(",")[column])
            self.rows += 1
        pathlib.Path(self.vocabulary).write_text("".join(d + "\n" for d in sorted(dests)), encoding="utf-8")

    def script(self, model_dir, batch_size, config=None):
        steps = int(self.flags.passes * self.rows / batch_size)
        command = [PYTHON, SCRIPT, "--train", self.flags.train, "--eval", self.flags.eval, "--dest_vocabulary", self.vocabulary,
                   "--model_dir", model_dir, "--batch_size", str(batch_size), "--train_steps", str(steps),
                   "--learning_rate", str(self.flags.learning_rate), "--shuffle", str(self.flags.shuffle)]
        environment = dict(os.environ, **ENVIRONMENT, **({"TF_CONFIG": json.dumps(config)} if config else {}))
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def result(self, process):
        output, errors = process.communicate(timeout=self.flags.limit)
        if process.returncode != 0:
            sys.exit(f"{process.args}: {errors[-2000:]}")
        return json.loads(output.split("result ")[-1])

    @contextlib.contextmanager
    def servers(self, cluster):
        text = ";".join(f"{job}={','.join(hosts)}" for job, hosts in cluster.items())
        running = [subprocess.Popen([self.flags.tenon, "serve", "--cluster", text, "--job_name", job, "--task_index", str(i)],
                                    stdout=subprocess.PIPE, text=True) for job, hosts in cluster.items() for i, _ in enumerate(hosts)]
        try:
            for server in running:
                while not server.stdout.readline().startswith("listening"):
                    pass
            yield
        finally:
            for server in running:
                server.terminate()
            for server in running:
                server.wait()

    def command(self, model_dir, _):
        subprocess.run([self.flags.tenon, "train", "linear", FORMULA, self.flags.train, "--family", "binomial", "--eval",
                        self.flags.eval, "--model_dir", model_dir, "--quiet"], check=True)
        with open(os.path.join(model_dir, "metrics.json"), encoding="utf-8") as file:
            found = json.load(file)["evaluation"]
        return {"average_loss": found["log_loss"], "accuracy": found["accuracy"], "auc": found["auc"]}

    def tensorflow(self, model_dir, batch_size):
        return self.result(self.script(model_dir, batch_size))

    def tenon(self, model_dir, batch_size):
        cluster = {"local": addresses(1)}
        with self.servers(cluster):
            master = "grpc://" + cluster["local"][0]
            return self.result(self.script(model_dir, batch_size, {"session_master": master, "eval_session_master": master}))

    def tasks(self, model_dir, batch_size, config):
        tasks = [("chief", 0), *(("worker", i) for i in range(self.flags.workers)), ("evaluator", 0)]
        running = [self.script(model_dir, batch_size, {**config, "task": {"type": job, "index": index}})
                   for job, index in tasks]
        return [self.result(process) for process in running][0]

    def cluster(self):
        return {"chief": addresses(1), "worker": addresses(self.flags.workers), "ps": addresses(1)}

    def tensorflow_cluster(self, model_dir, batch_size):
        config = {"cluster": self.cluster()}
        ps = self.script(model_dir, batch_size, {**config, "task": {"type": "ps", "index": 0}})
        try:
            return self.tasks(model_dir, batch_size, config)
        finally:
            ps.kill()  # such servers never end
            ps.communicate()

    def tenon_cluster(self, model_dir, batch_size):
        config = {"cluster": self.cluster(), "environment": "google"}
        with self.servers(config["cluster"]):
            return self.tasks(model_dir, batch_size, config)

    def run(self, system, batch_size):
        with tempfile.TemporaryDirectory(dir=self.folder) as model_dir:
            begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            found = getattr(self, system)(model_dir, batch_size)
            seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        train = f"{found['train_seconds']:.1f}" if "train_seconds" in found else "-"
        print(f"| {system} | {batch_size or '-'} | {seconds:.1f} | {train} | {cpu:.1f} | {cpu / seconds:.2f} | "
              f"{found['average_loss']:.4f} | {found['accuracy']:.4f} | {found['auc']:.4f} |", flush=True)

    def input(self, batch_size):
        for what in ("lines", "parsed"):
            subprocess.run([PYTHON, "-c", INPUT, SCRIPT.parent, self.flags.train, str(batch_size), str(self.rows), what],
                           check=True, stderr=subprocess.DEVNULL, env=dict(os.environ, **ENVIRONMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "release" / "tenon"), metavar="PATH")
    parser.add_argument("--train", required=True, metavar="CSV")
    parser.add_argument("--eval", required=True, metavar="CSV")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="of " + ",".join(SYSTEMS))
    parser.add_argument("--batch_sizes", default="128")
    parser.add_argument("--passes", type=float, default=1, help="over the rows, of all workers together")
    parser.add_argument("--learning_rate", type=float, default=.1)
    parser.add_argument("--shuffle", type=int, default=20000, metavar="ROWS", help="among how many")
    parser.add_argument("--workers", type=int, default=2, help="beside the chief")
    parser.add_argument("--limit", type=float, default=900, metavar="S")
    parser.add_argument("--input", action="store_true", help="measure the input pipeline alone too")
    flags = parser.parse_args()
    unknown = set(flags.systems.split(",")) - set(SYSTEMS)
    if unknown:
        parser.error(f"found {', '.join(unknown)}, wanted some of {', '.join(SYSTEMS)}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(flags, folder)
        print("| system | batch | s | of these in training | CPU s | CPUs | log-loss | accuracy | AUC |")
        print("|---" * 9 + "|", flush=True)
        sizes = [int(size) for size in flags.batch_sizes.split(",")]
        for system in flags.systems.split(","):
            for batch_size in [0] if system == "command" else sizes:
                bench.run(system, batch_size)
        if flags.input:
            for batch_size in sizes:
                bench.input(batch_size)


if __name__ == "__main__":
    main()
