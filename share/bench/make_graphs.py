#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the graphs that `tenon bench` runs on both systems: share/bench/graphs/*.pbtxt.

Usage, with TensorFlow's Python: share/bench/make_graphs.py. In each graph the target `prepare` comes
first, once; then fetching `measured` is what is measured. What a step reads are variables, so that no
optimiser computes it ahead, and it fetches one value of each result, so that none leaves one out.
"""
import os
import pathlib

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import tensorflow.compat.v1 as tf  # noqa: E402

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()

GRAPHS = pathlib.Path(__file__).parent / "graphs"
IMAGES = [32, 28, 28, 32]


def uniform(shape):
    return tf.Variable(tf.random_uniform(shape, seed=1), use_resource=False)


def convolution():
    images, filters = uniform(IMAGES), uniform([3, 3, 32, 64])
    y = tf.nn.relu(tf.nn.conv2d(images, filters, 1, "SAME"))
    return tf.gradients(tf.nn.l2_loss(y), [images, filters])


def max_pooling():
    images = uniform(IMAGES)
    return tf.gradients(tf.nn.l2_loss(tf.nn.max_pool(images, 2, 2, "SAME")), [images])


def overlapping_pooling():
    images = uniform(IMAGES)
    return tf.gradients(tf.nn.l2_loss(tf.nn.max_pool(images, 3, 2, "SAME")), [images])


def batch_norm():
    images, scale, offset = uniform(IMAGES), uniform([32]), uniform([32])
    y, _, _ = tf.nn.fused_batch_norm(images, scale, offset)
    return tf.gradients(tf.nn.l2_loss(y), [images, scale, offset])


def embedding():
    table = uniform([100000, 64])
    ids = tf.random_uniform([4096], maxval=100000, dtype=tf.int32, seed=2)
    loss = tf.nn.l2_loss(tf.gather(table, ids))
    return [tf.train.AdagradOptimizer(0.01).minimize(loss)]


def sparse_updates():
    """Of two tasks: a worker updates 1,000 of a million rows of a parameter server."""
    cluster = {"ps": ["ps:0"], "worker": ["worker:0"]}
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
        table = uniform([1000000, 64])
        ids = tf.random_uniform([1000], maxval=1000000, dtype=tf.int32, seed=2)
        loss = tf.nn.l2_loss(tf.nn.embedding_lookup(table, ids))
        return [tf.train.GradientDescentOptimizer(0.01).minimize(loss)]


def top_k():
    return tf.math.top_k(uniform([64, 50000]), k=100)


def sort():
    return [tf.sort(uniform([1 << 20]))]


def csv():
    values = tf.as_string(tf.random_uniform([10000, 10], seed=1))
    records = tf.Variable(tf.strings.reduce_join(values, 1, separator=","), use_resource=False)
    return tf.io.decode_csv(records, [[0.0]] * 10)


def queue():
    q = tf.FIFOQueue(10, tf.float32, shapes=[[]])
    last = tf.no_op()
    for _ in range(50):
        with tf.control_dependencies([last]):
            added = q.enqueue(1.0)
        with tf.control_dependencies([added]):
            last = q.dequeue()
    return [last]


def pipeline():
    data = tf.data.Dataset.range(1 << 40).map(lambda i: tf.cast(i, tf.float32) * 2.0)
    data = data.shuffle(1000, seed=1).batch(256).prefetch(2)
    iterator = tf.data.make_initializable_iterator(data)
    tf.add_to_collection("initializers", iterator.initializer)
    return [iterator.get_next()]


def main():
    GRAPHS.mkdir(exist_ok=True)
    for build in [convolution, max_pooling, overlapping_pooling, batch_norm, embedding, sparse_updates, top_k,
                  sort, csv, queue, pipeline]:
        with tf.Graph().as_default() as graph:
            results = build()
            tf.group(tf.global_variables_initializer(), *tf.get_collection("initializers"),
                     name="prepare")
            tensors = [r for r in results if isinstance(r, tf.Tensor)]
            with tf.control_dependencies([r for r in results if not isinstance(r, tf.Tensor)]):
                firsts = [tf.to_float(tf.reshape(t, [-1])[0]) for t in tensors]
                tf.add_n(firsts or [tf.constant(0.0)], name="measured")
            tf.io.write_graph(graph.as_graph_def(), str(GRAPHS), f"{build.__name__}.pbtxt")


if __name__ == "__main__":
    main()
