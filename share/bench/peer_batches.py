# SPDX-License-Identifier: Apache-2.0
"""What `tenon bench` and its peers feed and measure alike: batches, weights, and medians of calls."""
import time

import numpy as np


def median_call(count, call):
    """The median of the seconds that single calls take."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def time_calls(count, call):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def mnist_batch(size=100):
    images = (np.arange(size * 784) % 97 / 97).astype(np.float32).reshape(size, 784)
    return images, np.eye(10, dtype=np.float32)[np.arange(size) % 10]


def scattered(shape, dtype, limit):
    """Numbers below `limit` in an order without pattern."""
    return (np.arange(np.prod(shape)) * 7919 % 10007 % limit).astype(dtype).reshape(shape)


def frozen_weights(shape, limit):
    values = (np.arange(np.prod(shape)) * 7919 % 10007 / 5003 - 1) * limit
    return values.astype(np.float32).reshape(shape)


def frozen_network():
    """Pairs of weights and biases of the rows of inference: two convolutions', [height, width, channels, filters], and
    two dense layers', [inputs, outputs]."""
    shapes = [[3, 3, 1, 32], [3, 3, 32, 64], [7 * 7 * 64, 128], [128, 10]]
    return [(frozen_weights(s, np.sqrt(6 * s[-1] / np.prod(s))), frozen_weights([s[-1]], .1)) for s in shapes]
