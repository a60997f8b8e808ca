# SPDX-License-Identifier: Apache-2.0
"""The rows of readers of tensorflow_peer.py: megabytes of the file, or of pixels, a second."""
import os
import tempfile
import time

import numpy as np
import tensorflow.compat.v1 as tf


def walk(dataset):
    """Seconds that reading all of a dataset takes."""
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        step = session.make_callable(following)
        start = time.perf_counter()
        try:
            while True:
                step()
        except tf.errors.OutOfRangeError:
            return time.perf_counter() - start


def walk_fed(iterator, feeds):
    """Seconds that reading all of a dataset takes once it holds what it is fed with."""
    following = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer, feeds)
        step = session.make_callable(following)
        start = time.perf_counter()
        try:
            while True:
                step()
        except tf.errors.OutOfRangeError:
            return time.perf_counter() - start


class Files:
    """The files that the rows of readers read, made when they are first wanted."""
    folder = None

    @classmethod
    def place(cls, name, write):
        if cls.folder is None:
            cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, name)
        if not os.path.exists(path):
            write(path)
        return path

    @staticmethod
    def records(path):
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(65536):
                writer.write(b"r" * 1000)

    @staticmethod
    def table(path):
        numbers = np.random.RandomState(1).randint(1000000, size=(400000, 10))
        with open(path, "w") as file:
            file.write(",".join("c%d" % c for c in range(10)) + "\n")
            for row in numbers.tolist():
                file.write(",".join("0.%06d" % n for n in row) + "\n")

    @staticmethod
    def pictures(path):
        os.mkdir(path)
        y, x, c = np.mgrid[:256, :256, :3]
        with tf.Session() as session:
            pixels = tf.placeholder(tf.uint8, [256, 256, 3])
            encoded = tf.io.encode_jpeg(pixels)
            for i in range(128):
                image = 127 + 100 * np.sin(x / 20 + i) * np.cos(y / 30 + c)
                with open(os.path.join(path, "%d.jpg" % i), "wb") as file:
                    file.write(session.run(encoded, {pixels: image.astype(np.uint8)}))


def read_records():
    path = Files.place("records", Files.records)
    return 65.536 / walk(tf.data.TFRecordDataset(path).batch(256))


def read_text():
    path = Files.place("table.csv", Files.table)
    return 36 / walk(tf.data.TextLineDataset(path).batch(256))


def read_csv():
    path = Files.place("table.csv", Files.table)
    return 36 / walk(tf.data.TextLineDataset(path).skip(1).batch(256).map(
        lambda lines: tf.io.decode_csv(lines, [[0.0]] * 10)))


def read_fixed():
    path = Files.place("images", lambda path: np.full(60000 * 784, 7, np.uint8).tofile(path))
    images = tf.data.FixedLengthRecordDataset(path, 784).shuffle(60000, 1).batch(256)
    return 47.04 / walk(images.map(lambda records: tf.io.decode_raw(records, tf.uint8)))


def write_arrays(path):
    np.savez(path, x=np.full((60000, 784), 0.5, np.float32), y=np.zeros(60000, np.int32))


def read_npz():
    path = Files.place("arrays.npz", write_arrays)
    start = time.perf_counter()
    with np.load(path) as arrays:
        x, y = arrays["x"], arrays["y"]
    x_in, y_in = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.int32, y.shape)
    iterator = tf.data.make_initializable_iterator(
        tf.data.Dataset.from_tensor_slices((x_in, y_in)).batch(256))
    return 188.16 / (time.perf_counter() - start + walk_fed(iterator, {x_in: x, y_in: y}))


def read_tensors():
    x = np.full((60000, 784), 0.5, np.float32)
    x_in = tf.placeholder(tf.float32, x.shape)
    iterator = tf.data.make_initializable_iterator(
        tf.data.Dataset.from_tensor_slices(x_in).shuffle(60000, 1).batch(256))
    return 188.16 / walk_fed(iterator, {x_in: x})


def read_images():
    folder = Files.place("pictures", Files.pictures)
    files = tf.data.Dataset.list_files(os.path.join(folder, "*.jpg"), shuffle=False)
    images = files.map(lambda path: tf.io.decode_jpeg(tf.io.read_file(path), 3),
                       num_parallel_calls=tf.data.AUTOTUNE)
    return 25.165824 / walk(images.batch(32))


ROWS = {
    "read_records": read_records,
    "read_text": read_text,
    "read_csv": read_csv,
    "read_idx": read_fixed,
    "read_npz": read_npz,
    "read_tensors": read_tensors,
    "read_images": read_images,
}
