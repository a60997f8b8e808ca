#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tf.distribute's strategies of TensorFlow 1 on Tenon's servers: Estimators with MultiWorkerMirroredStrategy and with
ParameterServerStrategy, whose tasks are driven by one client (remote_cluster), MirroredStrategy over devices of a server,
and datasets that MultiWorkerMirroredStrategy divides.

Runs itself again under the TensorFlow environment (TENON_TF_VENV). Arguments: names of cases.
"""
import functools
import os
import sys
import tempfile
import threading

from tensorflow_environment import Servers, main_with_tensorflow

STEPS = 100
DEVICES = 3
LIMIT = 200  # seconds


def examples(np):
    """Numbers, and what they are times the weights that training finds."""
    x = np.random.RandomState(0).randn(640, 2).astype(np.float32)
    return x, x @ np.array([1, -2], np.float32)


def model(tf, features, labels):
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((tf.linalg.matvec(features, w) - labels) ** 2)
    return w, loss, tf.train.GradientDescentOptimizer(.1)


def estimate(tf, strategy, jobs):
    """Trains and evaluates an Estimator on the servers of `jobs`."""
    import numpy as np
    from tensorflow.python.distribute.distribute_config import DistributeConfig

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(examples(np)).repeat().batch(32)

    def model_fn(features, labels, mode):
        _, loss, optimizer = model(tf, features, labels)
        train = None
        if mode == tf.estimator.ModeKeys.TRAIN:
            train = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    with Servers(jobs) as servers, tempfile.TemporaryDirectory() as folder:
        distribute = DistributeConfig(train_distribute=strategy(), remote_cluster=servers.addresses)
        estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
            model_dir=folder, save_checkpoints_steps=STEPS // 2, experimental_distribute=distribute))
        error = []

        def train():
            try:
                tf.estimator.train_and_evaluate(
                    estimator, tf.estimator.TrainSpec(input_fn, max_steps=STEPS),
                    tf.estimator.EvalSpec(input_fn, steps=5, throttle_secs=1))
            except BaseException as e:  # pylint: disable=broad-except
                error.append(e)

        training = threading.Thread(target=train, daemon=True)
        training.start()
        training.join(LIMIT)
        if error:
            raise error[0]
        assert not training.is_alive(), f"no end after {LIMIT} s"
        weights = estimator.get_variable_value("w")
        steps = estimator.get_variable_value("global_step")
        metrics = estimator.evaluate(input_fn, steps=1)
    assert np.allclose(weights, [1, -2], atol=1e-4), weights
    # Each of several workers may have begun a step more.
    assert STEPS <= steps <= STEPS + jobs["worker"], steps
    assert metrics["global_step"] == steps and metrics["loss"] < 1e-6, metrics


def multi_worker_mirrored(tf):
    estimate(tf, tf.distribute.experimental.MultiWorkerMirroredStrategy, {"worker": 2})


def parameter_server(tf):
    """A worker that finds the variables not ready asks again soon, not after TensorFlow's 30 seconds."""
    from tensorflow.python.training import monitored_session, session_manager
    kept = session_manager.SessionManager
    monitored_session.sm.SessionManager = functools.partial(kept, recovery_wait_secs=1)
    try:
        estimate(tf, tf.distribute.experimental.ParameterServerStrategy, {"ps": 1, "worker": 2})
    finally:
        monitored_session.sm.SessionManager = kept


