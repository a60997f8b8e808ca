#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fit of linear_peers.py by a Python package, which is told by KEY=VALUE words as linear_peer_fits.R is, with:
    peer     glum, sklearn, sklearn_lbfgs, statsmodels, vw or spark
    numbers, categories, response   columns, by commas
    ridge    the factor of the sum of squares that is added to the deviance, of all but the intercept, where numbers
             have the standard deviation 1
"""
import os
import sys
import tempfile
import time

LINES = []


def say(*words):
    LINES.append("\t".join(repr(float(w)) if isinstance(w, float) else str(w) for w in words))


class Timed:
    """The seconds of a part, as a line."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.begin = time.perf_counter()

    def __exit__(self, *_):
        say("seconds", self.name, time.perf_counter() - self.begin)


class Task:
    def __init__(self, words):
        self.given = dict(word.split("=", 1) for word in words)
        self.numbers, self.categories = self.list_of("numbers"), self.list_of("categories")
        self.factors = set(self.list_of("factors"))
        self.ridge = float(self.given.get("ridge") or 0)

    def list_of(self, name):
        return [word for word in self.given.get(name, "").split(",") if word]

    def __getitem__(self, name):
        return self.given.get(name, "")

    def name_of(self, column, level):
        return f"C({column}){level}" if column in self.factors else f"{column}{level}"


def log_loss(labels, probability):
    import numpy as np

    return float(-np.log(np.clip(np.where(labels == 1, probability, 1 - probability), 1e-300, 1)).mean())


class Tables:
    """The files as matrices: the numbers, then all levels but the first of each category."""

    def __init__(self, task, dense=False):
        import pandas as pd

        self.task = task
        with Timed("read"):
            self.train = pd.read_csv(task["train"])
        with Timed("encode"):
            self.levels = {c: sorted(self.train[c].unique()) for c in task.categories}
            self.names = task.numbers + [task.name_of(c, level) for c in task.categories
                                         for level in self.levels[c][1:]]
            self.scales = [float(self.train[n].std(ddof=0)) if task.ridge else 1.0 for n in task.numbers]
            self.x = self.matrix(self.train, dense)
            self.y = self.train[task["response"]].to_numpy(dtype=float)
        self.dense = dense

    def matrix(self, table, dense):
        import numpy as np
        import scipy.sparse as sp

        numbers = table[self.task.numbers].to_numpy(dtype=float) / self.scales
        parts = []
        for column in self.task.categories:
            places = {level: i - 1 for i, level in enumerate(self.levels[column])}
            codes = table[column].map(places).fillna(-1).to_numpy(dtype=int)  # the first, or unknown: no column
            rows = np.flatnonzero(codes >= 0)
            parts.append(sp.csr_matrix((np.ones(len(rows)), (rows, codes[rows])),
                                       shape=(len(table), len(places) - 1)))
        matrix = sp.hstack([sp.csr_matrix(numbers)] + parts, format="csr")
        return matrix.toarray() if dense else matrix

    def test(self):
        import pandas as pd

        table = pd.read_csv(self.task["test"])
        return self.matrix(table, self.dense), table[self.task["response"]].to_numpy()


def report(tables, intercept, slopes, errors=None):
    """Coefficients, in the units of the data, and deviance and held-out loss of a logistic model."""
    import numpy as np

    task = tables.task

    def deviance_of(x, y):
        eta = x @ slopes + intercept
        return 2 * (np.logaddexp(0, eta) - y * eta).sum()

    deviance = deviance_of(tables.x, tables.y)
    say("deviance", float(deviance))
    if task.ridge:
        say("objective", float(deviance + task.ridge * (slopes @ slopes)))
    units = np.concatenate([tables.scales, np.ones(len(slopes) - len(tables.scales))])
    say("coef", "(Intercept)", float(intercept), float(errors[0]) if errors is not None else "NA")
    for j, name in enumerate(tables.names):
        say("coef", name, float(slopes[j] / units[j]), float(errors[j + 1] / units[j]) if errors is not None else "NA")
    if task["test"]:
        x, y = tables.test()
        say("log_loss", float(deviance_of(x, y) / 2 / len(y)))


def fit_glum(task):
    import glum

    tables = Tables(task)
    n = len(tables.y)
    model = glum.GeneralizedLinearRegressor(
        family="binomial", alpha=task.ridge / n if task.ridge else 0, l1_ratio=0, gradient_tol=1e-8, max_iter=200,
        drop_first=False)
    with Timed("fit"):
        model.fit(tables.x, tables.y)
    errors = None
    if not task.ridge:
        with Timed("errors"):
            errors = model.std_errors(tables.x, tables.y, robust=False, expected_information=True, dispersion=1.0)
    report(tables, model.intercept_, model.coef_, errors)


