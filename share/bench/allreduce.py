#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long sums over all ranks take, through Tenon and by the library alone, which take turns.

Usage: share/bench/allreduce.py [--build FOLDER] [--rounds N] [--ranks N ...] [--library NAME ...]. Wants the program
collective_ranks of a build with tests, and makes those of the libraries alone. Prints the medians over the rounds of each
round's median, in microseconds: by the library, by Communicator::Run, and what HorovodAllreduce adds to a step; and how
many times as long these take.
"""
import argparse
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MPIRUNS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"],
           "mpich": ["mpirun.mpich", "-np"]}


def numbers(text):
    return [[float(word) for word in line.split()] for line in text.splitlines() if line[:1].isdigit()]


def make(library, folder):
    program = os.path.join(folder, f"allreduce_by_{library}")
    if library == "gloo":
        command = ["c++", "-std=c++17", "-O3", "-march=native", os.path.join(HERE, "allreduce_by_gloo.cc"), "-lgloo",
                   "-pthread"]
    else:
        command = [f"mpicc.{library}", "-O3", "-march=native", os.path.join(HERE, "allreduce_by_mpi.c")]
    subprocess.run(command + ["-o", program], check=True)
    return program


def by_itself(library, program, ranks):
    """[[bytes, microseconds]]"""
    if library != "gloo":
        done = subprocess.run(MPIRUNS[library] + [str(ranks), program], check=True, stdout=subprocess.PIPE, text=True)
        return numbers(done.stdout)
    with tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen([program, folder, str(rank), str(ranks)], stdout=subprocess.PIPE, text=True)
                     for rank in range(ranks)]
        return numbers([process.communicate()[0] for process in processes][0])


def by_tenon(library, build, ranks):
    """[[bytes, microseconds of Run, of a step]]"""
    launch = MPIRUNS["mpich" if library == "gloo" else library]  # which for Gloo only says how many there are
    with tempfile.TemporaryDirectory() as folder:
        command = launch + [str(ranks), os.path.join(build, "collective_ranks"), library, folder, "times"]
        return numbers(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--library", nargs="+", default=["gloo", "openmpi", "mpich"])
    flags = parser.parse_args()
    print(f"{'':20} {'bytes':>10} {'library':>10} {'Run':>10} {'':>6} {'step':>10} {'':>6}   load")
    with tempfile.TemporaryDirectory() as folder:
        for library in flags.library:
            program = make(library, folder)
            for ranks in flags.ranks:
                theirs, ours = [], []
                for _ in range(flags.rounds):
                    theirs.append(by_itself(library, program, ranks))
                    ours.append(by_tenon(library, flags.build, ranks))
                for row, (size, _) in enumerate(theirs[0]):
                    alone = statistics.median(run[row][1] for run in theirs)
                    call = statistics.median(run[row][1] for run in ours)
                    step = statistics.median(run[row][2] for run in ours)
                    print(f"{library + ', ' + str(ranks) + ' ranks':20} {size:10.0f} {alone:10.2f} {call:10.2f} "
                          f"{call / alone:5.2f}x {step:10.1f} {step / alone:5.2f}x   {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
