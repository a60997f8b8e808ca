#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's metrics are the oracle for Tenon's, over several batches: the graph of make_metrics
runs on a Tenon server, TensorFlow's in itself. The variables have the same names and values."""
from labelled_graph import labelled_graph
from tensorflow_environment import Servers, main_with_tensorflow

BATCHES = 20


def metrics(tf):
    m, found = tf.metrics, {}
    given = {name: tf.placeholder(dtype, [12], name) for name, dtype in
             (("truths", tf.float32), ("classes", tf.int64), ("scores", tf.float32),
              ("guesses", tf.int32), ("weights", tf.float32))}
    truths, classes, scores, guesses = (given[n] for n in
                                        ("truths", "classes", "scores", "guesses"))
    logits = tf.placeholder(tf.float32, [12, 5], "logits")
    several = tf.placeholder(tf.int64, [12, 3], "several")
    chosen = tf.placeholder(tf.int64, [12, 2], "chosen")
    places = tf.placeholder(tf.int64, [None, 2], "places")
    values = tf.placeholder(tf.int64, [None], "values")
    rows = tf.expand_dims(tf.range(12, dtype=tf.int64), 1)
    all_labels = {"one": classes, "several": several,
                  "sparse": tf.SparseTensor(places, values, [12, 4]),
                  "sparse_column": tf.SparseTensor(rows, classes, [12])}

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
            for rate in (0, .35, .8, 1):
                one("sensitivity_at_specificity", truths, scores, rate,
                    label=f"sensitivity_at_specificity/{rate}")
                one("specificity_at_sensitivity", truths, scores, rate, num_thresholds=30,
                    label=f"specificity_at_sensitivity/{rate}")
        with tf.name_scope(scope + "_at_k"):
            def at_k(name, kind, *arguments, label=None, scope=scope, weights=weights, **options):
                add(f"{scope}_at_k/{label or name}/{kind}",
                    getattr(m, name)(all_labels[kind], *arguments, weights=weights, **options))

            for kind in all_labels:
                at_k("recall_at_k", kind, logits, 2)
                at_k("precision_at_k", kind, logits, 3)
                at_k("recall_at_k", kind, logits, 2, class_id=1, label="recall_of_class")
                at_k("precision_at_k", kind, logits, 2, class_id=3, label="precision_of_class")
                at_k("recall_at_top_k", kind, chosen)
                at_k("precision_at_top_k", kind, chosen, k=2)
                at_k("recall_at_top_k", kind, chosen, k=2, class_id=2,
                     label="recall_of_class_at_top_k")
                at_k("average_precision_at_k", kind, logits, 4)
            add(f"{scope}_at_k/mean_cosine_distance",
                m.mean_cosine_distance(tf.nn.softmax(logits), logits, 1, weights=weights))
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
    of_metrics = [label for label in wanted if not label.endswith("/update")]
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
                assert np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), \
                    f"{label}: found {b}, wanted {a}"
            return theirs_now

        def labels_of_rows():
            """Sparse labels, at least one for each row, some of which are no class."""
            counts = random.randint(1, 5, 12)
            some = [[random.randint(0, 5), *random.randint(0, 7, n - 1)] for n in counts]
            return ([[row, column] for row, n in enumerate(counts) for column in range(n)],
                    np.concatenate(some))

        compare(of_metrics, {})
        for _ in range(BATCHES):
            places, values = labels_of_rows()
            compare(updates, {
                "places:0": places, "values:0": values,
                "several:0": np.concatenate([random.randint(0, 5, [12, 1]),
                                             random.randint(-1, 7, [12, 2])], 1),
                "chosen:0": random.randint(0, 5, [12, 2]),
                "truths:0": random.randint(0, 2, 12), "classes:0": random.randint(0, 4, 12),
                "scores:0": random.uniform(size=12), "guesses:0": random.randint(0, 3, 12),
                "weights:0": random.uniform(size=12) * random.randint(0, 2, 12),
                "logits:0": random.normal(size=[12, 5])})
            found_now = compare(of_metrics, {})
        assert all(np.all(np.isfinite(value)) for value in found_now), "only NaN is compared"
        names = sorted(variables)
        for name, a, b in zip(names, one.run([variables[n] for n in names]),
                              other.run([n + "/read:0" for n in names])):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-6), f"{name}: found {b}, wanted {a}"
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
