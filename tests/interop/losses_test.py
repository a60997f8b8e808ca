#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's losses and their gradients are the oracle for Tenon's: the graph of make_losses runs
on a Tenon server, TensorFlow's in itself."""
from labelled_graph import labelled_graph
from tensorflow_environment import Servers, main_with_tensorflow


def losses(tf):
    t, reductions = tf.losses, tf.losses.Reduction
    labels, p = tf.placeholder(tf.float32, [4, 3], "labels"), tf.placeholder(
        tf.float32, [4, 3], "predictions")
    classes = tf.placeholder(tf.int64, [4], "classes")
    each, column, row = (tf.placeholder(tf.float32, shape, name) for shape, name in
                         (([4, 3], "each"), ([4, 1], "column"), ([4], "row")))
    unknown = tf.placeholder(tf.float32, [None, None], "unknown_weights")
    found = {}

    def add(label, loss):
        found[label] = loss
        found[label + "/gradient"] = tf.gradients(tf.reduce_sum(loss), p)[0]

    for name in sorted(set(reductions.all())):
        for kind, weights, rows in (("number", .7, .7), ("each", each, row),
                                    ("column", column, row)):
            def one(loss, function, *arguments, weights=weights, kind=kind, name=name, **options):
                add(f"{loss}/{name}/{kind}",
                    function(*arguments, weights=weights, reduction=name, **options))

            for loss in ("absolute_difference", "hinge_loss", "mean_squared_error",
                         "sigmoid_cross_entropy"):
                one(loss, getattr(t, loss), labels, p)
            one("huber_loss", t.huber_loss, labels, p, delta=.4)
            one("log_loss", t.log_loss, labels, p, epsilon=1e-3)
            one("sigmoid_cross_entropy_smooth", t.sigmoid_cross_entropy, labels, p,
                label_smoothing=.2)
            one("softmax_cross_entropy", t.softmax_cross_entropy, labels, p, weights=rows)
            one("softmax_cross_entropy_smooth", t.softmax_cross_entropy, labels, p, weights=rows,
                label_smoothing=.2)
            one("sparse_softmax_cross_entropy", t.sparse_softmax_cross_entropy, classes, p,
                weights=rows)
            one("compute_weighted_loss", t.compute_weighted_loss, p)
        add(f"cosine_distance/{name}",
            t.cosine_distance(labels, p, axis=1, weights=column, reduction=name))
    for kind, weights in (("number", .7), ("column", column)):
        add(f"mean_pairwise_squared_error/{kind}",
            t.mean_pairwise_squared_error(labels, p, weights))
    cube = tf.reshape(p, [2, 2, 3])
    add("softmax_cross_entropy/rank_3",
        t.softmax_cross_entropy(tf.reshape(labels, [2, 2, 3]), cube))
    add("sparse_softmax_cross_entropy/rank_3",
        t.sparse_softmax_cross_entropy(tf.reshape(classes, [2, 2]), cube))
    add("sparse_softmax_cross_entropy/squeezed",
        t.sparse_softmax_cross_entropy(tf.reshape(classes, [4, 1]), p, weights=column))
    add("mean_squared_error/unknown", t.mean_squared_error(labels, p, unknown))
    with tf.name_scope("summed"):
        t.mean_squared_error(labels, p)
        t.hinge_loss(labels, p)
    found["total"] = t.get_total_loss(scope="summed")
    return found


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    graph, found = labelled_graph(tf, "make_losses")
    with tf.Graph().as_default() as theirs:
        wanted = losses(tf)
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    random = np.random.RandomState(2)
    one_hot = np.eye(3)[[2, 0, 1, 1]]
    sparse = random.uniform(size=[4, 3]) * (random.uniform(size=[4, 3]) > .4)
    feeds = [
        {"each:0": random.uniform(size=[4, 3]), "column:0": random.uniform(size=[4, 1]),
         "row:0": random.uniform(size=[4]), "unknown_weights:0": random.uniform(size=[4, 1])},
        {"each:0": sparse, "column:0": [[0], [2], [0], [1]], "row:0": [0, 3, 1, 0],
         "unknown_weights:0": sparse},
        {"each:0": np.zeros([4, 3]), "column:0": np.zeros([4, 1]), "row:0": np.zeros([4]),
         "unknown_weights:0": np.zeros([1, 1])},
    ]
    with Servers({"worker": 1}) as servers, tf.Session(graph=theirs) as one, \
            tf.Session(servers.target("worker"), graph=graph) as other:
        for feed in feeds:
            feed.update({"labels:0": one_hot, "classes:0": [2, 0, 1, 1],
                         "predictions:0": random.uniform(.05, .95, size=[4, 3])})
            values, ours = one.run(wanted, feed), other.run(found, feed)
            for label, value in values.items():
                assert ours[label].dtype == value.dtype and ours[label].shape == value.shape, label
                assert np.isfinite(value).all(), label
                assert np.allclose(ours[label], value, rtol=1e-5, atol=1e-6), \
                    f"{label}: found {ours[label]}, wanted {value}"
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
