#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network for late flights by tf.estimator.train_and_evaluate, as a job that TF_CONFIG describes runs it: each trainer
reads its share of the rows, and the evaluator follows the checkpoints and exports models.
"""
import argparse
import sys

import tensorflow.compat.v1 as tf

COLUMNS = {"late": [0.], "month": [0.], "dow": [0.], "hour": [0.], "carrier": [""], "origin": [""], "dest": [""],
           "flight": [""], "distance": [0.], "temp": [0.], "humid": [0.], "wind_speed": [0.], "precip": [0.],
           "pressure": [0.], "visib": [0.]}
SCALES = {"hour": (13., 5.), "distance": (1050., 740.), "temp": (57., 18.), "humid": (59., 20.), "visib": (9., 2.)}
CARRIERS = "9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV".split()


def parse(lines):
    fields = dict(zip(COLUMNS, tf.decode_csv(lines, list(COLUMNS.values()))))
    return {name: fields[name] for name in [*SCALES, "month", "carrier"]}, fields["late"]


def read(pattern, batch_size, workers=1, worker=0, training=False):
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    lines = files.flat_map(lambda file: tf.data.TextLineDataset(file).skip(1)).shard(workers, worker)
    if training:
        lines = lines.shuffle(5000).repeat()
    return lines.batch(batch_size).map(parse).prefetch(2)


def feature_columns():
    column = tf.feature_column
    numbers = [column.numeric_column(name, normalizer_fn=lambda x, m=mean, d=deviation: (x - m) / d)
               for name, (mean, deviation) in SCALES.items()]
    month = column.bucketized_column(column.numeric_column("month"), [m + .5 for m in range(1, 12)])
    carrier = column.categorical_column_with_vocabulary_list("carrier", CARRIERS)
    return numbers + [month, column.embedding_column(carrier, 4)]


def serving_features():
    names = {name: tf.string if name == "carrier" else tf.float32 for name in [*SCALES, "month", "carrier"]}
    placeholders = {name: tf.placeholder(dtype, [None], name) for name, dtype in names.items()}
    return tf.estimator.export.ServingInputReceiver(placeholders, placeholders)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True, help="CSV files, a pattern")
    parser.add_argument("--eval", required=True)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--max_steps", type=int, default=6000)
    flags = parser.parse_args(argv)
    tf.logging.set_verbosity(tf.logging.INFO)

    config = tf.estimator.RunConfig(model_dir=flags.model_dir, tf_random_seed=1, save_checkpoints_steps=2000,
                                    save_summary_steps=500, log_step_count_steps=1000,
                                    experimental_max_worker_delay_secs=5)
    estimator = tf.estimator.DNNClassifier([32, 16], feature_columns(), optimizer=tf.train.AdagradOptimizer(.05),
                                           config=config)
    trainers = max(config.num_worker_replicas, 1)
    train = tf.estimator.TrainSpec(
        lambda: read(flags.train, 64, trainers, config.global_id_in_cluster or 0, training=True), flags.max_steps)
    evaluate = tf.estimator.EvalSpec(
        lambda: read(flags.eval, 1000), steps=None, start_delay_secs=1, throttle_secs=1,
        exporters=[tf.estimator.LatestExporter("latest", serving_features, exports_to_keep=2),
                   tf.estimator.FinalExporter("final", serving_features)])
    tf.estimator.train_and_evaluate(estimator, train, evaluate)


if __name__ == "__main__":
    main(sys.argv[1:])
