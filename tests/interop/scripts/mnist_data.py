# SPDX-License-Identifier: Apache-2.0
"""The first images of MNIST as arrays, and batches of arrays in an order that a seed gives."""
import gzip
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../share/mnist")


def _bytes(name, header, size):
    with gzip.open(os.path.join(FOLDER, name)) as f:
        return np.frombuffer(f.read(header + size)[header:], np.uint8)


def read(part, count):
    """`count` images [count, 784] between 0 and 1, and their labels; `part` is "train" or "t10k"."""
    images = _bytes(f"{part}-images-idx3-ubyte.gz", 16, 784 * count)
    labels = _bytes(f"{part}-labels-idx1-ubyte.gz", 8, count)
    return images.reshape(count, 784).astype(np.float32) / 255, labels.astype(np.int64)


def batches(images, labels, size, count, seed=1):
    random = np.random.RandomState(seed)
    for _ in range(count):
        rows = random.randint(0, len(images), size)
        yield images[rows], labels[rows]
