#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts as TensorFlow 1's users have them (tests/interop/scripts) run unchanged on Tenon's servers.

Each runs on TensorFlow too and must come to the same values, where seeds decide them, and the same metrics
elsewhere. Runs itself again under the TensorFlow environment (TENON_TF_VENV). Arguments: names of scripts.
"""
import functools
import glob
import os
import tempfile

from script_runs import TensorFlowServers, report, run, run_workers
from tensorflow_environment import Servers, main_with_tensorflow


def compare(wanted, found, exact=(), close=None, least=None):
    """Values in `exact` agree to single precision, those in `close` to a difference; none is below `least`."""
    import numpy as np
    for name in exact:
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-3, atol=1e-5, err_msg=name)
    for name, difference in (close or {}).items():
        assert abs(found[name] - wanted[name]) <= difference, f"{name}: {found[name]}, wanted {wanted[name]}"
    for name, limit in (least or {}).items():
        assert found[name] >= limit and wanted[name] >= limit, \
            f"{name}: {found[name]}, TensorFlow's {wanted[name]}, wanted at least {limit}"


def one_server(script, flag=None, **wanted):
    """A script with one session and perhaps a folder, whose flag is named."""
    def on(master):
        with tempfile.TemporaryDirectory() as folder:
            return run(script, [f"--master={master}"] + ([f"--{flag}={folder}"] if flag else []))

    with Servers({"local": 1}) as servers:
        compare(on(""), on(servers.target("local")), **wanted)


def word2vec_in_parts():
    """The parts of the embeddings on two parameter servers."""
    def on(servers):
        with servers:
            return run("word2vec", ["--master=" + servers.target("worker"),
                                    "--ps_hosts=" + ",".join(servers.addresses["ps"])])

    jobs = {"ps": 2, "worker": 1}
    compare(on(TensorFlowServers(jobs)), on(Servers(jobs)), exact=["losses"], close={"same_topic": .05},
            least={"same_topic": .8})


def mnist_replica():
    """Supervisor: the parameter servers hold what two workers train, and the chief leaves its files."""
    def on(servers):
        with servers, tempfile.TemporaryDirectory() as folder:
            results = run_workers(servers, "mnist_replica", [f"--log_dir={folder}"])
            files = {os.path.basename(f).split("-")[0].split(".")[0] for f in glob.glob(folder + "/*")}
            assert {"checkpoint", "events", "graph", "model"} <= files, files
            return results

    jobs = {"ps": 2, "worker": 2}
    for wanted, found in zip(on(TensorFlowServers(jobs)), on(Servers(jobs))):
        compare(wanted, found, close={"accuracy": .05}, least={"accuracy": .85, "global_step": 300})


def sync_replicas(workers, aggregate):
    """All replicas end, and have found the line; with a backup worker the fastest decide."""
    import numpy as np

    def on(servers):
        with servers, tempfile.TemporaryDirectory() as folder:
            # A worker that finds no variables would look again after 30 s.
            results = run_workers(servers, "sync_replicas", [
                f"--replicas_to_aggregate={aggregate}", f"--checkpoint_dir={folder}"], folder + "/checkpoint")
            assert glob.glob(folder + "/model.ckpt-*.index"), os.listdir(folder)
            return results

    jobs = {"ps": 1, "worker": workers}
    for results in on(TensorFlowServers(jobs)), on(Servers(jobs)):
        assert len(results) == workers
        for result in results:
            np.testing.assert_allclose(result["w"], [1, -2, 3], atol=.1)
            np.testing.assert_allclose(result["offsets"], [.5, .6, .7, .8], atol=.1)


def savers():
    """Checkpoints of either system are read by both, whatever their format."""
    import numpy as np
    jobs = {"ps": 2, "worker": 1}
    with Servers(jobs) as tenon, TensorFlowServers(jobs) as tensorflow:
        for writer, reader in ((tenon, tensorflow), (tensorflow, tenon), (tenon, tenon)):
            with tempfile.TemporaryDirectory() as folder:
                wanted, found = (run("savers", [
                    "--master=" + servers.target("worker"), "--ps_tasks=2", f"--folder={folder}", f"--mode={mode}"])
                                 for servers, mode in ((writer, "save"), (reader, "restore")))
                assert found.keys() == wanted.keys()
                for name, value in wanted.items():
                    np.testing.assert_array_equal(found[name], value, err_msg=name)


def summaries():
    """The event files say the same; each system traces the products of its step."""
    import tensorflow.compat.v1 as tf

    def on(master):
        with tempfile.TemporaryDirectory() as folder:
            traced = run("summaries", [f"--master={master}", f"--log_dir={folder}"])["traced"]
            assert any(name.endswith("layer/MatMul") for name in traced), traced
            (file,) = glob.glob(folder + "/events*")
            return [(e.step, v.tag, v) for e in tf.train.summary_iterator(file) for v in e.summary.value]

    with Servers({"local": 1}) as servers:
        wanted, found = on(""), on(servers.target("local"))
    assert [f[:2] for f in found] == [w[:2] for w in wanted], (found, wanted)
    for (_, tag, w), (_, _, f) in zip(wanted, found):
        if w.HasField("simple_value"):
            assert abs(w.simple_value - f.simple_value) < 1e-4, tag
        elif w.HasField("image"):
            pixels = [tf.io.decode_png(v.image.encoded_image_string) for v in (w, f)]
            with tf.Session() as session:
                a, b = session.run(pixels)
            assert (a == b).all(), tag
        else:
            assert w.WhichOneof("value") == f.WhichOneof("value"), tag


CASES = [
    ("mnist_replica", mnist_replica),
    ("sync_replicas", lambda: sync_replicas(2, 2)),
    ("sync_replicas_backup", lambda: sync_replicas(3, 2)),
    ("convnet", functools.partial(one_server, "convnet", exact=["loss"], close={"accuracy": .05},
                                  least={"accuracy": .85})),
    ("word2vec", functools.partial(one_server, "word2vec", exact=["losses"], close={"same_topic": .05},
                                   least={"same_topic": .8})),
    ("word2vec_in_parts", word2vec_in_parts),
    ("queue_input", functools.partial(one_server, "queue_input", "data_dir", close={"seen": 0, "accuracy": .1},
                                      least={"accuracy": .75})),
    ("dataset_input", functools.partial(one_server, "dataset_input", "data_dir", exact=["values"],
                                        least={"accuracy": .6})),
    ("language_model", functools.partial(one_server, "language_model", close={"perplexity": .2},
                                         least={"right": .75})),
    ("savers", savers),
    ("summaries", summaries),
]


if __name__ == "__main__":
    main_with_tensorflow(lambda: report(CASES))
