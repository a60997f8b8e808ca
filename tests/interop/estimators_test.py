#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimators train on Tenon's servers, which TF_CONFIG names, to the metrics that TensorFlow reaches.

Runs itself again under the TensorFlow environment (TENON_TF_VENV). Arguments: names of cases.
"""
import ast
import contextlib
import json
import os
import subprocess
import sys
import tempfile

from script_runs import SCRIPTS, report, run
from tensorflow_environment import Servers, end_with_parent, main_with_tensorflow

GUIDE = os.path.join(SCRIPTS, "../../../docs/migrating.md")
MODELS = ["linear", "deep", "wide_deep", "own"]


def documented(number):
    """What docs/migrating.md says of TF_CONFIG."""
    with open(GUIDE, encoding="utf-8") as f:
        return json.loads(f.read().split("```json\n")[1 + number].split("```")[0])


@contextlib.contextmanager
def tf_config(value):
    os.environ["TF_CONFIG"] = json.dumps(value)
    try:
        yield
    finally:
        del os.environ["TF_CONFIG"]


def result(model, config, *flags):
    with tempfile.TemporaryDirectory() as folder, tf_config(config):
        return run("estimators", [f"--model={model}", f"--model_dir={folder}", *flags])


def compare(wanted, found, master):
    """The same within what the order of updates and of people may change."""
    assert found["master"] == master, found
    assert found["global_step"] >= 200, found
    for name in ("accuracy", "predicted"):
        assert abs(found[name] - wanted[name]) < .06, f"{name}: {found}, wanted {wanted}"
        assert found[name] > .8, f"{name}: {found}, TensorFlow's {wanted}"


def one_server(model):
    """Training, evaluation and prediction in sessions of one server."""
    with Servers({"local": 1}) as servers:
        master = servers.target("local")
        found = result(model, {key: master for key in documented(0)})
    compare(result(model, {}), found, master)


def chief_and_parameter_servers(model):
    """The session's address follows from the cluster; train_and_evaluate starts a server only if not told."""
    import tensorflow.compat.v1 as tf
    with Servers({"chief": 1, "ps": 2}) as servers:
        config = {**documented(1), "cluster": servers.addresses}
        trained = result(model, config)
        also_evaluated = result(model, config, "--train_and_evaluate")
        master = servers.target("chief")
        try:
            del config["environment"]
            result(model, config, "--train_and_evaluate")
        except tf.errors.UnknownError as e:
            assert "Could not start gRPC server" in str(e), e
        else:
            raise AssertionError("two servers at one address")
    wanted = result(model, {})
    for found in (trained, also_evaluated):
        compare(wanted, found, master)


def processes(model):
    """Chief, worker and evaluator, each a process; the latter's sessions are Tenon's too."""
    tasks = [("chief", 0), ("worker", 0), ("evaluator", 0)]
    with Servers({"chief": 1, "worker": 1, "ps": 1, "evaluation": 1}) as servers, \
            tempfile.TemporaryDirectory() as folder:
        cluster = {job: servers.addresses[job] for job in ("chief", "worker", "ps")}
        running = []
        for job, index in tasks:
            config = {**documented(1), "cluster": cluster, "task": {"type": job, "index": index},
                      "eval_session_master": servers.target("evaluation")}
            running.append(subprocess.Popen(
                [sys.executable, os.path.join(SCRIPTS, "estimators.py"), f"--model={model}", "--train_and_evaluate",
                 f"--model_dir={folder}"], env=dict(os.environ, TF_CONFIG=json.dumps(config)),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=end_with_parent))
        outputs = [process.communicate(timeout=400)[0] for process in running]
        for (job, _), process, output in zip(tasks, running, outputs):
            assert process.returncode == 0, f"{job}: {output[-2000:]}"
        assert os.listdir(os.path.join(folder, "eval")), "nothing was evaluated"
        found = ast.literal_eval(outputs[0].split("result ")[-1])
    compare(result(model, {}), found, servers.target("chief"))


CASES = [(f"one_server_{model}", lambda model=model: one_server(model)) for model in MODELS] + [
    ("chief_and_parameter_servers", lambda: chief_and_parameter_servers("wide_deep")),
    ("processes", lambda: processes("own"))]


if __name__ == "__main__":
    main_with_tensorflow(lambda: report(CASES))
