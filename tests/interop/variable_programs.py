# SPDX-License-Identifier: Apache-2.0
"""The programs of ref_variables_test.py, which read variables beside updates: how they are written.

Each is a function of Places that builds a graph and gives what is fetched. `@program(...)` says
of which kind it is: "memory" and "update" are programs whose nodes are all in one memory, "task"
those that name a parameter server and a worker, "elsewhere" those of them whose answer depends on the
task of the session, "apart" those that need different memories there. A program to which TensorFlow itself gives several
answers, as its threads run, names those that are right (`races`, and `races_elsewhere` for sessions
whose target has no variables): TensorFlow, run a few times, need not give each of them.
"""
import tensorflow.compat.v1 as tf

PROGRAMS = {}


class Program:
    def __init__(self, build, kind, races, races_elsewhere, runs, warm_up):
        self.build, self.kind, self.races = build, kind, races
        self.races_elsewhere = races_elsewhere  # where the session's target has no variables
        self.runs = runs  # at most so many, where a run leaves something behind
        self.warm_up = warm_up  # runs before the one that counts


def program(kind, name=None, races=(), races_elsewhere=(), runs=None, warm_up=0):
    """Adds a function to PROGRAMS, under its own name by default."""
    def add(build):
        PROGRAMS[name or build.__name__] = Program(build, kind, [repr(r) for r in races],
                                           [repr(r) for r in races_elsewhere], runs, warm_up)
        return build
    return add


class Places:
    """Where the nodes of a program go."""

    def __init__(self, ps=None, ps_tasks=0, worker=None, workers=0, first_worker=0, needs_gpu=False):
        """Devices are what `ps` and `worker` say, followed by a number; None leaves all where the
        placer puts it."""
        self.needs_gpu = needs_gpu
        self._ps = [f"{ps}{i}" for i in range(ps_tasks)] or [None]
        self._workers = [f"{worker}{i}" for i in range(first_worker, workers)] or [None]

    def ps_name(self, i=0):
        return self._ps[i % len(self._ps)]

    def worker_name(self, i=0):
        return self._workers[i % len(self._workers)]

    def ps(self, i=0):
        return tf.device(self.ps_name(i))

    def worker(self, i=0):
        return tf.device(self.worker_name(i))

    def setter(self, worker=0):
        """As scripts place: variables on the parameter servers in turn, the rest on the worker."""
        placed = []

        def choose(op):
            if op.type not in ("Variable", "VariableV2", "VarHandleOp"):
                return self.worker_name(worker)
            placed.append(op)
            return self.ps_name(len(placed) - 1)
        return tf.device(choose if self._ps[0] else None)


def after(node, build):
    """What `build` builds, to run after `node`."""
    with tf.control_dependencies([node]):
        return build()
