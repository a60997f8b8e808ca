# SPDX-License-Identifier: Apache-2.0
"""Writes random.npz beside this file with TensorFlow 2.15.1: two runs in a row of every random op."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
seeds = dict(seed=87654321, seed2=-5)
arrays = {}
with tf.Graph().as_default(), tf.Session() as session:
    nodes = {}
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            nodes[f"{op}/{dtype.name}"] = getattr(tf.raw_ops, op)(shape=[37], dtype=dtype, **seeds)
    for dtype in (tf.int32, tf.int64):
        low, high = tf.constant(-7, dtype), tf.constant(1000003, dtype)
        nodes[f"RandomUniformInt/{dtype.name}"] = tf.raw_ops.RandomUniformInt(
            shape=[37], minval=low, maxval=high, **seeds)
    nodes["RandomShuffle/int32"] = tf.raw_ops.RandomShuffle(value=tf.range(37), **seeds)
    for run in range(2):
        for name, value in session.run(nodes).items():
            narrow = value.dtype.itemsize == 2
            arrays[f"{name}/{run}"] = value.astype(np.float32) if narrow else value
np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "random.npz"), **arrays)
