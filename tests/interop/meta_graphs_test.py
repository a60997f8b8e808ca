#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training goes on from PREFIX.meta and its checkpoint alone, with the losses that it has without a break: one
that TensorFlow began in a C++ program and then in TensorFlow again, one that C++ began in TensorFlow."""
import os
import subprocess
import tempfile
import warnings

from tensorflow_environment import TENON, main_with_tensorflow

PROGRAM = os.path.join(os.path.dirname(TENON), "meta_graph_program")
PART = 6  # steps in each part
CASES = [{"resource": False}, {"resource": True}, {"resource": False, "partitioned": True, "sharded": True},
         {"resource": True, "text": True}]


def program(mode, prefix, inputs, first, *more):
    done = subprocess.run([PROGRAM, mode, prefix, inputs, str(first), str(PART), *more],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{mode}: {done.stderr}")
    return [float(line) for line in done.stdout.split()]


def build(tf, resource, partitioned):
    """A network with branches, loops, averages and all collections; its step is "train"."""
    partitioner = tf.fixed_size_partitioner(2) if partitioned else None
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 2], name="y")
    with tf.variable_scope("net", use_resource=resource, partitioner=partitioner):
        h = tf.layers.dense(x, 8, activation=tf.tanh,
                            kernel_regularizer=lambda w: 0.001 * tf.nn.l2_loss(w))
        h = tf.layers.batch_normalization(h, training=True)
        factor = tf.Variable(0.5, name="factor", use_resource=resource)
        h = tf.while_loop(
            lambda i, _: i < 2,
            lambda i, h: (i + 1, tf.cond(i < 1, lambda: h * factor, lambda: tf.tanh(h))), (0, h))[1]
        tf.losses.mean_squared_error(y, tf.layers.dense(h, 2))
    loss = tf.identity(tf.losses.get_total_loss(), name="loss")
    tf.summary.scalar("loss_so_far", loss)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(tf.train.exponential_decay(0.05, step, 4, 0.9))
    gradients = optimizer.compute_gradients(loss)
    with tf.control_dependencies([loss] + tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        gradients = [(tf.identity(g), v) for g, v in gradients]  # what the loss reads, the step changes
    tf.add_to_collection("train_op", optimizer.apply_gradients(gradients, step, name="train"))


def train(session, steps):
    return [session.run(["loss:0", "train"], {"x:0": x, "y:0": y})[0] for x, y in steps]


def expect_near(np, what, found, wanted):
    found, wanted = np.array(found), np.array(wanted)
    assert found.shape == wanted.shape and wanted[0] > 1.02 * wanted[-1], f"{what}: wanted {wanted}"
    assert np.abs(found - wanted).max() < 1e-5, f"{what}: the losses are {found}, wanted {wanted}"


def from_tensorflow(tf, np, inputs, steps, folder, resource, partitioned=False, sharded=False, text=False):
    what = f"{resource=}, {partitioned=}, {sharded=}, {text=}"
    begun, gone_on = os.path.join(folder, "begun"), os.path.join(folder, "gone_on")
    with tf.Graph().as_default():
        build(tf, resource, partitioned)
        saver = tf.train.Saver(sharded=sharded, max_to_keep=2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = train(session, steps[:PART])
            saver.save(session, begun)
            wanted = found + train(session, steps[PART:])
        if text:
            saver.export_meta_graph(begun + ".meta", as_text=True)
        keys = {key: len(tf.get_collection(key)) for key in (
            "variables", "trainable_variables", "losses", "regularization_losses", "update_ops", "summaries",
            "train_op", "global_step")}
    found += program("go_on", begun, inputs, PART, gone_on)
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(gone_on + ".meta")
        assert saver.as_saver_def().max_to_keep == 2 and saver.as_saver_def().sharded == sharded
        for key, count in keys.items():
            assert len(tf.get_collection(key)) == count, (what, key, tf.get_collection(key))
        assert tf.train.get_global_step().op.name == "global_step"
        with tf.Session() as session:
            saver.restore(session, gone_on)
            found += train(session, steps[2 * PART:])
    expect_near(np, what, found, wanted)


def from_tenon(tf, np, inputs, steps, folder):
    begun, gone_on, end = (os.path.join(folder, name) for name in ("ours", "ours_2", "ours_3"))
    found = program("begin", begun, inputs, 0)
    wanted = found + program("go_on", begun, inputs, PART, gone_on) + program(
        "go_on", gone_on, inputs, 2 * PART, end)
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(begun + ".meta", import_scope="again")
        with tf.Session() as session:
            saver.restore(session, begun)
            found = found + [
                session.run(["again/loss:0", "again/train"], {"again/x:0": x, "again/y:0": y})[0]
                for x, y in steps[PART:]]
    expect_near(np, "begun in C++", found, wanted)


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    warnings.simplefilter("ignore")  # that the functions of version 1 are old
    tf.disable_v2_behavior()
    random = np.random.RandomState(5)
    steps = [(x, np.stack([x.sum(1), x[:, 0] - x[:, 2]], 1)) for x in random.randn(3 * PART, 16, 3).astype(np.float32)]
    with tempfile.TemporaryDirectory() as folder:
        inputs = os.path.join(folder, "inputs.npz")
        np.savez(inputs, **{f"{name}/{i}": v for i, step in enumerate(steps) for name, v in zip("xy", step)})
        for case in CASES:
            from_tensorflow(tf, np, inputs, steps, folder, **case)
        from_tenon(tf, np, inputs, steps, folder)
    print(f"{len(CASES)} trainings of TensorFlow went on here and back, and one of C++ there")
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
