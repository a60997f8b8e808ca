#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the steps of two ranks take beside their computations and their sums, which take turns.

Usage: share/bench/allreduce_steps.py [--build FOLDER] [--data FOLDER] [--rounds N] [--model NAME ...]. Each rank has a core of
its own. Prints medians over the rounds: the milliseconds of a step of one process on one core; of one of two processes that know
nothing of each other, on a core each; of a sum of the model's gradients, as allreduce.py measures it; of a step of two ranks,
and how many times as long that takes as a step of such two processes and a sum; and how many times as many images two ranks
see as one process.
"""
import argparse
import os
import re
import statistics
import subprocess

from allreduce import by_tenon

# The steps that are measured, and the bytes of the gradients.
MODELS = {"mlp": (4000, 437544), "conv": (300, 13098536)}


def milliseconds(*commands):
    """Of a step, where the commands run at the same time."""
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    text = "".join([process.communicate()[0] for process in processes])
    rates = [float(rate) for rate in re.findall(r"steps per second: ([\d.]+)", text)]
    return 1000 / statistics.mean(rates)


def sum_of(library, build, size):
    """The milliseconds of a sum of so many bytes, after those of allreduce.py's size next to it."""
    at, microseconds, _ = min(by_tenon(library, build, 2), key=lambda row: abs(row[0] - size))
    return microseconds / 1000 * size / at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--data", default="share/mnist")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", nargs="+", default=list(MODELS))
    flags = parser.parse_args()
    tenon = os.path.join(flags.build, "tenon")
    for model in flags.model:
        steps, size = MODELS[model]
        train = [tenon, "train", "mnist", "--data", flags.data, "--model", model, "--max_steps", str(steps)]
        one = ["taskset", "-c", "0", *train]
        launches = {
            "gloo": [tenon, "launch", "--allreduce", "--workers", "2", "--cpus_per_task", "1", "--", *train],
            "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "core", "-np", "2", *train],
            "mpich": ["mpirun.mpich", "-bind-to", "core", "-np", "2", *train]}
        alone, beside = [], []
        sums, ranks = {name: [] for name in launches}, {name: [] for name in launches}
        for _ in range(flags.rounds):
            alone.append(milliseconds(one))
            beside.append(milliseconds(one, ["taskset", "-c", "1", *train]))
            for name, launch in launches.items():
                sums[name].append(sum_of(name, flags.build, size))
                ranks[name].append(milliseconds(launch))
        first, second = statistics.median(alone), statistics.median(beside)
        print(f"{model}: {first:.3f} ms alone, {second:.3f} beside another one, {2 * first / second:.2f} times the images")
        for name in launches:
            whole, addition = statistics.median(ranks[name]), statistics.median(sums[name])
            print(f"  {name}: a sum {addition:.3f} ms, a step {whole:.3f} ms, {whole / (second + addition):.2f} of both, "
                  f"{2 * first / whole:.2f} times the images", flush=True)


if __name__ == "__main__":
    main()
