#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's KMeans on a Tenon server, and the ops that it is made of, beside TensorFlow's own session.

Runs itself again under the TensorFlow environment (TENON_TF_VENV).
"""
import tempfile

from tensorflow_environment import Servers, main_with_tensorflow


def ops(tf, np, target):
    """Neighbours, first centres and chains, of drawn points and of points that are equal or no numbers."""
    from tensorflow.python.ops import gen_clustering_ops as clusters
    random = np.random.RandomState(0)
    cases = {}
    for points, centers, columns, k in ((1, 1, 1, 1), (500, 7, 3, 1), (500, 7, 3, 3), (300, 1500, 5, 4), (40, 6, 2, 9),
                                        (3, 4, 0, 2), (2000, 3, 20, 1), (5, 4, 2, 0)):
        cases[f"nearest of {points} {centers} {columns} {k}"] = clusters.nearest_neighbors(
            random.randn(points, columns).astype("f"), random.randn(centers, columns).astype("f"), k)
    same = np.ones([6, 2], "f")
    cases["nearest of equal ones"] = clusters.nearest_neighbors(same, same, 3)
    for rows, wanted, retries in ((1, 1, 0), (50, 5, 0), (50, 5, -1), (200, 20, 3), (64, 9, 2), (12, 12, -1)):
        for seed in (0, 1, 77):
            cases[f"plus plus of {rows} {wanted} {retries} {seed}"] = clusters.kmeans_plus_plus_initialization(
                random.randn(rows, 4).astype("f"), wanted, seed, retries)
    for length in (1, 2, 9, 100):
        for seed in (0, 5):
            cases[f"chain of {length} {seed}"] = clusters.kmc2_chain_initialization(
                random.rand(length).astype("f"), seed)
    wrong = {
        "no points": clusters.nearest_neighbors(np.ones([0, 2], "f"), same, 1),
        "other columns": clusters.nearest_neighbors(tf.placeholder_with_default(np.ones([2, 3], "f"), None), same, 1),
        "a vector": clusters.nearest_neighbors(tf.placeholder_with_default(np.ones([2], "f"), None), same, 1),
        "negative k": clusters.nearest_neighbors(same, same, -1),
        "too many": clusters.kmeans_plus_plus_initialization(same, 7, 0, 0),
        "none": clusters.kmeans_plus_plus_initialization(same, 0, 0, 0),
        "an empty chain": clusters.kmc2_chain_initialization(np.ones([0], "f"), 0),
    }
    with tf.Session() as theirs, tf.Session(target) as ours:
        for name, outputs in cases.items():
            for wanted, found in zip(tf.nest.flatten(theirs.run(outputs)), tf.nest.flatten(ours.run(outputs))):
                assert wanted.shape == found.shape and wanted.dtype == found.dtype, (name, wanted, found)
                if wanted.dtype == np.float32:
                    assert np.allclose(found, wanted, rtol=1e-4, atol=2e-5), (name, wanted, found)
                else:
                    assert np.array_equal(found, wanted), (name, wanted, found)
        for name, outputs in wrong.items():
            # TensorFlow's process ends with these.
            for session in (ours,) if name in ("negative k", "an empty chain") else (theirs, ours):
                try:
                    session.run(outputs)
                except tf.errors.InvalidArgumentError:
                    continue
                raise AssertionError(f"{name}: no error")
        # Fewer different points than centres, which TensorFlow looks for without an end.
        found = ours.run(clusters.kmeans_plus_plus_initialization(same, 6, 3, 2))
        assert np.array_equal(found, same)
        # Numbers that are none are nobody's neighbours.
        points = np.array([[0, 0], [np.nan, 1]], "f")
        index, _ = ours.run(clusters.nearest_neighbors(points, np.array([[np.nan, 0], [3, 4], [1, 1]], "f"), 2))
        assert index[0].tolist() == [2, 1], index


def estimator(tf, np, target):
    """KMeans finds the centres that the points were drawn around, by each way to begin."""
    random = np.random.RandomState(1)
    centers = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], "f")
    points = (centers[random.randint(4, size=400)] + random.randn(400, 2)).astype("f")
    for begin in (tf.estimator.experimental.KMeans.RANDOM_INIT, tf.estimator.experimental.KMeans.KMEANS_PLUS_PLUS_INIT):
        scores, predictions = [], []
        for master in ("", target):
            with tempfile.TemporaryDirectory() as folder:
                kmeans = tf.estimator.experimental.KMeans(
                    num_clusters=4, model_dir=folder, initial_clusters=begin, use_mini_batch=False, seed=3,
                    config=tf.estimator.RunConfig(model_dir=folder, tf_random_seed=3))
                kmeans.config._master = kmeans.config._evaluation_master = master

                def data():
                    return tf.data.Dataset.from_tensors(points).repeat(20)

                kmeans.train(data)
                scores.append(kmeans.score(lambda: tf.data.Dataset.from_tensors(points)))
                predictions.append(list(kmeans.predict_cluster_index(lambda: tf.data.Dataset.from_tensors(points))))
                found = kmeans.cluster_centers()
                if begin == tf.estimator.experimental.KMeans.KMEANS_PLUS_PLUS_INIT:
                    order = np.lexsort((np.round(found[:, 0]), np.round(found[:, 1] / 10)))
                    assert np.allclose(found[order], centers, atol=.3), found
        assert abs(scores[1] - scores[0]) < 1e-3 * scores[0], (begin, scores)
        assert predictions[0] == predictions[1], begin


def run_all():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with Servers({"worker": 1}) as servers:
        with tf.Graph().as_default():
            ops(tf, np, servers.target("worker"))
        estimator(tf, np, servers.target("worker"))
    return 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
