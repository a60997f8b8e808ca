#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The job of eleven tasks of docs/cluster_examples.md: a chief, seven workers, two parameter servers and an evaluator, each
with nothing but a TF_CONFIG of its own, and data at s3://. `tenon train mnist` has its checkpoints there, too; an
Estimator's script knows nothing of Tenon, whose servers run beside it."""
import contextlib
import json
import os
import re
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from estimator_jobs import EVALUATOR, SCRIPT, TENSORFLOW, Flights, Job, alone, check_ended, stop_servers
from s3_load_test import tensorboard
from s3_servers import client, environment, free_port, main_with_servers, moto
from server_programs import SOURCE, TENON
from tensorflow_environment import PYTHON, VENV

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from processes_test import write_mnist  # noqa: E402
from tenon_process import main  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "cluster_examples.md")


def upload(s3, folder, prefix):
    for name in sorted(os.listdir(folder)):
        s3.upload_file(os.path.join(folder, name), "bucket", f"{prefix}/{name}")


def points(board, run_name, tag):
    """A scalar's steps and values, once TensorBoard has some."""
    end = time.monotonic() + 240
    url = f"{board}/data/plugin/scalars/scalars?" + urllib.parse.urlencode({"run": run_name, "tag": tag})
    while True:
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(url) as answer:
            found = json.load(answer)
            if found:
                return {int(p[1]): p[2] for p in found}
        assert time.monotonic() < end, url
        time.sleep(.3)


def built_in_training(m):
    env, s3 = environment(m), client(m)
    with tempfile.TemporaryDirectory() as folder:
        write_mnist(folder)
        upload(s3, folder, "mnist")
    command = [TENON, "train", "mnist", "--data", "s3://bucket/mnist", "--checkpoint_dir", "s3://bucket/run",
               "--root", "s3://bucket/run", "--max_steps", 400, "--save_seconds", 0.5]
    with Job() as job:
        everybody = job.servers + job.trainers + EVALUATOR
        job.start(everybody, command, env)
        job.finish(everybody, 300)
        for number, task in enumerate(job.trainers):
            assert f"task: /job:worker/replica:0/task:{number} (TF_CONFIG)" in job.processes[task].text(), task
        told = re.search(r"^test accuracy: ([\d.]+) \(step (\d+)\)", job.text("chief"), re.MULTILINE)
        lines = re.findall(r"^evaluation at step (\d+): accuracy ([\d.]+), loss ", job.text("evaluator"), re.MULTILINE)
        assert lines and lines[-1][0] == told[2] and int(told[2]) >= 400, (lines, told[0])
        assert abs(float(lines[-1][1]) - float(told[1])) < 1e-4 and float(told[1]) > .9, (lines, told[0])
    keys = [o["Key"] for o in s3.list_objects_v2(Bucket="bucket", Prefix="run/")["Contents"]]
    assert f"run/model.ckpt-{told[2]}.index" in keys and "run/checkpoint" in keys, keys
    assert any(k.startswith("run/eval/events.out.tfevents.") for k in keys) and "run/learning_curve.svg" in keys, keys
    assert not [k for k in keys if "temp" in k], keys
    with tensorboard("s3://bucket/run", dict(env, S3_ENDPOINT=m)) as board:
        shown, said = points(board, "eval", "accuracy"), {int(step): float(value) for step, value in lines}
        assert shown.keys() == said.keys() and all(abs(shown[step] - said[step]) < 1e-4 for step in said), (shown, said)


def estimator(m):
    """Each task of the script has a server; parameter servers are servers alone."""
    with tempfile.TemporaryDirectory() as folder, Job() as job:
        flights = Flights(folder)
        upload(client(m), flights.folder, "flights")
        with open(PAGE, encoding="utf-8") as page:
            text = page.read().split("```python\n")[1].split("```")[0]
        starter, model_dir = os.path.join(folder, "task.py"), os.path.join(folder, "model")
        with open(starter, "w", encoding="utf-8") as file:
            file.write(text)
        variables = dict(environment(m), **TENSORFLOW, HOME=folder, EVALUATOR_PORT=str(free_port()),  # Keras writes there
                         SERVE_FLAGS=f"--root {folder},s3://bucket/flights")
        command = [PYTHON, starter, SCRIPT, *flights.flags("s3://bucket/flights", model_dir)]
        job.start_evaluator_first(job.servers + job.trainers, command, variables)
        wanted = alone(flights, folder)
        job.finish(job.trainers + EVALUATOR, 400)
        check_ended(job, 6000, model_dir, wanted, flights)
        stop_servers(job)


def with_a_bucket(case):
    def run_it():
        with moto() as m:
            client(m).create_bucket(Bucket="bucket")
            case(m)
    return run_it


def run_all():
    cases = [built_in_training]
    if os.path.exists(PYTHON):
        cases.append(estimator)
    else:
        print(f"skipped: there is no TensorFlow at {VENV} for the script; tools/install_tensorflow.sh installs it")
    return main([(case.__name__, with_a_bucket(case)) for case in cases if not sys.argv[1:] or case.__name__ in sys.argv[1:]])


if __name__ == "__main__":
    main_with_servers(run_all)
