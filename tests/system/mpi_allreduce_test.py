#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training by allreduce over MPI, under the mpirun of Open MPI and of MPICH: as one process on all the data, and ended
by a signal, a death, a rank that hangs, different models and wrong flags."""
import contextlib
import os
import re
import shutil
import signal
import sys
import time

from allreduce_test import EndlessTraining, as_one_process, results, training
from launchers_test import MPICH, OPEN_MPI
from tenon_process import BINARY, TENON, in_a_folder, main, processes_with, run

# Ranks of MPICH have the same ports in every job, and others run meanwhile.
PORTS = ["--first_port", 30500]
BY_MPI = ["--collectives", "mpi", *PORTS]


def ranks_of(folder):
    """{rank: process} of those that an mpirun has started with this folder on their command lines."""
    found = {}
    for process, variables in processes_with(folder).items():
        for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            if name in variables:
                found[int(variables[name])] = process
    return found


def wait_until_gone(folder, seconds):
    deadline = time.monotonic() + seconds
    while ranks_of(folder):
        assert time.monotonic() < deadline, ranks_of(folder)
        time.sleep(0.05)


class Scenes:
    def __init__(self, launch):
        self.launch = launch

    def as_one_process(self, folder):
        as_one_process(folder, *BY_MPI, launch=self.launch, numbers=(2, 3))

    def a_signal(self, folder):
        """To one rank, and to the mpirun."""
        for to_one in (True, False):
            endless = EndlessTraining(folder, 2, *BY_MPI, launch=self.launch)
            with endless as mpirun:
                receiver = ranks_of(folder)[1] if to_one else mpirun.process.pid
                os.kill(receiver, signal.SIGTERM)
                code = mpirun.finish(60)
            text = mpirun.text()
            wait_until_gone(folder, 20)
            if to_one:
                assert code == 143, text
                steps = [step for _, step in results(text)]
                assert len(steps) == 2 and steps[0] == steps[1], text
                assert f"model.ckpt-{steps[0]}.index" in os.listdir(endless.checkpoints), text

    def a_death(self, folder):
        for victim in (0, 2):
            with EndlessTraining(folder, 3, *BY_MPI, launch=self.launch) as mpirun:
                os.kill(ranks_of(folder)[victim], signal.SIGKILL)
                begin = time.monotonic()
                assert mpirun.finish(60) != 0, mpirun.text()
                assert time.monotonic() - begin < 40, mpirun.text()  # ranks give up after a minute
            wait_until_gone(folder, 20)

    def one_that_hangs(self, folder):
        with EndlessTraining(folder, 3, *BY_MPI, "--rank_limit", 5, launch=self.launch) as mpirun:
            victim = ranks_of(folder)[2]
            os.kill(victim, signal.SIGSTOP)
            begin = time.monotonic()
            mpirun.wait_for("rank 2 did not come within 5000 ms")
            assert time.monotonic() - begin < 40, mpirun.text()
            # An mpirun may have killed it by now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
            assert mpirun.finish(60) != 0, mpirun.text()
        wait_until_gone(folder, 20)

    def different_programs(self, folder):
        flags = ["--max_steps", 100, *BY_MPI]
        done = run(*self.launch, 1, *training(folder, *flags), ":", "-np", 1, *training(folder, *flags, "--model", "classic"))
        assert done.returncode != 0 and "the ranks do not do the same" in done.stdout + done.stderr, done

    def wrong_uses(self, folder):
        flags, begin = ["--max_steps", 100], time.monotonic()
        done = run(*self.launch, 1, *training(folder, *flags, *BY_MPI), ":", "-np", 1,
                   *training(folder, *flags, *PORTS, "--collectives", "gloo"))
        assert done.returncode != 0, done
        said = re.findall("rank 1 wants collectives by gloo, and rank 0 by (?:openmpi|mpich): all ranks take the same",
                          done.stdout + done.stderr)
        assert len(said) == 2 and time.monotonic() - begin < 50, done  # a minute is what a rank waits for others


def without_mpirun(folder):
    done = run(TENON, "launch", "--allreduce", "--workers", 2, "--", *training(folder, *BY_MPI))
    assert done.returncode == 1 and "collectives by MPI are between processes that an mpirun has started" in done.stdout, done
    done = run(*training(folder, *BY_MPI))
    assert done.returncode == 2 and "--collectives is one of --allreduce" in done.stderr, done
    done = run(*training(folder, "--collectives", "nccl"))
    assert done.returncode == 2 and "--collectives" in done.stderr, done


if __name__ == "__main__":
    cases = [("without mpirun", in_a_folder(without_mpirun))]
    for name, plugin, launch in (("Open MPI", "openmpi", OPEN_MPI), ("MPICH", "mpich", MPICH)):
        if not shutil.which(launch[0]) or not os.path.exists(os.path.join(BINARY, f"libtenon_{plugin}.so")):
            print(f"skipped: {name}: no {launch[0]}, or no libtenon_{plugin}.so")
            continue
        scenes = Scenes(launch)
        for case in (scenes.as_one_process, scenes.a_signal, scenes.a_death, scenes.one_that_hangs, scenes.different_programs,
                     scenes.wrong_uses):
            cases.append((f"{name}, {case.__name__.replace('_', ' ')}", in_a_folder(case)))
    sys.exit(main(cases))
