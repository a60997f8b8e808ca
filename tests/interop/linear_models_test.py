#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SavedModels of `tenon train linear`: TensorFlow gives from raw columns what `tenon predict` gives."""
import csv
import math
import os
import subprocess
import sys
import tempfile

from tensorflow_environment import TENON, main_with_tensorflow

DATA = os.path.join(os.environ.get("TENON_SOURCE_DIR", "."), "tests", "data", "glm")
TABLE = os.path.join(DATA, "predictions.csv")
# The arguments of a fit.
MODELS = [
    ["y ~ x * f + z + C(g)", "--family", "binomial"],
    ["late ~ x + f:C(g) + log(z)", "--family", "binomial", "--link", "probit"],
    ["y ~ x + hash(g, 3)", "--family", "binomial", "--link", "cloglog"],
    ["cbind(hits, misses) ~ x + f + cut(z, 0, 0.5, 1, 20)", "--family", "binomial"],
    ["count ~ x + f + offset(log(trials))", "--family", "poisson"],
    ["level ~ big * x + I(x^2) + sqrt(z) - x"],
]


def tenon(*arguments):
    done = subprocess.run([TENON, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr}")
    return done.stdout


def column(rows, name, dtype, tf):
    texts = [row[name] for row in rows]
    if dtype == tf.string:
        return tf.constant(texts)
    return tf.constant([math.nan if text in ("", "NA") else float(text) for text in texts], dtype)


def main():
    import tensorflow as tf
    with open(TABLE, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            tenon("train", "linear", model[0], os.path.join(DATA, "models.csv"), *model[1:],
                  "--model_dir", folder, "--quiet")
            lines = csv.DictReader(tenon("predict", folder, TABLE, "--keep", "id").splitlines())
            wanted = [line["prediction"] for line in lines]
            loaded = tf.saved_model.load(os.path.join(folder, "saved_model"))
            call = loaded.signatures["serving_default"]
            inputs = {name: column(rows, name, spec.dtype, tf)
                      for name, spec in call.structured_input_signature[1].items()}
            found = call(**inputs)["predictions"].numpy()
            assert len(found) == len(wanted) == len(rows)
            gaps = 0
            for row, (a, b) in enumerate(zip(found, wanted)):
                gaps += b == ""
                same = math.isnan(a) if b == "" else abs(a - float(b)) <= 1e-6 * (1 + abs(a))
                assert same, (model, row, a, b)
            assert 0 < gaps < 30, (model, gaps)
            print(f"{model[0]}: {len(rows)} rows, {gaps} without prediction, from {sorted(inputs)}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main_with_tensorflow(main)
