#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input by queue runners: file names, readers and shuffled batches each in a queue that threads fill."""
import argparse
import sys

import tensorflow.compat.v1 as tf

import record_files

tf.disable_v2_behavior()

FILES, PER_FILE, EPOCHS, BATCH = 3, 100, 4, 20


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="")
    parser.add_argument("--data_dir", required=True)
    flags = parser.parse_args(argv)

    files = record_files.write(flags.data_dir, FILES, PER_FILE)
    names = tf.train.string_input_producer(files, num_epochs=EPOCHS, shuffle=True)
    _, example = tf.TFRecordReader().read(names)
    image, label, strokes = record_files.decode(tf.parse_single_example(example, record_files.FEATURES))
    image.set_shape([784])
    images, labels, strokes = tf.train.shuffle_batch(
        [image, label, strokes], batch_size=BATCH, num_threads=2, capacity=200, min_after_dequeue=100,
        allow_smaller_final_batch=True)
    loss, step, right = record_files.classifier(images, labels)

    seen, accuracies = 0, []
    with tf.Session(flags.master) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while not coordinator.should_stop():
                count, accuracy, _ = session.run([tf.size(labels), right, step])
                seen += count
                accuracies.append(accuracy)
        except tf.errors.OutOfRangeError:
            pass  # the last epoch is over
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
    return {"seen": seen, "accuracy": sum(accuracies[-10:]) / 10}


if __name__ == "__main__":
    print(main(sys.argv[1:]))
