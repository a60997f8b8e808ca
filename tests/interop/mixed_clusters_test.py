#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clusters whose tasks are partly Tenon's and partly TensorFlow's: a Tenon parameter server under a
TensorFlow worker, and the other way round; the worker is the client's master.

The programs of programs_test.py and training give what they give on one TensorFlow session; errors
are those of one kind of server alone. Runs itself again under the TensorFlow environment
(TENON_TF_VENV).
"""
import sys

import programs_test
from tensorflow_environment import Servers, expect_error, main_with_tensorflow

JOBS = {"ps": 1, "worker": 1}


def training(tf, target, use_resource):
    """Losses of ten steps; the variables are at the parameter server."""
    import numpy as np
    random = np.random.RandomState(0)
    xs, ys = random.rand(20, 4).astype("float32"), random.rand(20, 2).astype("float32")
    with tf.Graph().as_default():
        device = tf.train.replica_device_setter(1, "/job:ps", "/job:worker") if target else None
        with tf.device(device), tf.variable_scope("", use_resource=use_resource):
            x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 2])
            w = tf.get_variable("w", initializer=random.rand(4, 2).astype("float32"))
            b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
            loss = tf.reduce_mean(tf.square(tf.nn.sigmoid(tf.matmul(x, w) + b) - y))
            step = tf.train.get_or_create_global_step()
            train = [tf.train.MomentumOptimizer(.5, .9).minimize(loss, step)]
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], {x: xs, y: ys})[0] for _ in range(10)]
            assert session.run(step) == 10
            return losses


def trains(tf, target):
    import numpy as np
    for use_resource in (False, True):
        np.testing.assert_allclose(training(tf, target, use_resource), training(tf, "", use_resource),
                                   rtol=1e-4)


def partial_run(tf, target):
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
            a = x * 2.
        with tf.device("/job:worker"):
            b = a + y
        with tf.Session(target) as session:
            for i in range(3):
                handle = session.partial_run_setup([a, b], [x, y])
                assert session.partial_run(handle, a, {x: 1. + i}) == 2. + 2 * i
                assert session.partial_run(handle, b, {y: 5.}) == 7. + 2 * i


def errors(tf, target):
    """The other kind's error reaches the client as what it is, and the session goes on."""
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            v = tf.get_variable("missing", [], use_resource=False)
            bad = tf.check_numerics(tf.placeholder_with_default(float("nan"), []), "not a number")
            take = tf.FIFOQueue(1, tf.float32, shapes=[[]]).dequeue()
        with tf.device("/job:worker"):
            fetches = [(v + 1., tf.errors.FailedPreconditionError, "uninitialized"),
                       (bad + 1., tf.errors.InvalidArgumentError, "NaN")]
            late, good = take + 1., tf.constant(1.) + 1.
        with tf.Session(target) as session:
            for fetch, kind, text in fetches * 2:
                expect_error(session, fetch, kind, text)
            try:
                session.run(late, options=tf.RunOptions(timeout_in_ms=500))
            except tf.errors.DeadlineExceededError:
                pass
            assert session.run(good) == 2.


def traced(tf, target):
    """Statistics of both tasks."""
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            x = tf.placeholder_with_default([1., 2.], [2], name="x")
        with tf.device("/job:worker"):
            y = tf.square(x, name="y")
        with tf.Session(target) as session:
            told = tf.RunMetadata()
            session.run(y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=told)
            ran = [(d.device, n.node_name) for d in told.step_stats.dev_stats for n in d.node_stats]
            for job, node in (("ps", "x"), ("worker", "y")):  # TensorFlow adds to folded nodes' names
                assert any(f"/job:{job}/" in d and n.startswith(node) for d, n in ran), ran


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    names, failed = sys.argv[1:], 0
    programs = [(p.__name__, lambda target, p=p: programs_test.compare(tf, p, target))
                for p in programs_test.PROGRAMS]
    own = [(f.__name__, lambda target, f=f: f(tf, target))
           for f in (trains, partial_run, errors, traced)]
    for theirs in ("worker", "ps"):
        with Servers(JOBS, tensorflow=[(theirs, 0)]) as servers:
            for name, case in own + programs:
                if names and name not in names:
                    continue
                try:
                    case(servers.target("worker"))
                except Exception as e:  # pylint: disable=broad-except
                    failed += 1
                    print(f"{name}, TensorFlow's {theirs}: {type(e).__name__}: {str(e)[:1500]}")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
