#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's learning rates, clipping and moving averages are the oracle for Tenon's: the graph
of make_schedules runs on a Tenon server, TensorFlow's in itself."""
from labelled_graph import labelled_graph
from tensorflow_environment import Servers, main_with_tensorflow


def schedules(tf, step):
    t = tf.train
    return {
        "exponential": t.exponential_decay(.1, step, 7, .9),
        "exponential_staircase": t.exponential_decay(.1, step, 7, .9, staircase=True),
        "natural_exp": t.natural_exp_decay(.1, step, 7, .5),
        "natural_exp_staircase": t.natural_exp_decay(.1, step, 7, .5, staircase=True),
        "inverse_time": t.inverse_time_decay(.1, step, 7, .5),
        "inverse_time_staircase": t.inverse_time_decay(.1, step, 7, .5, staircase=True),
        "polynomial": t.polynomial_decay(.1, step, 40, .01, 2.),
        # The cycle has 16 steps: TensorFlow multiplies by the inverse, and is a cycle late for others.
        "polynomial_cycle": t.polynomial_decay(.1, step, 16, .01, .5, cycle=True),
        "cosine": t.cosine_decay(.1, step, 40, alpha=.2),
        "cosine_restarts": t.cosine_decay_restarts(.1, step, 11, m_mul=.8, alpha=.1),
        "cosine_same_restarts": t.cosine_decay_restarts(.1, step, 11, t_mul=1., m_mul=.8),
        "piecewise": t.piecewise_constant(step, [5, 20, 60], [.5, .3, .2, .1]),
        "double": t.exponential_decay(tf.constant(.1, tf.float64), step, 7, .9),
    }


def clipped(tf):
    x, y = tf.placeholder(tf.float32, [3, 4], "x"), tf.placeholder(tf.float32, [5], "y")
    limit = tf.placeholder(tf.float32, [], "limit")
    (global_x, _, global_y), norm = tf.clip_by_global_norm([x, None, y], limit)
    return {
        "by_norm": tf.clip_by_norm(x, limit),
        "by_norm_of_rows": tf.clip_by_norm(x, limit, axes=[1]),
        "by_average_norm": tf.clip_by_average_norm(x, .1),
        "global_norm": norm, "global_x": global_x, "global_y": global_y,
        "by_value": tf.clip_by_value(x, -.5, .25),
    }


def averages(tf, resource):
    with tf.name_scope("resource" if resource else "ref"):
        w = tf.Variable([1., -2.], name="w", use_resource=resource)
        b = tf.Variable(3., name="b", use_resource=resource)
        step = tf.Variable(0., name="step", trainable=False, use_resource=resource)
        now = step.value()  # once, before the step changes
        factor = .5 * now
        with tf.control_dependencies([w.assign_add(w.value() * factor), b.assign_add(factor)]):
            change = tf.group(step.assign_add(1.))
        plain = tf.train.ExponentialMovingAverage(.9)
        counted = tf.train.ExponentialMovingAverage(.9, now, name="Counted")
        with tf.control_dependencies([change]):
            train = tf.group(plain.apply([w, b]), counted.apply([w]))
    kind = "resource_" if resource else "ref_"
    return {kind + "train": train, kind + "w": w, kind + "w_average": plain.average(w),
            kind + "b_average": plain.average(b), kind + "w_counted": counted.average(w)}


def check(np, label, found, wanted, limit):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, label
    assert np.allclose(found, wanted, rtol=limit, atol=limit, equal_nan=True), \
        f"{label}: found {found}, wanted {wanted}"


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    graph, found = labelled_graph(tf, "make_schedules")
    theirs = tf.Graph()
    with theirs.as_default():
        rates = schedules(tf, tf.placeholder(tf.int64, [], "step"))
        limited = clipped(tf)
        averaged = {**averages(tf, False), **averages(tf, True)}
        init = tf.global_variables_initializer()
        names = {v.op.name for v in tf.global_variables()}
    random = np.random.RandomState(1)
    x, y = random.normal(size=[3, 4]), random.normal(size=[5])
    x[1] = 0
    with Servers({"worker": 1}) as servers, tf.Session(graph=theirs) as one, \
            tf.Session(servers.target("worker"), graph=graph) as other:
        def compare(wanted, feed, limit):
            values = one.run(wanted, feed)
            ours = other.run({label: found[label] for label in wanted}, feed)
            for label, value in values.items():
                check(np, label, np.asarray(ours[label]), np.asarray(value), limit)

        for step in range(110):
            compare(rates, {"step:0": step}, 1e-6)
        for limit in (.5, 3., 100., np.inf):
            compare(limited, {"x:0": x, "y:0": y, "limit:0": limit}, 1e-5)
        compare(limited, {"x:0": x, "y:0": y * np.inf, "limit:0": 1}, 1e-5)
        one.run(init)
        other.run(found["init"])
        trains = ["ref_train", "resource_train"]
        values = {label: v for label, v in averaged.items() if label not in trains}
        compare(values, {}, 1e-6)
        for _ in range(6):
            for label in trains:
                one.run(averaged[label])
                other.run(found[label])
            compare(values, {}, 1e-5)
    made = {node.name for node in graph.as_graph_def().node
            if node.op in ("VariableV2", "VarHandleOp")}
    assert made == names, f"variables {sorted(made)}, wanted {sorted(names)}"
    restored = {label.split(":")[1]: found[label].op.name for label in found
                if label.startswith("ref_restore:")}
    assert restored["ref/w/Counted"] == "ref/w", restored
    assert restored["ref/b/Counted"] == "ref/b" and restored["ref/step"] == "ref/step", restored
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
