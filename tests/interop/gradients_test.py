#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's gradients are the oracle for Gradients: both are built for the same models, and run
in one step of a Tenon server."""
import os
import subprocess
import tempfile

from tensorflow_environment import TENON, Servers, main_with_tensorflow

ADD_GRADIENTS = os.path.join(os.path.dirname(TENON), "add_gradients")


def weights(tf, name, shape, resource=False):
    return tf.get_variable(name, shape, use_resource=resource,
                           initializer=tf.random_uniform_initializer(-.5, .5, seed=len(name)))


def dense_network(tf, resource=False):
    x = tf.random_uniform([16, 20], seed=1)
    w1, b1 = weights(tf, "w1", [20, 12], resource), weights(tf, "bias1", [12], resource)
    w2, b2 = weights(tf, "wt2", [12, 5], resource), weights(tf, "bs2", [5], resource)
    y = tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
    labels = tf.range(16) % 5
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
    return tf.reduce_mean(loss) + 0.01 * tf.nn.l2_loss(w1), [w1, b1, w2, b2]


def resource_network(tf):
    return dense_network(tf, resource=True)


def convolutions(tf):
    """With batch normalisation, pooling and dropout."""
    images = tf.random_uniform([4, 12, 12, 3], seed=2)
    f1, scale, offset = (weights(tf, "filter1", [3, 3, 3, 8]), weights(tf, "scale", [8]),
                         weights(tf, "offset", [8]))
    f2, w = weights(tf, "second", [3, 3, 8, 6]), weights(tf, "weights", [6 * 3 * 3, 4])
    h, _, _ = tf.nn.fused_batch_norm(tf.nn.conv2d(images, f1, 1, "SAME"), scale, offset)
    h = tf.nn.max_pool(tf.nn.relu(h), 2, 2, "SAME")
    h = tf.nn.avg_pool(tf.nn.elu(tf.nn.conv2d(h, f2, 1, "SAME")), 2, 2, "VALID")
    h = tf.nn.dropout(tf.reshape(h, [4, -1]), rate=0.25, seed=3)
    return tf.reduce_sum(tf.nn.softmax(tf.matmul(h, w))[:, 1]), [f1, scale, offset, f2, w]


def lstm(tf):
    """In a while loop, as dynamic_rnn makes it."""
    cell = tf.nn.rnn_cell.LSTMCell(
        6, use_peepholes=True, initializer=tf.random_uniform_initializer(-.5, .5, seed=3))
    x = tf.random_uniform([3, 7, 4], seed=4)
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    return tf.nn.l2_loss(outputs) + tf.reduce_sum(state.c), [x] + tf.global_variables()


def while_loop(tf):
    """What enters once, values that change, and how often it goes round, from variables."""
    w, v = weights(tf, "w", [5, 5]), weights(tf, "vv", [3, 5], resource=True)
    times = tf.placeholder_with_default(4, [])

    def body(i, a, b):
        a = tf.tanh(tf.matmul(a, w) + b)
        return i + 1, a, b * tf.reduce_mean(a, axis=1, keepdims=True) + v

    _, a, b = tf.while_loop(lambda i, *_: i < times, body, [0, v * 2, v])
    return tf.reduce_sum(a * a) + tf.reduce_sum(tf.sin(b)), [w, v]


def loops_and_branches(tf):
    """A loop in a loop, each with a branch, and a loop in a branch."""
    w, v = weights(tf, "wl", [4, 4]), weights(tf, "vl", [3, 4], resource=True)

    def inner(k, h):
        turned = tf.tanh(tf.matmul(h, w) + v)
        return k + 1, tf.cond(tf.equal(k % 2, 0), lambda: turned * h, lambda: tf.sin(h) + turned)

    def outer(i, h):
        _, h = tf.while_loop(lambda k, _: k < i, inner, [0, h])
        several = lambda: tf.while_loop(lambda k, _: k < 3, inner, [0, tf.cos(h)])[1]
        return i + 1, tf.cond(i < 3, several, lambda: h * tf.exp(-h * h))

    _, h = tf.while_loop(lambda i, _: i < 5, outer, [0, v * 2])
    return tf.reduce_sum(h * h), [w, v]


def embedding(tf):
    """Of which TensorFlow's gradient is sparse: rows that occur several times or never."""
    table, other = weights(tf, "table", [50, 6]), weights(tf, "wide", [50, 1], resource=True)
    ids = tf.constant([[3, 7, 3], [49, 0, 7]])
    h = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), axis=1)
    wide = tf.reduce_sum(tf.nn.embedding_lookup(other, ids), axis=1)
    return tf.reduce_sum(tf.tanh(h) * wide), [table, other]


def partitioned_embedding(tf):
    parts = [weights(tf, f"part_{i}", [10, 4]) for i in range(3)]
    ids = tf.constant([0, 1, 2, 5, 29, 17, 5])
    h = tf.nn.embedding_lookup(parts, ids, partition_strategy="div")
    return tf.nn.l2_loss(tf.exp(h)), parts


MODELS = [dense_network, resource_network, convolutions, lstm, while_loop, loops_and_branches,
          embedding, partitioned_embedding]


def tensor_name(x):
    return x.handle.name if hasattr(x, "handle") else x.name


def differences(tf, np, model, target, folder):
    """The largest difference of each gradient, relative to TensorFlow's largest value."""
    before, after = os.path.join(folder, "before.pb"), os.path.join(folder, "after.pb")
    with tf.Graph().as_default() as graph:
        loss, xs = model(tf)
        theirs = [tf.convert_to_tensor(g).name for g in tf.gradients(loss, xs)]
        init = tf.global_variables_initializer().name
        with open(before, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        names = [tensor_name(x) for x in xs]
    run = subprocess.run([ADD_GRADIENTS, before, after, loss.name] + names, capture_output=True,
                         text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{model.__name__}: {run.stderr}")
    ours = [name if ":" in name else name + ":0" for name in run.stdout.split()]
    with tf.Graph().as_default(), open(after, "rb") as file:
        tf.import_graph_def(tf.GraphDef.FromString(file.read()), name="")
        with tf.Session(target) as session:
            session.run(init)
            wanted, found = session.run([theirs, ours])
    for x, a, b in zip(names, wanted, found):
        if a.shape != b.shape:
            raise RuntimeError(f"{model.__name__}: the gradient of {x} is {b.shape}, not {a.shape}")
        if not np.abs(a).max() > 0:
            raise RuntimeError(f"{model.__name__}: the gradient of {x} shows nothing, it is 0")
    return {x: np.abs(a - b).max() / np.abs(a).max() for x, a, b in zip(names, wanted, found)}


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    failures = 0
    with Servers({"worker": 1}) as servers, tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            for x, difference in differences(tf, np, model, servers.target("worker"), folder).items():
                if not difference < 1e-5:
                    failures += 1
                    print(f"{model.__name__}: the gradient of {x} differs by {difference:.2g}")
    return 1 if failures else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
