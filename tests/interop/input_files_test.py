#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that an InputPipeline reads: each gives the rows that Python's csv module and TensorFlow
read of it. Runs itself again under the TensorFlow environment (TENON_TF_VENV).
"""
import csv
import gzip
import math
import os
import random
import subprocess
import sys
import tempfile

from tensorflow_environment import BUILD, main_with_tensorflow

TEXTS = ["", "plain", " blanks ", "a,b", 'say "so"', "two\nlines", "crlf\r\nwithin", "naïve 日本", '"', ",",
         "it's", "0x1f", "a;b\tc"]


def read(folder, kind, path, *columns):
    """What read_rows reads, as arrays by name."""
    import numpy as np
    output = os.path.join(folder, "rows.npz")
    subprocess.run([os.path.join(BUILD, "read_rows"), output, kind, path, *columns], check=True)
    with np.load(output) as arrays:
        return {name: arrays[name] for name in arrays.files}


def random_number(r):
    return r.choice([str(r.randrange(-10**6, 10**6)), repr(r.uniform(-1, 1)), repr(r.gauss(0, 1e10)),
                     "%.3e" % r.gauss(0, 1e-30), "%g" % r.uniform(-1e5, 1e5), "inf", "-inf", "nan", "1e-320",
                     ".5", "7.", "-0"])


def check_csv_module(folder, seed):
    """Files as csv.writer writes them, in some dialect, with texts of all kinds and numbers."""
    r = random.Random(seed)
    path = os.path.join(folder, "table.csv")
    rows = [(r.choice(TEXTS), random_number(r), str(r.randrange(-2**63, 2**63)), r.choice(TEXTS))
            for _ in range(r.choice([0, 1, 50, 3000]))]
    quoting = r.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    opened = gzip.open if r.random() < 0.3 else open
    encoding = r.choice(["utf-8", "utf-8-sig"])
    with opened(path, "wt", newline="", encoding=encoding) as file:
        writer = csv.writer(file, quoting=quoting, lineterminator=r.choice(["\n", "\r\n"]))
        writer.writerows([("first", "number", "whole", "last")] + rows)
    with opened(path, "rt", newline="", encoding=encoding) as file:
        expected = [row for row in csv.reader(file)][1:]
    found = read(folder, "csv", path, "last:string", "number:double", "first:string", "whole:int64")
    if not expected:
        assert not found, (seed, found)
        return
    assert [text.decode() for text in found["first"]] == [row[0] for row in expected], seed
    assert [text.decode() for text in found["last"]] == [row[3] for row in expected], seed
    assert found["whole"].tolist() == [int(row[2]) for row in expected], seed
    for number, row in zip(found["number"].tolist(), expected):
        wanted = float(row[1])
        assert number == wanted or math.isnan(number) and math.isnan(wanted), (seed, number, row)


def check_csv_dataset(tf, folder):
    """The floats of tf.data.experimental.CsvDataset."""
    import numpy as np
    r = random.Random(5)
    path = os.path.join(folder, "floats.csv")
    with open(path, "w") as file:
        file.write("a,b,c\n")
        for _ in range(2000):
            file.write("%r,%.4g,%d\n" % (r.gauss(0, 1e3), r.gauss(0, 1e-20), r.randrange(-9999, 9999)))
    dataset = tf.data.experimental.CsvDataset(path, [tf.float32, tf.float32, tf.int32], header=True)
    expected = list(dataset.as_numpy_iterator())
    found = read(folder, "csv", path, "a:float", "b:float", "c:int32")
    for i, name in enumerate("abc"):
        assert np.array_equal(found[name], np.array([row[i] for row in expected])), name


def check_text_and_records(tf, folder):
    path = os.path.join(folder, "lines.txt")
    with open(path, "wb") as file:
        file.write(b"one\r\n\ntwo \n\xff\xfe\nlast")
    expected = list(tf.data.TextLineDataset(path).as_numpy_iterator())
    assert read(folder, "text", path)["text"].tolist() == expected
    for compression in (None, "GZIP", "ZLIB"):
        path = os.path.join(folder, "records")
        with tf.io.TFRecordWriter(path, compression) as writer:
            for i in range(3000):
                writer.write(b"%d " % i * (i % 50) + b".")
        expected = list(tf.data.TFRecordDataset(path, compression or "").as_numpy_iterator())
        assert read(folder, "records", path)["records"].tolist() == expected, compression


def check_images(tf, folder):
    import numpy as np
    pictures = os.path.join(folder, "pictures")
    os.mkdir(pictures)
    expected = []
    for i in range(6):
        pixels = np.random.RandomState(i).randint(256, size=(40, 30, 3 if i % 3 else 1), dtype=np.uint8)
        png = i % 2 == 0
        encoded = tf.io.encode_png(pixels) if png else tf.io.encode_jpeg(pixels)
        with open(os.path.join(pictures, "%d.%s" % (i, "png" if png else "jpeg")), "wb") as file:
            file.write(encoded.numpy())
        decoded = tf.io.decode_png(encoded, 3) if png else tf.io.decode_jpeg(encoded, 3)
        expected.append(decoded.numpy())
    found = read(folder, "images", pictures)
    assert np.array_equal(found["images"], np.stack(expected))
    assert found["folders"].tolist() == [0] * 6


def main():
    import tensorflow as tf
    with tempfile.TemporaryDirectory() as folder:
        seed = os.environ.get("TENON_SEED")
        for n in [int(seed)] if seed else range(1, 41):
            check_csv_module(folder, n)
        check_csv_dataset(tf, folder)
        check_text_and_records(tf, folder)
        check_images(tf, folder)
    return 0


if __name__ == "__main__":
    main_with_tensorflow(main)
