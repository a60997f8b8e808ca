#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples char_lstm and word2vec have the losses of their twins in TensorFlow, which begin with
the same values and are given the same batches."""
import os
import re
import subprocess
import sys
import tempfile

from tensorflow_environment import BUILD, main_with_tensorflow

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "system"))

# Rounding alone: the losses have six digits.
EARLY = 1e-4
# Training makes differences of rounding grow. A measured run is within 1e-5; other batches change
# the last losses by several per cent.
LATE = 1e-2


def example(name, text, steps):
    """What it prints."""
    run = subprocess.run([os.path.join(BUILD, "example_" + name), "--text", text,
                          "--steps", str(steps)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{name}: {run.stderr}")
    return run.stdout


def numbers(pattern, printed):
    return [float(number) for number in re.findall(pattern, printed)]


def far(what, found, wanted, limit):
    if len(found) == len(wanted) and all(abs(f - w) <= limit * abs(w)
                                         for f, w in zip(found, wanted)):
        return 0
    print(f"{what}: found {found}, wanted {wanted}")
    return 1


def char_lstm(text, losses):
    failures = 0
    for steps in (1, 5, 20):
        found = numbers(r"final loss: (\S+)", example("char_lstm", text, steps))
        failures += far(f"char_lstm, step {steps}", found, [losses[steps - 1]], EARLY)
    printed = example("char_lstm", text, len(losses))
    logged = numbers(r"loss = .*?([0-9.e+-]+) \(step", printed)
    failures += far("char_lstm, each 100th step", logged, losses[::100], LATE)
    return failures + far("char_lstm, the last step", numbers(r"final loss: (\S+)", printed),
                          losses[-1:], LATE)


def word2vec(np, text, losses):
    failures = 0
    for steps, limit in ((10, EARLY), (20, EARLY), (len(losses), LATE)):
        means = np.reshape(losses[:steps], [10, -1]).astype(float).mean(axis=1)
        found = numbers(r"mean loss (\S+)", example("word2vec", text, steps))
        failures += far(f"word2vec, {steps} steps", found, list(means), limit)
    return failures


def main():
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    import example_twins
    from grammar_text import grammar_text
    text = grammar_text(200000)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        failures = char_lstm(path, example_twins.char_lstm(tf, np, text, 300))
        failures += word2vec(np, path, example_twins.word2vec(tf, np, text, 3000))
    return 1 if failures else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
