#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/tables_allreduce.cc, on one rank and on two, and the same network in TensorFlow are equally good at the same
tables: their areas under the ROC curve are near each other, and near that of the likelihood ratio, which none exceeds
but by what it has learned of the rows by heart. Each draws its own initial weights and batches."""
import os
import re
import subprocess
import sys
import tempfile

from tensorflow_environment import BUILD, TENON, main_with_tensorflow

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "share", "bench"))

SHARDS, ROWS, SEEDS = 4, 20000, (1, 2, 3)
ITERATIONS, BATCH, RESTARTS, RATE, L2 = 1000, 100, 5, .001, .001
# How near areas are. Measured are 0.0002 between the programs and 0.0004 from the likelihood ratio, at most.
APART, FROM_BEST = .001, .001


def example(folder, ranks):
    """The loss and the area that it ends with."""
    flags = ["--data", folder, "--iterations", ITERATIONS, "--batch_size", BATCH, "--restarts", RESTARTS,
             "--learning_rate", RATE, "--l2", L2]
    launch = [TENON, "launch", "--allreduce", "--workers", ranks, "--"] if ranks > 1 else []
    command = [*launch, os.path.join(BUILD, "example_tables_allreduce"), *flags]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    found = re.search(rf"best: restart \d, loss (\S+), AUC (\S+) of {ROWS} rows", run.stdout)
    if run.returncode != 0 or not found:
        raise RuntimeError(run.stdout + run.stderr)
    return tuple(float(number) for number in found.groups())


def read_shards(np, folder):
    """The descriptors and targets of all shards, joined by their IDs."""
    descriptors, targets = [], []
    for shard in sorted(os.listdir(folder)):
        with open(os.path.join(folder, shard, "targets.tsv"), encoding="utf-8") as file:
            target = dict(line.split() for line in file)
        with open(os.path.join(folder, shard, "descriptors.tsv"), encoding="utf-8") as file:
            for line in list(file)[1:]:
                name, *values = line.split()
                descriptors.append(values)
                targets.append([target[name]])
    return np.array(descriptors, np.float32), np.array(targets, np.float32)


def scaled(np, descriptors):
    low, high = descriptors.min(0).astype(float), descriptors.max(0).astype(float)
    return ((descriptors - (low + high) / 2) * 2 / (high - low)).astype(np.float32)


def area(np, scores, targets):
    """By the sum of ranks; equal scores, which are rare, count as they are sorted."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    ones = targets.sum()
    return (ranks[targets == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(scores) - ones))


def train(tf, np, inputs, targets, seed):
    """The loss of all rows, and their scores."""
    random = np.random.default_rng(seed)
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        x, y = tf.placeholder(tf.float32, [None, inputs.shape[1]]), tf.placeholder(tf.float32, [None, 1])
        layer = x
        for units, activation in ((20, tf.tanh), (5, tf.tanh), (1, None)):
            layer = tf.layers.dense(layer, units, activation, kernel_regularizer=tf.keras.regularizers.L2(L2))
        loss = tf.losses.sigmoid_cross_entropy(y, layer, reduction=tf.losses.Reduction.SUM)
        loss += tf.losses.get_regularization_loss()
        step = tf.train.AdamOptimizer(RATE).minimize(loss)
        order = np.concatenate([random.permutation(len(inputs)) for _ in range(-(-ITERATIONS * BATCH // len(inputs)))])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            run = session.make_callable(step, feed_list=[x, y])
            for i in range(ITERATIONS):
                batch = order[i * BATCH:(i + 1) * BATCH]
                run(inputs[batch], targets[batch])
            return session.run([loss, layer[:, 0]], {x: inputs, y: targets})


def best_of_tensorflow(tf, np, folder, seed):
    descriptors, targets = read_shards(np, folder)
    inputs = scaled(np, descriptors)
    fits = [train(tf, np, inputs, targets, 1000 * seed + restart) for restart in range(RESTARTS)]
    loss, scores = min(fits, key=lambda fit: fit[0])
    return float(loss), area(np, scores, targets[:, 0])


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    import make_tables
    failures = 0
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "tables")
            best = make_tables.write_shards(folder, SHARDS, ROWS, seed)
            fits = {"one rank": example(folder, 1), "two ranks": example(folder, 2),
                    "TensorFlow": best_of_tensorflow(tf, np, folder, seed)}
        print(f"seed {seed}: likelihood ratio {best:.5f}, " +
              ", ".join(f"{who} {auc:.5f} (loss {loss:.1f})" for who, (loss, auc) in fits.items()), flush=True)
        areas = [auc for _, auc in fits.values()]
        if max(areas) - min(areas) > APART or any(abs(auc - best) > FROM_BEST for auc in areas):
            print(f"FAILED: wanted them within {APART} of each other, and within {FROM_BEST} of the likelihood ratio")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
