#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input by tf.data: compressed record files, shuffled, in batches that are parsed and fetched ahead."""
import argparse
import sys

import tensorflow.compat.v1 as tf

import record_files

tf.disable_v2_behavior()

EPOCHS = 3


def pipeline(files, training):
    names = tf.data.Dataset.from_tensor_slices(files)
    data = names.interleave(lambda name: tf.data.TFRecordDataset(name, compression_type="GZIP"), cycle_length=2)
    if training:
        data = data.shuffle(100, seed=7)
    data = data.batch(32).map(
        lambda text: record_files.decode(tf.parse_example(text, record_files.FEATURES)), num_parallel_calls=2)
    return data.prefetch(2)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--data_dir", required=True)
    flags = parser.parse_args(argv)

    tf.set_random_seed(1)
    files = record_files.write(flags.data_dir, 3, 200, "GZIP")
    training, validation = pipeline(files[:2], True), pipeline(files[2:], False)
    iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(training),
                                               tf.data.get_output_shapes(training))
    images, labels, strokes = iterator.get_next()
    loss, step, right = record_files.classifier(images, labels)

    def epoch(session, begin, fetches):
        session.run(begin)
        found = []
        while True:
            try:
                found.append(session.run(fetches)[:2])
            except tf.errors.OutOfRangeError:
                return found

    begin_training, begin_validation = (iterator.make_initializer(d) for d in (training, validation))
    result = []
    with tf.Session(flags.master) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(EPOCHS):
            result += epoch(session, begin_training, [loss, strokes, step])
            result += epoch(session, begin_validation, [right, strokes])
    return {"values": result, "accuracy": result[-2][0]}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
