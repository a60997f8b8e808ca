#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the shards that examples/tables_allreduce.cc trains on into FOLDER, which it makes:

    FOLDER/shard_000/descriptors.tsv   ID x0 ... x19
    FOLDER/shard_000/targets.tsv       ID target, in another order, with IDs that no descriptors have

Rows are of two classes of equal weight. Their descriptors are normal, with one covariance and different means, and
so the logarithm of the likelihood ratio is a weighted sum of them. No score has a greater expected AUC than that sum,
whose AUC is exact by the normal distribution; it is printed with what the sum reaches on the rows that were drawn.
"""
import argparse
import math
import os
import random

DESCRIPTORS, INFORMATIVE = 20, 8
COMMON = 0.5  # the weight of what all descriptors of a row have in common


def difference(j):
    """That of the means of descriptor j, in deviations of what it does not have in common with the others."""
    return 0 if j >= INFORMATIVE else 0.5 * (1 + j % 2) * (1 if j % 3 else -1)


def likelihood_weights():
    """The inverse of the covariance, I + COMMON^2 for each pair, times the difference of the means."""
    differences = [difference(j) for j in range(DESCRIPTORS)]
    common = COMMON**2 * sum(differences) / (1 + COMMON**2 * DESCRIPTORS)
    return [d - common for d in differences]


def best_auc():
    """Of all scores: that of the likelihood ratio."""
    squared = sum(w * difference(j) for j, w in enumerate(likelihood_weights()))
    return (1 + math.erf(math.sqrt(squared) / 2)) / 2


def unit(j):
    """The size of a deviation of descriptor j, and its zero: descriptors are of very different sizes."""
    return 10.0**(j % 7 - 3), 40.0 * (j % 5 - 2)


def draw_row(draw):
    """A target, descriptors, and the logarithm of the likelihood ratio but for a constant."""
    target = draw.randrange(2)
    common = COMMON * draw.gauss(0, 1)
    values = [difference(j) * (target - 0.5) + common + draw.gauss(0, 1) for j in range(DESCRIPTORS)]
    return target, values, sum(w * v for w, v in zip(likelihood_weights(), values))


def area_under_curve(scored):
    """Of (target, score): by the sum of the ranks of those with target 1 (scores differ)."""
    order = sorted(scored, key=lambda pair: pair[1])
    ranks = [rank for rank, (target, _) in enumerate(order, 1) if target]
    ones = len(ranks)
    return (sum(ranks) - ones * (ones + 1) / 2) / (ones * (len(order) - ones))


def write_table(path, names, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in [names, *rows]:
            file.write("\t".join(row) + "\n")


def write_shard(folder, shard, rows, draw):
    """What was drawn for each row: its target and the logarithm of its likelihood ratio."""
    os.makedirs(folder)
    descriptors, targets, scored = [], [], []
    for row in range(rows):
        target, values, ratio = draw_row(draw)
        name = f"s{shard}-{row}"
        descriptors.append([name] + [f"{unit(j)[1] + unit(j)[0] * v:.9g}" for j, v in enumerate(values)])
        targets.append([name, str(target)])
        scored.append((target, ratio))
    targets.append([f"s{shard}-none", "1"])
    draw.shuffle(targets)
    write_table(os.path.join(folder, "descriptors.tsv"), ["ID"] + [f"x{j}" for j in range(DESCRIPTORS)], descriptors)
    write_table(os.path.join(folder, "targets.tsv"), ["ID", "target"], targets)
    return scored


def write_shards(folder, shards, rows, seed):
    """The AUC of the likelihood ratio on the rows, which are dealt to the shards."""
    draw, scored = random.Random(seed), []
    for shard in range(shards):
        count = rows // shards + (shard < rows % shards)
        scored += write_shard(os.path.join(folder, f"shard_{shard:03d}"), shard, count, draw)
    return area_under_curve(scored)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--rows", type=int, default=20000, help="of all shards together")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    if flags.shards < 1 or flags.rows < max(flags.shards, 10):
        parser.error("wanted at least one shard, a row in each, and 10 rows")
    on_rows = write_shards(flags.folder, flags.shards, flags.rows, flags.seed)
    print(f"the greatest AUC: {best_auc():.5f} expected, {on_rows:.5f} on these rows")


if __name__ == "__main__":
    main()
