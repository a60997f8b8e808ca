#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random CSV files, a JSON object a line, and the rows that Python's csv module reads from each.

Usage: make_csv_cases.py COUNT SEED > csv_cases.jsonl

`rows` are the records with as many fields as the first one, without it; `rejected` counts the others. Where the strict
reader finds a mistake, both are null: there the table's reader goes on, with at least one reject. Lines end with LF or
CR LF; there is no CR alone, which ends a record in Python and is a character like others in a table.
"""
import csv
import io
import json
import random
import sys


def random_field(chance, delimiter):
    kind = chance.random()
    if kind < .35:  # plain; a quote behind the first character is a character like others
        text = "".join(chance.choice("ab 1.é\"") for _ in range(chance.randrange(5)))
        return text.lstrip('"')
    if kind < .45:
        return repr(round(chance.uniform(-1e3, 1e3), chance.randrange(6)))
    body = "".join(chance.choice(["a", "b", delimiter, "\n", "\r\n", '""', " ", "ü"])
                   for _ in range(chance.randrange(6)))
    if kind < .97:
        return f'"{body}"'
    return chance.choice([f'"{body}"x', f'"{body}', f'"{body}" '])  # mistakes


def random_file(chance):
    delimiter = chance.choice(",,,\t;|")
    columns = chance.randrange(1, 5)
    lines = [delimiter.join(f"c{i}" for i in range(columns))]
    for _ in range(chance.randrange(8)):
        if chance.random() < .1:
            lines.append("")
            continue
        found = columns if chance.random() < .9 else chance.randrange(1, 6)
        lines.append(delimiter.join(random_field(chance, delimiter) for _ in range(found)))
    text = "".join(line + chance.choice(["\n", "\n", "\r\n"]) for line in lines)
    if chance.random() < .3:
        text = text.rstrip("\r\n")
    return delimiter, text


def case(chance):
    delimiter, text = random_file(chance)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return {"text": text, "delimiter": delimiter, "rows": None, "rejected": None}
    good = [row for row in rows[1:] if len(row) == len(rows[0])]
    return {"text": text, "delimiter": delimiter, "rows": good, "rejected": len(rows) - 1 - len(good)}


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    for _ in range(count):
        print(json.dumps(case(chance), ensure_ascii=False))


if __name__ == "__main__":
    main()
