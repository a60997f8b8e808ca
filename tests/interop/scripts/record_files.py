# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of images of MNIST as Examples: what the input scripts read."""
import os

import numpy as np
import tensorflow.compat.v1 as tf

import mnist_data

FEATURES = {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64),
            "strokes": tf.VarLenFeature(tf.float32)}


def write(folder, files, images_per_file, compression=""):
    """The files' names; the images go in turn from file to file."""
    images, labels = mnist_data.read("train", files * images_per_file)
    names = [os.path.join(folder, f"part-{i}.tfrecord") for i in range(files)]
    for i, name in enumerate(names):
        with tf.python_io.TFRecordWriter(name, tf.io.TFRecordOptions(compression)) as writer:
            for image, label in zip(images[i::files], labels[i::files]):
                features = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(
                        value=[(image * 255).astype(np.uint8).tobytes()])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                    "strokes": tf.train.Feature(float_list=tf.train.FloatList(
                        value=image[image > .9][:label]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features))
                             .SerializeToString())
    return names


def decode(features):
    """An image between 0 and 1, its label, and how many strokes it has."""
    image = tf.cast(tf.decode_raw(features["image"], tf.uint8), tf.float32) / 255.
    strokes = tf.sparse_tensor_to_dense(features["strokes"])
    return image, features["label"], tf.shape(strokes)[-1]


def classifier(images, labels):
    """Loss and training step of a softmax regression."""
    images.set_shape([None, 784])
    logits = tf.layers.dense(images, 10, kernel_initializer=tf.zeros_initializer())
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.GradientDescentOptimizer(.3).minimize(loss, tf.train.get_or_create_global_step())
    right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    return loss, step, right
