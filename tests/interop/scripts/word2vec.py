#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Skip-gram word vectors with noise-contrastive estimation: the updates are sparse.

The text is made: words of one topic stand beside each other, so that their vectors must become similar.
With --ps_hosts the embeddings are in parts, one on each parameter server.
"""
import argparse
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

TOPICS, WORDS, DIMENSIONS = 6, 120, 16


def pairs(random, count):
    """A word and one that stands near it: of the same topic nine times out of ten."""
    words = random.randint(0, WORDS, count)
    near = words % TOPICS + TOPICS * random.randint(0, WORDS // TOPICS, count)
    return words, np.where(random.rand(count) < .9, near, random.randint(0, WORDS, count))


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--ps_hosts", default="")
    parser.add_argument("--train_steps", type=int, default=400)
    flags = parser.parse_args(argv)

    tf.set_random_seed(1)
    parts = len(flags.ps_hosts.split(","))
    device = tf.train.replica_device_setter(ps_tasks=parts) if flags.ps_hosts else None
    with tf.device(device):
        inputs = tf.placeholder(tf.int64, [None])
        labels = tf.placeholder(tf.int64, [None, 1])
        split = tf.fixed_size_partitioner(parts)
        embeddings = tf.get_variable("embeddings", [WORDS, DIMENSIONS], partitioner=split,
                                     initializer=tf.random_uniform_initializer(-1, 1, seed=1))
        weights = tf.get_variable("nce_weights", [WORDS, DIMENSIONS], partitioner=split,
                                  initializer=tf.truncated_normal_initializer(stddev=.25, seed=2))
        biases = tf.get_variable("nce_biases", [WORDS], partitioner=split, initializer=tf.zeros_initializer())
        embedded = tf.nn.embedding_lookup(embeddings, inputs, partition_strategy="div")
        loss = tf.reduce_mean(tf.nn.nce_loss(
            list(weights), list(biases), labels, embedded, num_sampled=20, num_classes=WORDS,
            partition_strategy="div"))
        step = tf.train.AdagradOptimizer(1.).minimize(loss)
        every = tf.nn.l2_normalize(tf.concat(list(embeddings), 0), 1)
        _, nearest = tf.nn.top_k(tf.matmul(every, every, transpose_b=True), 6)

    random = np.random.RandomState(1)
    losses = []
    with tf.Session(flags.master) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(flags.train_steps):
            words, near = pairs(random, 128)
            losses.append(session.run([loss, step], {inputs: words, labels: near[:, None]})[0])
        neighbours = session.run(nearest)[:, 1:]
    same_topic = np.mean(neighbours % TOPICS == np.arange(WORDS)[:, None] % TOPICS)
    return {"losses": losses[:10], "loss": np.mean(losses[-50:]), "same_topic": same_topic}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
