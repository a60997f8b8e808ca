#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unmodified TensorFlow client trains on Tenon servers as it does on its own session.

Starts `tenon serve` processes on loopback, builds the classic MNIST network with TensorFlow's Python,
and compares the losses of 100 steps with those of a local TensorFlow session: on one server, and on
one parameter server and two workers through replica_device_setter and Supervisor, with ref and with
resource variables. Runs itself again under the TensorFlow environment (TENON_TF_VENV).
"""
import re

from tensorflow_environment import Servers, expect_error, main_with_tensorflow

STEPS = 100


def build(tf, use_resource, device):
    """The classic network; weights from fixed values, so that every session starts alike."""
    import numpy as np

    def fixed(shape, scale):
        n = int(np.prod(shape))
        return (scale * np.sin(np.arange(1, n + 1))).reshape(shape).astype(np.float32)

    with tf.device(device), tf.variable_scope("", use_resource=use_resource):
        global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0),
                                      trainable=False)
        with tf.name_scope("input"):
            x = tf.placeholder(tf.float32, [None, 784], name="x-input")
            y_ = tf.placeholder(tf.float32, [None, 10], name="y-input")
        w1 = tf.get_variable("w1", initializer=tf.constant(fixed([784, 100], .05)))
        w2 = tf.get_variable("w2", initializer=tf.constant(fixed([100, 10], .2)))
        b1 = tf.get_variable("b1", initializer=tf.zeros([100]))
        b2 = tf.get_variable("b2", initializer=tf.zeros([10]))
        a2 = tf.nn.sigmoid(tf.add(tf.matmul(x, w1), b1))
        y = tf.nn.softmax(tf.add(tf.matmul(a2, w2), b2))
        cost = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(cost, global_step=global_step)
        correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        tf.summary.scalar("cost", cost)
        tf.summary.scalar("accuracy", accuracy)
        summary = tf.summary.merge_all()
    return x, y_, cost, train, summary, global_step


def batches():
    import numpy as np
    random = np.random.RandomState(7)
    for _ in range(STEPS):
        x = random.rand(100, 784).astype(np.float32)
        yield x, np.eye(10, dtype=np.float32)[(x[:, :10].argmax(1))]


def steps(session, x, y_, cost, train, summary, global_step):
    losses = []
    for bx, by in batches():
        loss, text, _, _ = session.run([cost, summary, global_step, train], {x: bx, y_: by})
        assert text, "the summary is empty"
        losses.append(loss)
    return losses


def local_losses(tf, use_resource):
    with tf.Graph().as_default():
        nodes = build(tf, use_resource, None)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return steps(session, *nodes)


def one_server(tf, use_resource):
    with Servers({"local": 1}) as servers, tf.Graph().as_default():
        nodes = build(tf, use_resource, None)
        with tf.Session(servers.target("local")) as session:
            session.run(tf.global_variables_initializer())
            losses = steps(session, *nodes)
            assert session.run(nodes[5]) == STEPS
            return losses


def cluster(tf, use_resource):
    with Servers({"ps": 1, "worker": 2}) as servers:
        spec = tf.train.ClusterSpec(servers.addresses)

        def worker(task):
            setter = tf.train.replica_device_setter(
                worker_device=f"/job:worker/task:{task}", cluster=spec)
            return build(tf, use_resource, setter)

        with tf.Graph().as_default():
            nodes = worker(0)
            supervisor = tf.train.Supervisor(is_chief=True, global_step=nodes[5],
                                             init_op=tf.global_variables_initializer())
            with supervisor.prepare_or_wait_for_session(servers.target("worker", 0)) as session:
                losses = steps(session, *nodes)
        # The second worker comes when the first has left, and finds the variables.
        with tf.Graph().as_default():
            nodes = worker(1)
            supervisor = tf.train.Supervisor(is_chief=False, global_step=nodes[5],
                                             recovery_wait_secs=1,
                                             init_op=tf.global_variables_initializer())
            with supervisor.prepare_or_wait_for_session(servers.target("worker", 1)) as session:
                assert session.run(nodes[5]) == STEPS
                steps(session, *nodes)
                assert session.run(nodes[5]) == 2 * STEPS
        return losses


def errors(tf):
    """What Python code matches on."""
    with Servers({"local": 1}) as servers, tf.Graph().as_default():
        v = tf.get_variable("v", [2], use_resource=False)
        r = tf.get_variable("r", [2], use_resource=True)
        p = tf.placeholder(tf.float32, [], name="p")
        with tf.Session(servers.target("local")) as session:
            for fetch, kind, text in [
                    (v, tf.errors.FailedPreconditionError, "uninitialized value v"),
                    (r, tf.errors.FailedPreconditionError, "uninitialized"),
                    (p + 1, tf.errors.InvalidArgumentError, "You must feed a value for placeholder"),
            ]:
                expect_error(session, fetch, kind, text)
            assert [d.device_type for d in session.list_devices()] == ["CPU"]


def run_all():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    failed = 0
    cases = [("errors", lambda: errors(tf))]
    for use_resource in (False, True):
        kind = "resource" if use_resource else "ref"
        wanted = local_losses(tf, use_resource)

        def check(run, wanted=wanted, use_resource=use_resource):
            np.testing.assert_allclose(run(tf, use_resource), wanted, rtol=1e-4)

        cases.append((f"one server, {kind} variables", lambda c=check: c(one_server)))
        cases.append((f"1 ps + 2 workers, {kind} variables", lambda c=check: c(cluster)))
    for name, case in cases:
        try:
            case()
            print("ok:", name)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print("FAILED:", name, "\n", re.sub(r"(?s)\n\nOriginal stack trace.*", "", str(e))[:3000])
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
