#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An LSTM language model: two layers whose states go on from window to window, then text made by a loop.

The text counts up and down by turns; who knows what came before knows what comes next.
"""
import argparse
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

WORDS, SIZE, BATCH, STEPS = 12, 32, 8, 10


def text(length):
    up = np.arange(WORDS)
    return np.resize(np.concatenate([up, up[-2:0:-1]]), length)


class Model:
    def __init__(self, training):
        self.inputs = tf.placeholder(tf.int32, [BATCH, None])
        self.targets = tf.placeholder(tf.int32, [BATCH, None])
        self.lengths = tf.fill([BATCH], tf.shape(self.inputs)[1])
        embedding = tf.get_variable("embedding", [WORDS, SIZE])
        cells = [tf.nn.rnn_cell.DropoutWrapper(
            tf.nn.rnn_cell.BasicLSTMCell(SIZE, name=f"cell{i}"), output_keep_prob=.9 if training else 1., seed=i)
                 for i in range(2)]
        self.cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        self.start = self.cell.zero_state(BATCH, tf.float32)
        outputs, self.end = tf.nn.dynamic_rnn(
            self.cell, tf.nn.embedding_lookup(embedding, self.inputs), sequence_length=self.lengths,
            initial_state=self.start)
        self.w = tf.get_variable("softmax_w", [SIZE, WORDS])
        self.b = tf.get_variable("softmax_b", [WORDS], initializer=tf.zeros_initializer())
        logits = tf.tensordot(outputs, self.w, 1) + self.b
        self.cost = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.targets, logits=logits))
        self.embedding = embedding

    def train(self):
        """Clipped gradients; the rate falls when `epoch` is above 20."""
        self.epoch = tf.placeholder_with_default(0, [])
        rate = tf.cond(self.epoch > 20, lambda: tf.constant(.3), lambda: tf.constant(1.))
        variables = tf.trainable_variables()
        gradients, norm = tf.clip_by_global_norm(tf.gradients(self.cost, variables), 5.)
        with tf.control_dependencies([tf.debugging.assert_all_finite(norm, "the gradients")]):
            return tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(gradients, variables))

    def continuation(self, words, count):
        """The `count` words that the model thinks follow, from its state after `words`."""
        def body(i, word, state, found):
            with tf.variable_scope("rnn", reuse=True):
                output, state = self.cell(tf.nn.embedding_lookup(self.embedding, word), state)
            word = tf.argmax(tf.matmul(output, self.w) + self.b, 1, output_type=tf.int32)
            return i + 1, word, state, found.write(i, word[0])

        found = tf.TensorArray(tf.int32, count)
        _, _, _, found = tf.while_loop(lambda i, *_: i < count, body, [0, words, self.end, found])
        return found.stack()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--epochs", type=int, default=30)
    flags = parser.parse_args(argv)

    tf.set_random_seed(3)
    initial = tf.random_uniform_initializer(-.3, .3, seed=1)
    with tf.variable_scope("model", initializer=initial):
        model = Model(training=True)
    step = model.train()
    with tf.variable_scope("model", reuse=True):
        test = Model(training=False)
        last = tf.placeholder(tf.int32, [BATCH])
        made = test.continuation(last, 8)

    lines = text(BATCH * 161).reshape(BATCH, 161)
    costs = []
    with tf.Session(flags.master) as session:
        session.run(tf.global_variables_initializer())
        for epoch in range(flags.epochs):
            state = session.run(model.start)
            for begin in range(0, 160, STEPS):
                feed = {model.inputs: lines[:, begin:begin + STEPS],
                        model.targets: lines[:, begin + 1:begin + STEPS + 1], model.epoch: epoch}
                for place, value in zip(tf.nest.flatten(model.start), tf.nest.flatten(state)):
                    feed[place] = value
                cost, state, _ = session.run([model.cost, model.end, step], feed)
                costs.append(cost)
        words = session.run(made, {test.inputs: lines[:, :21], last: lines[:, 21]})
    return {"perplexity": np.exp(np.mean(costs[-16:])), "right": np.mean(words == lines[0, 22:30])}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
