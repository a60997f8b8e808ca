#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summaries of every kind for TensorBoard, with the graph and a trace of one step."""
import argparse
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--log_dir", required=True)
    flags = parser.parse_args(argv)

    images = tf.placeholder(tf.float32, [None, 5, 4, 3])
    with tf.name_scope("layer"):
        w = tf.get_variable("w", initializer=np.linspace(-1, 1, 60, dtype=np.float32).reshape(60, 1))
        mean = tf.reduce_mean(tf.matmul(tf.reshape(images, [-1, 60]), w))
        tf.summary.scalar("mean", mean)
        tf.summary.histogram("w", w)
    tf.summary.image("images", images, max_outputs=2)
    tf.summary.audio("sound", tf.reshape(images, [1, -1, 3]), 8000)
    tf.summary.text("words", tf.constant(["some", "text"]))
    tf.summary.tensor_summary("raw", w)
    merged = tf.summary.merge_all()
    step = tf.train.GradientDescentOptimizer(.1).minimize(mean)

    random = np.random.RandomState(2)
    with tf.Session(flags.master) as session, tf.summary.FileWriter(flags.log_dir, session.graph) as writer:
        session.run(tf.global_variables_initializer())
        for count in range(3):
            feed = {images: random.rand(3, 5, 4, 3)}
            writer.add_summary(session.run([merged, step], feed)[0], count)
        metadata = tf.RunMetadata()
        session.run(step, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                    run_metadata=metadata)
        writer.add_run_metadata(metadata, "step 3")
    return {"traced": sorted({node.node_name for device in metadata.step_stats.dev_stats
                              for node in device.node_stats if "MatMul" in node.node_name})}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
