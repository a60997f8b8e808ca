#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The linear models of a statistician's script (scripts/flights_linear.py) on Tenon's servers, and what `tenon inspect
--coefficients` says of their checkpoints, with TensorFlow's variables and predictions as the oracle.

Runs itself again under the TensorFlow environment (TENON_TF_VENV). Arguments: names of cases.
"""
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

from script_runs import SCRIPTS, report
from tensorflow_environment import TENON, Servers, end_with_parent, main_with_tensorflow

SCRIPT = os.path.join(SCRIPTS, "flights_linear.py")
FLIGHTS = os.path.join(os.environ.get("TENON_SOURCE_DIR", "."), "share", "flights", "flights_sample.csv.gz")
ROWS = 6000
MONTHS = [str(i) for i in range(1, 13)]
HOURS = ["< 6", "[6, 9)", "[9, 12)", "[12, 15)", "[15, 18)", "[18, 21)", ">= 21"]


class Flights:
    """Some rows, in two files, and the vocabulary of their destinations."""

    def __init__(self, folder):
        self.folder = folder
        with gzip.open(FLIGHTS, "rt", encoding="utf-8") as file:
            lines = [next(file) for _ in range(ROWS + 1)]
        self.rows = list(csv.DictReader(lines))
        self.dests = sorted({row["dest"] for row in self.rows})
        self.vocabulary = self.write("dest.txt", [dest + "\n" for dest in self.dests])
        for i in range(2):
            self.write(f"rows_{i}.csv", lines[:1] + lines[1 + i::2])
        self.pattern = os.path.join(folder, "rows_*.csv")

    def write(self, name, lines):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
        return path

    def flags(self, *more):
        return [f"--train={self.pattern}", f"--eval={self.pattern}", f"--dest_vocabulary={self.vocabulary}",
                "--batch_size=64", *more]


def begin(flights, config, *flags):
    return subprocess.Popen([sys.executable, SCRIPT, *flights.flags(*flags)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=dict(os.environ, TF_CONFIG=json.dumps(config)),
                            preexec_fn=end_with_parent)


def end(job, process):
    output, errors = process.communicate(timeout=400)
    assert process.returncode == 0, f"{job}: {errors[-3000:]}"
    return json.loads(output.split("result ")[-1])


def cluster():
    """Sharded rows, feature columns and a premade model, in a chief and two workers."""
    import flights_linear
    tasks = [("chief", 0), ("worker", 0), ("worker", 1)]
    steps = "--train_steps=300"
    with tempfile.TemporaryDirectory() as folder:
        flights = Flights(folder)
        with Servers({"chief": 1, "worker": 2, "ps": 1}) as servers:
            config = {"cluster": servers.addresses, "environment": "google"}
            running = [begin(flights, {**config, "task": {"type": job, "index": index}}, f"--model_dir={folder}/tenon",
                             steps, "--wide") for job, index in tasks]
            found = [end(task, process) for task, process in zip(tasks, running)][0]
            assert found["master"] == servers.target("chief"), found
        wanted = flights_linear.main(flights.flags(f"--model_dir={folder}/tensorflow", steps, "--wide"))
        for name in ("tenon", "tensorflow"):
            rows, _ = coefficients(os.path.join(folder, name))
            assert len(levels_of(rows, "flight")) == 1000 and levels_of(rows, "month") == MONTHS, rows
    for name, difference in (("average_loss", .03), ("accuracy", .03), ("auc", .04)):
        assert abs(found[name] - wanted[name]) < difference, f"{name}: {found}, TensorFlow's {wanted}"
    assert found["average_loss"] < .54 and found["global_step"] >= 300, found


def inspect(*arguments):
    run = subprocess.run([TENON, "inspect", *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def coefficients(path):
    """The rows of the CSV, and what is said beside it."""
    output, errors = inspect(path, "--coefficients", "--output=-")
    return list(csv.DictReader(output.splitlines())), errors


def levels_of(found, column):
    return [row["level"] for row in found if row["column"] == column]


def check_values(found, estimator, scope="linear/linear_model"):
    """All weights are those that the estimator has under that name and row."""
    import numpy as np
    for column in {row["column"] for row in found}:
        name = f"{scope}/bias_weights" if column == "(bias)" else f"{scope}/{column}/weights"
        wanted = np.ravel(estimator.get_variable_value(name))
        rows = [row for row in found if row["column"] == column]
        assert [float(row["weight"]) for row in rows] == [float(f"{v:.9g}") for v in wanted] or \
            np.array_equal(np.array([row["weight"] for row in rows], np.float32), wanted), column
        width = 1 + max(int(row.get("output", 0)) for row in rows)
        assert [int(row["row"]) * width + int(row.get("output", 0)) for row in rows] == list(range(len(wanted))), column


def logit(found, row, scales):
    """The model of the rows' names, by hand; None for a level that has no weight of its own."""
    weights = {(c["column"], c["level"]): float(c["weight"]) for c in found}
    total = weights["(bias)", ""]
    for name, (mean, deviation) in scales.items():
        total += weights[name, ""] * (float(row[name]) - mean) / deviation
    hour = float(row["hour"])
    bucket = sum(hour >= boundary for boundary in (6, 9, 12, 15, 18, 21))
    for column, level in (("month", row["month"]), ("dow", row["dow"]), ("carrier", row["carrier"]), ("dest", row["dest"]),
                          ("origin_indicator", row["origin"]), ("hour_bucketized", HOURS[bucket])):
        total += weights[column, level]
    return total


def names():
    """Every level's name, in checkpoints of variables in parts, and in a SavedModel. The predictions follow from the
    names alone."""
    import flights_linear
    import tensorflow.compat.v1 as tf
    column = tf.feature_column
    with tempfile.TemporaryDirectory() as folder:
        flights = Flights(folder)
        exact = flights_linear.feature_columns(flights.vocabulary, True)[:-2]
        hashed = flights_linear.feature_columns(flights.vocabulary, True)[-2:]
        (carrier,) = [c for c in exact if c.name == "carrier"]
        weighted = column.weighted_categorical_column(carrier, "pressure")
        for parts, columns in ((3, exact), (2, exact + hashed + [weighted])):
            estimator = tf.estimator.LinearClassifier(
                columns, model_dir=os.path.join(folder, f"in_{parts}"), optimizer=tf.train.FtrlOptimizer(.2),
                partitioner=tf.fixed_size_partitioner(parts),
                config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=1000))
            estimator.train(lambda: flights_linear.read(flights.pattern, 64), max_steps=100)
            found, errors = coefficients(estimator.model_dir)
            check_values(found, estimator)
            assert f"Names of dest are from '{flights.vocabulary}'." in errors, errors
            assert levels_of(found, "month") == MONTHS
            assert levels_of(found, "dow") == [str(i) for i in range(7)]
            assert levels_of(found, "carrier") == flights_linear.CARRIERS + ["out of vocabulary"]
            assert levels_of(found, "origin_indicator") == flights_linear.ORIGINS
            assert levels_of(found, "hour_bucketized") == HOURS
            assert levels_of(found, "dest") == flights.dests + [f"out of vocabulary {i} of 2" for i in range(2)]
            assert coefficients(estimator.latest_checkpoint() + ".meta")[0] == found
            if columns is not exact:
                continue
            predicted = estimator.predict(lambda: flights_linear.read(flights.pattern, 64), yield_single_examples=False)
            logits = next(iter(predicted))["logits"][:, 0]
            rows = flights.rows[::2][:len(logits)]
            assert len(logits) == 64
            for row, wanted in zip(rows, logits):
                by_hand = logit(found, row, flights_linear.SCALES)
                assert abs(by_hand - wanted) < 1e-4, f"{row}: {by_hand}, TensorFlow's {wanted}"
        assert levels_of(found, "flight") == [f"bucket {i} of 1,000" for i in range(1000)]
        assert levels_of(found, "carrier_X_origin") == [f"bucket {i} of 100" for i in range(100)]
        assert levels_of(found, "carrier_weighted_by_pressure") == levels_of(found, "carrier")
        with tf.Graph().as_default():
            features = {name: tf.placeholder({str: tf.string, int: tf.int64, float: tf.float32}[type(default[0])], [None])
                        for name, default in flights_linear.COLUMNS.items() if name != "late"}
            saved = estimator.export_saved_model(
                os.path.join(folder, "saved"), tf.estimator.export.build_raw_serving_input_receiver_fn(features))
        os.remove(flights.vocabulary)  # the assets have it
        again, errors = coefficients(saved.decode())
        assert again == found and "assets/dest.txt" in errors, errors
        unnamed, errors = coefficients(estimator.model_dir)
        assert "Rows of dest have no names: there is no vocabulary" in errors, errors
        assert levels_of(unnamed, "dest") == [f"row {i}" for i in range(len(flights.dests) + 2)]
        assert [c for c in unnamed if c["column"] != "dest"] == [c for c in found if c["column"] != "dest"]


def other_models():
    """Deep and wide, several classes, a regression; without a graph rows have numbers."""
    import flights_linear
    import tensorflow.compat.v1 as tf
    column = tf.feature_column
    carrier = column.categorical_column_with_vocabulary_list("carrier", flights_linear.CARRIERS, default_value=2)
    humid = column.numeric_column("humid", normalizer_fn=lambda x: x / 50)
    buckets = column.bucketized_column(humid, [1.])
    columns = [carrier, humid, buckets]
    ftrl = tf.train.FtrlOptimizer(.2)
    with tempfile.TemporaryDirectory() as folder:
        flights = Flights(folder)
        models = {
            "wide_deep": lambda place: tf.estimator.DNNLinearCombinedClassifier(
                place, linear_feature_columns=columns, linear_optimizer=ftrl, dnn_hidden_units=[4],
                dnn_feature_columns=[column.embedding_column(carrier, 2), humid]),
            "classes": lambda place: tf.estimator.LinearClassifier(columns, place, n_classes=3, optimizer=ftrl),
            "regressor": lambda place: tf.estimator.LinearRegressor(columns, place, optimizer=ftrl)}
        for name, make in models.items():
            estimator = make(os.path.join(folder, name))
            estimator.train(lambda: flights_linear.read(flights.pattern, 64).map(
                lambda features, label: (features, tf.cast(label, tf.int64))), max_steps=20)
            found, errors = coefficients(estimator.model_dir)
            check_values(found, estimator)
            assert not errors, errors
            carriers = [c + " or out of vocabulary" if c == "AS" else c for c in flights_linear.CARRIERS]
            assert levels_of(found, "carrier")[::3 if name == "classes" else 1] == carriers
            assert levels_of(found, "humid_bucketized")[0].startswith("< 1 of what 'linear/")
            assert len(found) == (1 + 16 + 1 + 2) * (3 if name == "classes" else 1), len(found)
            listing, _ = inspect(estimator.model_dir)
            assert "\n(bias)" in listing and "in 1 data file\n\nColumn" in listing, listing
        os.remove(estimator.latest_checkpoint() + ".meta")
        assert coefficients(estimator.model_dir)[0] == found  # by graph.pbtxt
        os.remove(os.path.join(estimator.model_dir, "graph.pbtxt"))
        found, errors = coefficients(estimator.model_dir)
        assert "Rows have no names: there is no graph '" in errors, errors
        assert levels_of(found, "carrier") == [f"row {i}" for i in range(16)]
        shutil.rmtree(estimator.model_dir)


CASES = [("cluster", cluster), ("names", names), ("other_models", other_models)]


if __name__ == "__main__":
    main_with_tensorflow(lambda: report(CASES))
