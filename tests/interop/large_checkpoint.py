#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A variable of 3 GiB, more bytes than 32 bits count, goes from Tenon to TensorFlow and back. Needs 10 GiB
of memory and 8 of disk, and skips without them: ctest -C Full -L slow runs it."""
import os
import shutil
import subprocess
import tempfile

from tensorflow_environment import SKIPPED, TENON, main_with_tensorflow

PROGRAM = os.path.join(os.path.dirname(TENON), "large_variable")
ROWS, COLUMNS = 768, 1 << 20


def wanted_row(np, row):
    return (row + np.arange(COLUMNS) % 1024 / 1024).astype(np.float32)


def tenon_saves(tf, np, prefix):
    subprocess.run([PROGRAM, "save", prefix], check=True)
    with tf.Graph().as_default(), tf.Session() as session:
        part = tf.placeholder(tf.string, [1])
        restored = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["w"], shape_and_slices=part,
                                        dtypes=[tf.float32])[0]
        for row in (0, 1, 255, 256, 511, 512, ROWS - 1):
            found = session.run(restored, {part: [f"{ROWS} {COLUMNS} {row},1:-"]})
            assert np.array_equal(found[0], wanted_row(np, row)), row


def tensorflow_saves(tf, np, prefix):
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.reshape(tf.range(ROWS, dtype=tf.float32), [ROWS, 1]) + wanted_row(np, 0)
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""],
                                      tensors=[value]))
    subprocess.run([PROGRAM, "restore", prefix], check=True)


def main():
    with open("/proc/meminfo", encoding="utf-8") as file:
        free = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    if free >> 20 < 10 or shutil.disk_usage(tempfile.gettempdir()).free >> 30 < 8:
        print("needs 10 GiB of memory and 8 GiB of disk")
        return SKIPPED
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    for case in (tenon_saves, tensorflow_saves):
        with tempfile.TemporaryDirectory() as folder:
            case(tf, np, os.path.join(folder, "model"))
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
