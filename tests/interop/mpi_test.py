#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives by MPI, as Open MPI and MPICH run them: what all of them give, and how they end where ranks die, leave,
come late or do different things; where ranks greet each other by memory, and by messages as between hosts. With --large also
messages beyond 2 GiB, which take 10 GiB of memory."""
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
# pylint: disable=wrong-import-position
from tenon_process import BINARY, main, run

RANKS = os.path.join(BINARY, "collective_ranks")
MPIRUNS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"], "mpich": ["mpirun.mpich", "-np"]}
BY_MESSAGES = ["TENON_HOST_MEMORY=off"]
SKIPPED = 77
PATIENCE = 400  # seconds; ranks of MPI turn round while they wait, on cores that others want


class Scene:
    """A run of collective_ranks: the exit code, how each rank ended, and how long it took."""

    settings = ()

    def __init__(self, library, ranks, scene):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            self.done = run("env", *self.settings, *MPIRUNS[library], ranks, RANKS, library, folder, scene, timeout=PATIENCE)
            self.seconds = time.monotonic() - begin
            self.ends = {}
            for rank in range(ranks):
                path = os.path.join(folder, f"end.{rank}")
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        self.ends[rank] = file.read()

    def __str__(self):
        return f"{self.ends}, {self.seconds:.1f} s, code {self.done.returncode}\n{self.done.stdout}{self.done.stderr}"

    def expect(self, texts, seconds=45):
        """The ranks' ends have these texts, a tuple of them for each rank, and come before their limit of a minute."""
        assert self.done.returncode != 0 and self.seconds < seconds, str(self)
        for rank, parts in texts.items():
            for part in parts:
                assert part in self.ends.get(rank, ""), f"rank {rank} without '{part}': {self}"


def all_good(library, ranks, scene):
    done = Scene(library, ranks, scene)
    assert done.ends == {rank: "OK" for rank in range(ranks)} and done.done.returncode == 0, str(done)
    # MPI complains of what is left open at its end.
    assert not done.done.stderr, str(done)


def values(library):
    for ranks in (2, 3, 4):
        all_good(library, ranks, "values")


def three_values(library):
    all_good(library, 3, "values")


def one_without_memory(library):
    """A rank that shares no memory has all of them greet by messages."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [RANKS, library, folder, "values"]
        done = run(*MPIRUNS[library], 2, *ranks, ":", "-np", 1, "env", *BY_MESSAGES, *ranks,
                   timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr, done


def large(library):
    all_good(library, 2, "large")


def anew(library):
    all_good(library, 3, "anew")


def different(library):
    differs = "the ranks do not do the same"
    Scene(library, 3, "different").expect({
        0: (differs, "AllReduce 'x' of float[2]", "rank 1 in Broadcast 'x' of float[3]"),
        1: (differs, "rank 0 in AllReduce 'x' of float[2]"), 2: (differs,)})
    Scene(library, 2, "shape").expect({0: (differs, "rank 1 in AllReduce 'x' of float[200001]"), 1: (differs,)})


def late(library):
    scene = Scene(library, 3, "late")
    for rank in (0, 1):
        assert "rank 2 did not come within 1000 ms" in scene.ends[rank], str(scene)
    assert scene.done.returncode != 0 and "'loss'" in scene.ends[2], str(scene)


def leaves(library):
    scene = Scene(library, 4, "leaves")
    for rank in (0, 2, 3):
        assert "'second'" in scene.ends[rank] and "rank 1 has gone" in scene.ends[rank], str(scene)


def aborts(library):
    Scene(library, 3, "aborts").expect({
        0: ("row 7 has 3 fields",), 1: ("rank 0 has failed", "row 7 has 3 fields"), 2: ("rank 0 has failed",)})
    Scene(library, 2, "work").expect({0: ("the user has had enough",), 1: ("rank 0 has failed",)})


def fails_alone(library):
    """A rank that fails while the others are busy with other things ends the job, which waits for nobody."""
    scene = Scene(library, 3, "alone")
    assert scene.done.returncode != 0 and scene.seconds < 50, str(scene)


def held_up(library):
    """A rank that is held up at the end again and again is waited for by those that are done."""
    all_good(library, 4, "held")


def dies(library):
    scene = Scene(library, 3, "dies")
    assert scene.done.returncode != 0 and scene.seconds < 45, str(scene)


def wrong_numbers(library):
    Scene(library, 2, "swapped").expect({0: ("rank 1 of 2 is number 0 of the 2 processes of MPI",)})
    # The third one's number is right.
    Scene(library, 3, "swapped").expect({
        1: ("rank 0 of 3 is number 1 of the 3 processes of MPI",), 2: ("a rank has another number than mpirun has for it",)})
    Scene(library, 2, "absent").expect({0: ("rank 0 of 2 cannot join", "rank 1: it has not come within 1000 ms")})


def by_messages(scene):
    def run_scene(library):
        Scene.settings = BY_MESSAGES
        try:
            scene(library)
        finally:
            Scene.settings = ()
    return run_scene


def other_library(library):
    """The plugin of the other library finds itself alone, and says so."""
    other = {"openmpi": "mpich", "mpich": "openmpi"}[library]
    if not os.path.exists(os.path.join(BINARY, f"libtenon_{other}.so")):
        return
    with tempfile.TemporaryDirectory() as folder:
        done = run(*MPIRUNS[library], 2, RANKS, other, folder, "values")
        assert done.returncode != 0, done
        with open(os.path.join(folder, "end.0"), encoding="utf-8") as file:
            assert "of the 1 processes of MPI" in file.read(), done


if __name__ == "__main__":
    cases = []
    scenes = [(scene.__name__.replace("_", " "), scene) for scene in (
        values, one_without_memory, anew, different, late, leaves, aborts, fails_alone, held_up, dies, wrong_numbers,
        other_library)]
    scenes += [(f"{scene.__name__.replace('_', ' ')} by messages", by_messages(scene)) for scene in (three_values, anew, different, leaves, aborts)]
    for name, command in MPIRUNS.items():
        if not os.path.exists(os.path.join(BINARY, f"libtenon_{name}.so")) or not shutil.which(command[0]):
            print(f"skipped: {name}: no {command[0]}, or no libtenon_{name}.so")
            continue
        for title, scene in scenes + ([("large", large)] if "--large" in sys.argv else []):
            cases.append((f"{name}, {title}", lambda s=scene, n=name: s(n)))
    if not cases:
        print("skipped: neither Open MPI nor MPICH is there")
        sys.exit(SKIPPED)
    sys.exit(main(cases))
