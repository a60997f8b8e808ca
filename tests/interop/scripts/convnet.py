#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A convolutional network on MNIST, with batch normalisation, dropout and Adam."""
import argparse
import sys

import tensorflow.compat.v1 as tf

import mnist_data

tf.disable_v2_behavior()


def network(images, training):
    net = tf.reshape(images, [-1, 28, 28, 1])
    for layer, filters in enumerate((12, 24)):
        net = tf.layers.conv2d(net, filters, 5, padding="same", use_bias=False, name=f"conv{layer}",
                               kernel_initializer=tf.glorot_uniform_initializer(seed=layer))
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=.9))
        net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.dense(tf.layers.flatten(net), 64, activation=tf.nn.relu,
                          kernel_initializer=tf.glorot_uniform_initializer(seed=3))
    net = tf.layers.dropout(net, .4, training=training, seed=5)
    return tf.layers.dense(net, 10, kernel_initializer=tf.glorot_uniform_initializer(seed=4))


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--train_steps", type=int, default=150)
    flags = parser.parse_args(argv)

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 784])
    y_ = tf.placeholder(tf.int64, [None])
    training = tf.placeholder_with_default(False, [])
    logits = network(x, training)
    loss = tf.losses.sparse_softmax_cross_entropy(y_, logits)
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(.001, global_step, 50, .9, staircase=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
    averages = tf.train.ExponentialMovingAverage(.9, global_step)
    with tf.control_dependencies([train_op]):
        train_op = averages.apply(tf.trainable_variables())
    accuracy, update_accuracy = tf.metrics.accuracy(y_, tf.argmax(logits, 1))

    images, labels = mnist_data.read("train", 3000)
    losses = []
    with tf.Session(flags.master) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for batch_x, batch_y in mnist_data.batches(images, labels, 32, flags.train_steps):
            losses.append(session.run([loss, train_op], {x: batch_x, y_: batch_y, training: True})[0])
        test_x, test_y = mnist_data.read("t10k", 500)
        for begin in range(0, 500, 100):
            session.run(update_accuracy, {x: test_x[begin:begin + 100], y_: test_y[begin:begin + 100]})
        return {"loss": losses[0], "accuracy": session.run(accuracy)}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
