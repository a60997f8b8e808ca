#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon predict`: the command's files, streams, flags and mistakes; train/glm_prediction_test compares the numbers with R's."""
import csv
import json
import os
import subprocess
import sys

from tenon_process import SOURCE, TENON, in_a_folder, main, run

DATA = os.path.join(SOURCE, "tests", "data", "glm")
TABLE = os.path.join(DATA, "predictions.csv")


def tenon(*arguments, code=0):
    done = run(TENON, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def fit(folder):
    model = os.path.join(folder, "model")
    return model, tenon("train", "linear", "late ~ x * f + C(g)", os.path.join(DATA, "models.csv"), "--family", "binomial",
                        "--eval", TABLE, "--model_dir", model).stdout


@in_a_folder
def files_and_streams(folder):
    model, printed = fit(folder)
    assert "warning  evaluation: 2 unseen levels of f (first: d); 1 unseen level of g (77)" in printed, printed
    assert "\nevaluation: 15 rows without a prediction" in printed, printed
    with open(os.path.join(model, "metrics.json"), encoding="utf-8") as file:
        metrics = json.load(file)
    assert metrics["evaluation"]["rows"] == 135 and metrics["training"]["rows"] == 576, metrics
    with open(os.path.join(model, "model.json"), encoding="utf-8") as file:
        assert json.load(file)["version"] == 1
    pictures = {"roc.svg", "calibration.svg", "coefficients.svg"}
    assert pictures <= set(os.listdir(model)), os.listdir(model)
    output = os.path.join(folder, "p.csv")
    done = tenon("predict", model, TABLE, "--keep", "id,f", "--keep", "note", "--output", output, "--se")
    assert done.stdout == "", done.stdout
    assert done.stderr.startswith("150 rows; 15 without prediction: 2 unseen levels of f (first: d, line 8); "), done.stderr
    with open(output, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "f", "note", "prediction", "se"]
    assert [row["id"] for row in rows] == [str(1001 + i) for i in range(150)]
    assert rows[3]["note"] == 'row 4, "quoted"' and (rows[6]["prediction"], rows[6]["se"]) == ("", "")
    assert sum(row["prediction"] == "" for row in rows) == 15
    with open(TABLE, "rb") as file:
        piped = subprocess.run([TENON, "predict", model, "-", "--quiet"], stdin=file, capture_output=True, check=True)
    lines = piped.stdout.decode().splitlines()
    assert lines[1:] == [row["prediction"] or '""' for row in rows] and piped.stderr == b""
    classes = tenon("predict", model, TABLE, "--type", "class", "--threshold", "0.4").stdout.splitlines()[1:]
    assert classes == ['""' if row["prediction"] == "" else "yes" if float(row["prediction"]) >= 0.4 else "no"
                       for row in rows]


@in_a_folder
def mistakes(folder):
    model, _ = fit(folder)
    output = os.path.join(folder, "p.csv")
    bad = os.path.join(folder, "bad.csv")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("g,x,f\n1,0.5,a\n2,warm,b\n")
    error = tenon("predict", model, bad, "--output", output, code=1).stderr
    assert "bad.csv:3: column 2 (x): 'warm' is not a number, which the model wants" in error, error
    assert sorted(os.listdir(folder)) == ["bad.csv", "model"], "no half a file is left"
    error = tenon("predict", model, bad, "--type", "class", "--se", code=2).stderr
    assert "--se is not for --type class" in error, error
    error = tenon("predict", folder, bad, code=1).stderr
    assert "model.json" in error, error
    error = tenon("predict", model, TABLE, "--keep", "Id", code=1).stderr
    assert "there is no column 'Id'; did you mean 'id'?" in error, error
    os.remove(os.path.join(model, "covariance.npz"))
    error = tenon("predict", model, TABLE, "--se", code=1).stderr
    assert "has no standard errors" in error, error


if __name__ == "__main__":
    sys.exit(main([("files and streams", files_and_streams), ("mistakes", mistakes)]))
