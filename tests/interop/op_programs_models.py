# SPDX-License-Identifier: Apache-2.0
"""Small graphs for counted loops, calls on other devices, quantised numbers, records and linear models; see op_programs.py."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function

raw = tf.raw_ops


def counted_loops(_):
    @function.Defun(tf.int32, tf.float32, tf.float32)
    def body(i, x, y):
        return x * 10.0 + tf.cast(i, tf.float32), y + x

    def count(start, limit, delta):
        numbers = [tf.placeholder_with_default(n, None) for n in (start, limit, delta)]
        return list(raw.For(start=numbers[0], limit=numbers[1], delta=numbers[2], input=[tf.constant(7.0), tf.constant(0.5)],
                            body=body))

    return [count(*numbers) for numbers in (
        (1, 4, 1), (0, 5, 2), (5, 0, -2), (3, 3, 1), (3, 3, 0), (0, 3, -1), (3, 0, 1), (0, 3, 0), ([1], 3, 1), (-2, 2, 3))]


def calls_on_devices(_):
    @function.Defun(tf.float32, tf.float32)
    def sums(a, b):
        return a + b, tf.reduce_sum(a)

    x = tf.placeholder_with_default([1.0, 2.0], [2])
    return [list(raw.RemoteCall(target=target, args=[x, x * 3.0], Tout=[tf.float32, tf.float32], f=sums))
            for target in ("/device:CPU:0", "/cpu:0")]


BITS = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}


def quantised(_):
    values = np.concatenate([np.linspace(-3, 3, 61), [0.0, -0.0, 1e-3, 100.0, -100.0, 0.5, 1.5, 2.5]]).astype(np.float32)
    x = tf.constant(values)
    table = tf.constant(np.sin(np.arange(24) * 0.7).reshape([2, 3, 4]) * 3, tf.float32)
    steps = []
    for kind in BITS:  # as in dequantised, of 32 bits the highest numbers overflow
        ranges = [(-1.0, 1.5), (-2.0, 2.0), (0.25, 2.0), (-3.0, -1.0), (0.0, 0.0), (0.5, 0.5), (1.0, -1.0), (-0.001, 0.002)]
        for low, high in ranges if kind != tf.qint32 else []:
            for attrs in ({}, {"mode": "MIN_FIRST"}, {"mode": "SCALED"}, {"mode": "SCALED", "narrow_range": True},
                          {"mode": "SCALED", "round_mode": "HALF_TO_EVEN"}, {"ensure_minimum_range": 0.5}):
                y, first, last = raw.QuantizeV2(input=x, min_range=low, max_range=high, T=kind, **attrs)
                steps.append([tf.bitcast(y, BITS[kind]), first, last])
        for axis in (0, 1, 2) if kind != tf.qint32 else ():
            n = table.shape[axis]
            for attrs in ({}, {"mode": "SCALED"}, {"mode": "MIN_FIRST"}):
                y, first, last = raw.QuantizeV2(input=table, min_range=-tf.range(1.0, n + 1), max_range=tf.range(0.5, n + 0.5),
                                                T=kind, axis=axis, **attrs)
                steps.append([tf.bitcast(y, BITS[kind]), first, last])
    wrong = [dict(round_mode="HALF_TO_EVEN"), dict(axis=3), dict(min_range=[0.0, 1.0]), dict(axis=1, min_range=0.0, max_range=1.0)]
    for attrs in wrong:
        hidden = tf.placeholder_with_default(table, None)
        y, first, last = raw.QuantizeV2(**{**dict(input=hidden, min_range=tf.placeholder_with_default(
            attrs.pop("min_range", -1.0), None), max_range=tf.placeholder_with_default(attrs.pop("max_range", 1.0), None), T=tf.qint8),
            **attrs})
        steps.append([tf.bitcast(y, tf.int8), first, last])
    return steps


def dequantised(_):
    steps = []
    for kind, bits in BITS.items():
        low, high = bits.min, bits.max
        numbers = [low, low + 1, low // 2, 0, 1, 2, 3, high // 2]
        # TensorFlow's highest numbers of 32 bits overflow.
        numbers += [high - 1, high] if kind != tf.qint32 else []
        numbers = np.array(numbers, dtype=bits.as_numpy_dtype)
        x = tf.bitcast(tf.constant(numbers), kind)
        for first, last in ((-1.0, 1.5), (-2.0, 2.0), (0.25, 2.0), (0.0, 6.0), (1.0, 1.0)):
            for attrs in ({}, {"mode": "MIN_FIRST"}, {"mode": "SCALED"}, {"mode": "SCALED", "narrow_range": True},
                          {"dtype": tf.bfloat16}, {"dtype": tf.bfloat16, "mode": "SCALED"}):
                steps.append([raw.Dequantize(input=x, min_range=first, max_range=last, **attrs)])
        table = tf.bitcast(tf.constant(np.resize(numbers, [2, 3, 4])), kind)
        for axis, n in enumerate((2, 3, 4)):
            for attrs in ({}, {"mode": "SCALED"}, {"mode": "MIN_FIRST"}):
                steps.append([raw.Dequantize(input=table, min_range=-tf.range(1.0, n + 1), max_range=tf.range(0.5, n + 0.5),
                                             axis=axis, **attrs)])
        steps.append([raw.Dequantize(input=x, min_range=tf.placeholder_with_default([0.0, 1.0], None), max_range=1.0)])
    return steps


def records(folder):
    """All records of a round, sorted, as their order is anyone's."""
    for i in range(3):
        with tf.python_io.TFRecordWriter(f"{folder}/part{i}") as writer:
            for k in range(2 * i + 1):
                writer.write(f"{i} {k}".encode())
    def batch(**attrs):
        return raw.RecordInput(file_pattern=f"{folder}/part*", **attrs)
    whole = batch(batch_size=9)
    return [[tf.sort(tf.strings.to_hash_bucket_fast(whole, 1 << 62))]] * 3 + [
        [raw.RecordInput(file_pattern=f"{folder}/none*")]]


