#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's metrics are the oracle for Tenon's, over several batches: the graph of make_metrics
runs on a Tenon server, TensorFlow's in itself. The variables have the same names and values."""
from labelled_graph import labelled_graph
from tensorflow_environment import Servers, main_with_tensorflow

BATCHES = 4


def metrics(tf):
    m, found = tf.metrics, {}
    given = {name: tf.placeholder(dtype, [12], name) for name, dtype in
             (("truths", tf.float32), ("classes", tf.int64), ("scores", tf.float32),
              ("guesses", tf.int32), ("weights", tf.float32))}
    truths, classes, scores, guesses = (given[n] for n in
                                        ("truths", "classes", "scores", "guesses"))
    logits = tf.placeholder(tf.float32, [12, 5], "logits")

    def add(label, metric):
        found[label], found[label + "/update"] = metric

    for scope, weights in (("plain", None), ("weighted", given["weights"])):
        with tf.name_scope(scope):
            def one(name, *arguments, label=None, scope=scope, weights=weights, **options):
                add(f"{scope}/{label or name}",
                    getattr(m, name)(*arguments, weights=weights, **options))

            one("mean", scores)
            one("mean_tensor", scores)
            one("accuracy", classes, guesses)
            one("accuracy", tf.reshape(classes, [12, 1]), guesses, label="accuracy_of_column")
            one("mean_absolute_error", truths, scores)
            one("mean_squared_error", truths, scores)
            one("root_mean_squared_error", truths, scores)
            one("mean_relative_error", truths, scores, truths)
            one("percentage_below", scores, .6)
            one("mean_per_class_accuracy", classes, guesses, 5)
            one("mean_iou", classes, guesses, 5)
            for kind in ("true_positives", "false_positives", "true_negatives", "false_negatives",
                         "precision", "recall"):
                one(kind, truths, guesses)
            for kind in ("true_positives", "false_positives", "true_negatives", "false_negatives",
                         "precision", "recall"):
                one(kind + "_at_thresholds", truths, scores, [.2, .5, .7])
            for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
                one("auc", truths, scores, summation_method=method, label=f"auc/ROC/{method}")
                one("auc", truths, scores, summation_method=method, num_thresholds=50, curve="PR",
                    label=f"auc/PR/{method}")
            one("auc", truths, scores, thresholds=[.7, .3, .5], label="auc/thresholds")
    with tf.name_scope("more"):
        add("more/in_top_k", m.mean(tf.nn.in_top_k(logits, classes, 2), name="top_k"))
        rows = tf.tile(tf.expand_dims(given["weights"], 1), [1, 5])
        add("more/mean_of_rows", m.mean(logits, rows))
        add("more/mean_of_number", m.mean(logits, .5))
        add("more/precision_of_number", m.precision(logits > 0, logits > .5, weights=.5))
    return found


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    graph, found = labelled_graph(tf, "make_metrics")
    with tf.Graph().as_default() as theirs:
        wanted = metrics(tf)
        init = tf.local_variables_initializer()
        variables = {v.op.name: v for v in tf.local_variables()}
        assert not tf.global_variables() and not tf.trainable_variables()
    ours_init = found.pop("init")
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    made = {node.name for node in graph.as_graph_def().node if node.op == "VariableV2"}
    assert made == set(variables), f"variables {made ^ set(variables)}"
    updates = [label for label in wanted if label.endswith("/update")]
    values = [label for label in wanted if not label.endswith("/update")]
    random = np.random.RandomState(4)
    with Servers({"worker": 1}) as servers, tf.Session(graph=theirs) as one, \
            tf.Session(servers.target("worker"), graph=graph) as other:
        one.run(init)
        other.run(ours_init)

        def compare(labels, feed):
            theirs_now = one.run([wanted[label] for label in labels], feed)
            ours_now = other.run([found[label] for label in labels], feed)
            for label, a, b in zip(labels, theirs_now, ours_now):
                assert a.dtype == b.dtype and np.shape(a) == np.shape(b), label
                assert np.allclose(a, b, rtol=1e-5, atol=1e-6), f"{label}: found {b}, wanted {a}"

        compare(values, {})
        for _ in range(BATCHES):
            compare(updates, {
                "truths:0": random.randint(0, 2, 12), "classes:0": random.randint(0, 4, 12),
                "scores:0": random.uniform(size=12), "guesses:0": random.randint(0, 3, 12),
                "weights:0": random.uniform(size=12) * random.randint(0, 2, 12),
                "logits:0": random.normal(size=[12, 5])})
            compare(values, {})
        names = sorted(variables)
        for name, a, b in zip(names, one.run([variables[n] for n in names]),
                              other.run([n + "/read:0" for n in names])):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-6), f"{name}: found {b}, wanted {a}"
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
