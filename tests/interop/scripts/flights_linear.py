#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A linear model of late flights from CSV files, by feature columns and premade Estimators: what statisticians whose
tables are too large for one process write for TensorFlow 1. Where it runs says TF_CONFIG; each worker reads its share
of the rows. docs/linear_models_tensorflow.md has the commands.
"""
import argparse
import json
import sys
import time

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

# The columns of the files, in their order, with what an empty field is.
COLUMNS = {"late": [0.], "month": [0], "dow": [0], "hour": [0.], "carrier": [""], "origin": [""], "dest": [""],
           "flight": [""], "distance": [0.], "temp": [0.], "humid": [0.], "wind_speed": [0.], "precip": [0.],
           "pressure": [0.], "visib": [0.]}
# Mean and standard deviation, which somebody has to find out first.
SCALES = {"hour": (13.1534, 4.6575), "distance": (1052.0394, 737.2157), "temp": (56.9565, 17.8177),
          "humid": (59.1491, 19.5402), "wind_speed": (11.0192, 5.5524), "precip": (.0040, .0287),
          "pressure": (1017.8657, 6.9694), "visib": (9.2989, 1.9581)}
CARRIERS = "9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV".split()
ORIGINS = ["EWR", "JFK", "LGA"]


def parse(lines):
    """A batch of lines at once."""
    fields = tf.decode_csv(lines, list(COLUMNS.values()))
    features = dict(zip(COLUMNS, fields))
    return features, features.pop("late")


def read(pattern, batch_size, worker=0, workers=1, shuffle=0):
    """Rows of this worker, batch by batch; to train, shuffled among so many, and without end."""
    compression = "GZIP" if pattern.endswith(".gz") else ""
    files = tf.data.Dataset.list_files(pattern, shuffle=False)
    lines = files.flat_map(lambda file: tf.data.TextLineDataset(file, compression).skip(1))
    lines = lines.shard(workers, worker)
    if shuffle:
        lines = lines.shuffle(shuffle, seed=1).repeat()
    return lines.batch(batch_size).map(parse, num_parallel_calls=2).prefetch(2)


def standardised(mean, deviation):
    return lambda x: (x - mean) / deviation


def feature_columns(dest_vocabulary, wide):
    """The terms of the formula in docs/linear_models_tensorflow.md; `wide` adds buckets, crosses and hashes."""
    column = tf.feature_column
    numbers = [column.numeric_column(name, normalizer_fn=standardised(*scale)) for name, scale in SCALES.items()]
    month = column.categorical_column_with_vocabulary_list("month", list(range(1, 13)), dtype=tf.int64)
    dow = column.categorical_column_with_identity("dow", 7)
    carrier = column.categorical_column_with_vocabulary_list("carrier", CARRIERS, num_oov_buckets=1)
    origin = column.categorical_column_with_vocabulary_list("origin", ORIGINS)
    dest = column.categorical_column_with_vocabulary_file("dest", dest_vocabulary, num_oov_buckets=2)
    columns = numbers + [month, dow, carrier, column.indicator_column(origin), dest]
    if wide:
        hours = column.bucketized_column(column.numeric_column("hour"), [6, 9, 12, 15, 18, 21])
        columns += [hours, column.crossed_column([origin, "carrier"], 100),
                    column.categorical_column_with_hash_bucket("flight", 1000)]
    return columns


def make(flags, config):
    columns = feature_columns(flags.dest_vocabulary, flags.wide)
    ftrl = tf.train.FtrlOptimizer(flags.learning_rate, l1_regularization_strength=flags.l1,
                                  l2_regularization_strength=flags.l2)
    if flags.model == "regressor":
        return tf.estimator.LinearRegressor(columns, optimizer=ftrl, config=config)
    return tf.estimator.LinearClassifier(columns, optimizer=ftrl, config=config)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True, help="CSV files, a pattern")
    parser.add_argument("--eval", required=True)
    parser.add_argument("--dest_vocabulary", required=True, help="a file with an airport a line")
    parser.add_argument("--model", choices=["classifier", "regressor"], default="classifier")
    parser.add_argument("--wide", action="store_true", help="buckets, crosses and hashes too")
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--export_dir", help="of a SavedModel")
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--shuffle", type=int, default=20000, metavar="ROWS", help="among how many")
    parser.add_argument("--train_steps", type=int, default=1000, help="of all workers together")
    parser.add_argument("--learning_rate", type=float, default=.1)
    parser.add_argument("--l1", type=float, default=0)
    parser.add_argument("--l2", type=float, default=0)
    flags = parser.parse_args(argv)

    config = tf.estimator.RunConfig(model_dir=flags.model_dir, tf_random_seed=1, save_checkpoints_steps=5000,
                                    save_summary_steps=1000, log_step_count_steps=1000)
    workers = max(config.num_worker_replicas, 1)
    estimator = make(flags, config)
    begin = time.time()

    def train_input():
        return read(flags.train, flags.batch_size, config.global_id_in_cluster or 0, workers, flags.shuffle)

    def eval_input():
        return read(flags.eval, 4096)

    if workers > 1 or config.task_type == "evaluator":
        tf.estimator.train_and_evaluate(
            estimator, tf.estimator.TrainSpec(train_input, max_steps=flags.train_steps),
            tf.estimator.EvalSpec(eval_input, steps=None, start_delay_secs=0, throttle_secs=1))
    else:
        estimator.train(train_input, max_steps=flags.train_steps)
    trained = time.time()
    if config.task_type == "evaluator" or not config.is_chief:
        return {}
    metrics = {name: float(value) for name, value in estimator.evaluate(eval_input).items()}
    if flags.export_dir:
        specification = tf.feature_column.make_parse_example_spec(feature_columns(flags.dest_vocabulary, flags.wide))
        estimator.export_saved_model(
            flags.export_dir, tf.estimator.export.build_parsing_serving_input_receiver_fn(specification))
    return {**metrics, "train_seconds": trained - begin, "seconds": time.time() - begin, "master": config.master}


if __name__ == "__main__":
    print("result", json.dumps(main(sys.argv[1:])))