def sdca(group, state, loss, weights, labels, l1=0.5, l2=2.0, partitions=1, **attrs):
    """The step of one group of features: examples, features, values and the weights' indices, or a dense matrix."""
    dense = "dense" in group
    found = raw.SdcaOptimizerV2(
        sparse_example_indices=[] if dense else [tf.constant(group["examples"], tf.int64)],
        sparse_feature_indices=[] if dense else [tf.constant(group["features"], tf.int64)],
        sparse_feature_values=[tf.constant(group["values"])] if "values" in group else [],
        dense_features=[group["dense"]] if dense else [], example_weights=weights, example_labels=labels,
        sparse_indices=[] if dense else [tf.constant(group["indices"], tf.int64)],
        sparse_weights=[] if dense else [group["weights"]], dense_weights=[group["weights"]] if dense else [],
        example_state_data=state, loss_type=loss, l1=l1, l2=l2, num_loss_partitions=partitions, num_inner_iterations=1,
        adaptive=False, **attrs)
    return list(tf.nest.flatten(found))


def linear_models(_):
    """Of one example each, as the order of several is drawn."""
    steps = []
    for loss in ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"):
        for label in (0.0, 1.0, 3.0, -1.0, 0.5):
            for state, partitions in (([[0.0, 0.0, 0.0, 0.0]], 1), ([[0.3, 1.0, 2.0, 1.5]], 3)):
                for group in ({"dense": [[1.0, -2.0, 0.5]], "weights": [0.4, 0.1, -0.7]},
                              {"examples": [0, 0], "features": [7, 2], "values": [1.5, -1.0], "indices": [2, 7, 9],
                               "weights": [0.5, -0.9, 3.0]},
                              {"examples": [0], "features": [9], "indices": [2, 7, 9], "weights": [0.5, -0.9, 3.0]}):
                    steps.append(sdca(group, state, loss, [1.5], [label], partitions=partitions))
    sparse = {"examples": [0, 0], "features": [7, 2], "indices": [2, 7], "weights": [0.5, -0.9]}
    state = [[0.0] * 4]
    for wrong in ({"features": [7, 8]}, {"features": [7, 7]}, {"features": [7]}):
        steps.append(sdca({**sparse, **wrong}, state, "squared_loss", [1.0], [1.0]))
    steps.append(sdca(sparse, [[0.0] * 3], "squared_loss", [1.0], [1.0]))
    steps.append(sdca(sparse, state, "squared_loss", [1.0, 1.0], [1.0]))
    one, two = (raw.VariableV2(shape=[3], dtype=tf.float32, shared_name=name) for name in ("sdca_one", "sdca_two"))
    steps += [[raw.Assign(ref=one, value=[1.0, -0.2, 0.3]).op, raw.Assign(ref=two, value=[-1.0, 0.25, -0.3]).op],
              [raw.SdcaShrinkL1(weights=[one, two], l1=0.5, l2=2.0)], [one, two], [raw.SdcaShrinkL1(weights=[], l1=0.5, l2=2.0)]]
    return steps


def fingerprints(_):
    texts = [bytes((i * 7 + k) % 251 for k in range(i)) for i in list(range(0, 300)) + [511, 512, 513, 1000]]
    return [[raw.SdcaFprint(input=tf.constant(texts))], [raw.SdcaFprint(input=tf.placeholder_with_default("a", None))]]


MODEL_PROGRAMS = [counted_loops, calls_on_devices, quantised, dequantised, records, linear_models, fingerprints]
MODEL_OPS = {"QuantizeV2", "Dequantize", "SdcaFprint", "SdcaOptimizer", "SdcaOptimizerV2", "SdcaShrinkL1"}