def losses_of_replicas(tf, servers):
    """Those of each step of one pass, and the weights behind it."""
    import numpy as np
    devices = [f"/job:worker/replica:0/task:0/device:CPU:{i}" for i in range(DEVICES)]
    with tf.Graph().as_default() as graph:
        strategy = tf.distribute.MirroredStrategy(devices)
        with strategy.scope():
            iterator = strategy.make_input_fn_iterator(
                lambda _: tf.data.Dataset.from_tensor_slices(examples(np)).batch(32))
            start = iterator.initialize()

            def step(batch):
                _, loss, optimizer = model(tf, *batch)
                with tf.control_dependencies([optimizer.minimize(loss)]):
                    return tf.identity(loss)

            losses = strategy.experimental_local_results(strategy.experimental_run(step, iterator))
        variables = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
        with tf.Session(servers.target("worker"),
                        config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run([v.initializer for v in variables])
            passes = []
            for _ in range(2):
                session.run(start)
                rows = []
                try:
                    while True:
                        rows.append(session.run(losses))
                except tf.errors.OutOfRangeError:
                    passes.append(rows)
            return np.array(passes), session.run(variables[0])


def mirrored(tf):
    """Replicas on the devices of one server get the batches in turn, as on TensorFlow's."""
    import numpy as np
    found = []
    for tensorflow in ([("worker", 0)], []):
        with Servers({"worker": 1}, cpus=DEVICES, tensorflow=tensorflow) as servers:
            found.append(losses_of_replicas(tf, servers))
    (wanted, wanted_weights), (losses, weights) = found
    assert wanted.shape == losses.shape == (2, 640 // 32 // DEVICES, DEVICES), (wanted.shape, losses.shape)
    assert np.allclose(losses, wanted, rtol=1e-3, atol=1e-6), f"{losses}, wanted {wanted}"
    assert np.allclose(weights, wanted_weights, atol=1e-5), f"{weights}, wanted {wanted_weights}"


def lines_of(tf, folder, way):
    """A pipeline of the numbers 0 to 47 in four files: a strategy divides the files, or the elements."""
    paths = [os.path.join(folder, f"part{i}") for i in range(4)]
    for i, path in enumerate(paths):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{12 * i + j}\n" for j in range(12))
    names = tf.data.Dataset.from_tensor_slices(paths)
    if way == "files":
        lines = names.shuffle(4, seed=1).interleave(tf.data.TextLineDataset, cycle_length=2)
    else:
        lines = tf.data.Dataset.range(48).map(tf.as_string)
    return lines.map(tf.strings.to_number).batch(8)


def batches_of_workers(tf, servers, folder, way):
    """What a client for each worker is given of a dataset that MultiWorkerMirroredStrategy divides."""
    ends = {}

    def client(task):
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(servers.addresses), task_type="worker", task_id=task,
            num_accelerators={"GPU": 0}, rpc_layer="grpc")
        with tf.Graph().as_default():
            strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
            with strategy.scope():
                iterator = strategy.make_dataset_iterator(lines_of(tf, folder, way))
                start = iterator.initialize()
                own = strategy.experimental_local_results(strategy.experimental_run(tf.identity, iterator))
            config = strategy.update_config_proto(tf.ConfigProto())
            with tf.Session(servers.target("worker", task), config=config) as session:
                session.run(start)
                found = ends.setdefault(task, [])
                try:
                    while True:
                        found.append([x.tolist() for x in session.run(own)])
                except tf.errors.OutOfRangeError:
                    found.append("end")

    clients = [threading.Thread(target=client, args=[t], daemon=True) for t in range(2)]
    for c in clients:
        c.start()
    for c in clients:
        c.join(LIMIT)
    return ends


def multi_worker_datasets(tf):
    """Workers get all of a dataset between them: one half of the files each, or of every batch."""
    with tempfile.TemporaryDirectory() as folder:
        for way in ("files", "elements"):
            with Servers({"worker": 2}) as servers:
                found = batches_of_workers(tf, servers, folder, way)
            numbers = [[n for batch in found[task][:-1] for part in batch for n in part] for task in range(2)]
            assert all(batches[-1] == "end" for batches in found.values()), (way, found)
            assert sorted(numbers[0] + numbers[1]) == list(range(48)), (way, found)
            owned = [sorted({n // 12 if way == "files" else n % 8 // 4 for n in task}) for task in numbers]
            assert owned == [[0, 2], [1, 3]] if way == "files" else [[0], [1]], (way, found)


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    failed = 0
    for case in (multi_worker_mirrored, parameter_server, mirrored, multi_worker_datasets):
        if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
            continue
        try:
            case(tf)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"{case.__name__}: {type(e).__name__}: {str(e)[:2000]}", flush=True)
    # A thread that trains in vain would keep the process.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main_with_tensorflow(run_all)