def fit_sklearn(task, solver="newton-cholesky"):
    from sklearn.linear_model import LogisticRegression

    tables = Tables(task)
    penalty = 1 / task.ridge if task.ridge else float("inf")
    model = LogisticRegression(C=penalty, solver=solver, tol=1e-8 if solver != "lbfgs" else 1e-4, max_iter=2000)
    with Timed("fit"):
        model.fit(tables.x, tables.y)
    say("iterations", int(model.n_iter_[0]))
    report(tables, model.intercept_[0], model.coef_[0])


def fit_statsmodels(task):
    import numpy as np
    import statsmodels.api as sm

    tables = Tables(task, dense=True)
    with Timed("fit"):
        x = np.column_stack([np.ones(len(tables.y)), tables.x])
        result = sm.GLM(tables.y, x, family=sm.families.Binomial()).fit(tol=1e-10)
        errors = result.bse
    report(tables, result.params[0], result.params[1:], errors)


def write_vw(task, source, path):
    """The table in VW's text."""
    import csv

    with open(source, encoding="utf-8", newline="") as file, open(path, "w", encoding="utf-8") as out:
        for row in csv.DictReader(file):
            numbers = " ".join(f"{n}:{row[n]}" for n in task.numbers)
            factors = " ".join(f"{c}={row[c]}" for c in task.categories)
            out.write(f"{'1' if row[task['response']] == '1' else '-1'} |a {numbers} {factors}\n")


def run_vw(*arguments):
    import subprocess

    subprocess.run([sys.executable, "-m", "vowpalwabbit", *arguments, "--quiet"], check=True, timeout=600)


def fit_vw(task):
    """One pass; its time has no conversion of the files, which it cannot read."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        train, test, model, said = (os.path.join(folder, n) for n in ("train", "test", "model", "predictions"))
        write_vw(task, task["train"], train)
        write_vw(task, task["test"], test)
        with Timed("fit"):
            run_vw("-d", train, "-f", model, "--loss_function", "logistic", "-b", "18", "--passes", "1")
        run_vw("-d", test, "-t", "-i", model, "-p", said, "--link", "logistic", "--loss_function", "logistic")
        labels = np.array([line.startswith("1") for line in open(test, encoding="utf-8")])
        say("log_loss", log_loss(labels, np.loadtxt(said)))


def fit_spark(task):
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
    from pyspark.ml.regression import GeneralizedLinearRegression
    from pyspark.ml.classification import LogisticRegression
    from pyspark.sql import SparkSession

    cores = len(os.sched_getaffinity(0))
    spark = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with Timed("read"):
        table = spark.read.csv(task["train"], header=True, inferSchema=True)
    indexed = [f"{c}_i" for c in task.categories]
    stages = [StringIndexer(inputCols=task.categories, outputCols=indexed, stringOrderType="alphabetDesc"),
              OneHotEncoder(inputCols=indexed, outputCols=[f"{c}_v" for c in task.categories]),
              VectorAssembler(inputCols=task.numbers, outputCol="numbers"),
              StandardScaler(inputCol="numbers", outputCol="scaled"),
              VectorAssembler(inputCols=["scaled"] + [f"{c}_v" for c in task.categories], outputCol="features")]
    if task.ridge:
        fit = LogisticRegression(labelCol=task["response"], regParam=task.ridge / table.count(), standardization=False,
                                 tol=1e-9, maxIter=500)
    else:
        fit = GeneralizedLinearRegression(labelCol=task["response"], family="binomial", tol=1e-10, maxIter=50)
    with Timed("fit"):
        model = Pipeline(stages=stages + [fit]).fit(table).stages[-1]
    if not task.ridge:
        say("deviance", float(model.summary.deviance))
    spark.stop()


FITS = {
    "glum": fit_glum,
    "sklearn": fit_sklearn,
    "sklearn_lbfgs": lambda task: fit_sklearn(task, "lbfgs"),
    "statsmodels": fit_statsmodels,
    "vw": fit_vw,
    "spark": fit_spark,
}


def main():
    if "--help" in sys.argv or len(sys.argv) < 2:
        print("usage: linear_peer_fits.py KEY=VALUE...\n\n" + __doc__)
        return 0
    task = Task(sys.argv[1:])
    FITS[task["peer"]](task)
    with open(task["out"], "w", encoding="utf-8") as out:
        out.write("\n".join(LINES) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
