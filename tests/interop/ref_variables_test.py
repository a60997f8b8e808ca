#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads of variables give what TensorFlow's give, beside updates and after them.

The programs of variable_*_programs.py (variable_programs.py), of which some are drawn, run on
TensorFlow's servers and on Tenon's, a few times each: an answer that TensorFlow always gives is Tenon's too, and of
several one of them. On one server, on one or two parameter servers with two workers, on clusters
that have servers of both kinds, and on one server with passes off, with two CPU devices and with the
simulated device, whose memory is its own.

    ref_variables_test.py [--runs N] [--draw COUNT] [--seed FIRST] [--only TOPOLOGY] [NAME...]
"""
import argparse
import importlib
import sys
import time

from tensorflow_environment import SIMULATED_DEVICE, Servers, main_with_tensorflow

BETWEEN = ("task", "elsewhere", "apart")
ALL = ("memory", "update", *BETWEEN)
PS, WORKERS = ("ps", 0), [("worker", 0), ("worker", 1)]
ONE, THREE, FOUR = {"worker": 1}, {"ps": 1, "worker": 2}, {"ps": 2, "worker": 2}


# Beside TensorFlow's answer, until it is mended: the counter is the host's, since its update has no kernel for
# the device, and on a busy machine the device may read it before the update.
KNOWN_RACES = {("simulated device", "count_up_to"): ["0"]}


class Topology:
    """Where programs run: of `kinds`, on the tasks of `jobs`, of which those of `tensorflow` are
    TensorFlow's; with `cpus` CPU devices a task; from a session at the first task of the job `target`."""

    def __init__(self, kinds, jobs, tensorflow=(), environment=None, cpus=1, target="worker",
                 ps=None, worker=None, first_worker=0, like=None):
        self.kinds, self.jobs, self.tensorflow, self.environment = kinds, jobs, tensorflow, environment
        self.cpus, self.target = cpus, target
        self.ps, self.worker, self.first_worker = ps, worker, first_worker
        self.like = like  # the topology whose answers are TensorFlow's here too, which has no such device

    def places(self, of_tensorflow=False):
        from variable_programs import Places
        if "ps" in self.jobs:
            return Places("/job:ps/task:", self.jobs["ps"], "/job:worker/task:", self.jobs["worker"])
        if self.ps is None:
            return Places(needs_gpu=bool(self.environment) and not of_tensorflow)
        return Places(self.ps, 1, self.worker, self.first_worker + 1, self.first_worker,
                      needs_gpu=bool(self.environment))


TOPOLOGIES = {
    "one server": Topology(ALL, ONE),
    "1 ps, 2 workers": Topology(ALL, THREE),
    "its ps as the target": Topology(BETWEEN, THREE, target="ps"),
    "2 ps, 2 workers": Topology(BETWEEN, FOUR),
    "TensorFlow's ps": Topology(BETWEEN, THREE, [PS]),
    "TensorFlow's workers": Topology(BETWEEN, THREE, WORKERS),
    "TensorFlow's other worker": Topology(BETWEEN, THREE, WORKERS[1:]),
    "passes off": Topology(ALL, ONE),
    "two CPU devices": Topology(BETWEEN, ONE, cpus=2, ps="/cpu:", worker="/cpu:", first_worker=1),
    # Its kernels copy what others hand on.
    "simulated device": Topology(("update", "task", "elsewhere"), ONE, environment=SIMULATED_DEVICE),
    "variables on it, work beside it": Topology(
        ("task", "apart"), ONE, environment=SIMULATED_DEVICE, ps="/gpu:", worker="/cpu:", like="1 ps, 2 workers"),
    "variables beside it, work on it": Topology(
        ("task", "apart"), ONE, environment=SIMULATED_DEVICE, ps="/cpu:", worker="/gpu:", like="1 ps, 2 workers"),
}
TIMEOUT_MS = 20000


def plain(value):
    import numpy as np
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.round(array.astype(float), 4) + 0.
    return array.tolist()


def answers(program, places, target, runs, config):
    """What a number of runs give, as texts; an error is an answer."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default():
        fetches = program.build(places)
        initialize = tf.global_variables_initializer()
        found = []
        with tf.Session(target, config=config) as session:
            if places.needs_gpu:
                assert any(d.device_type == "GPU" for d in session.list_devices())
            for _ in range(program.runs or runs):
                try:
                    session.run(initialize)
                    for _ in range(program.warm_up):
                        session.run(fetches)
                    found.append(repr(plain(session.run(fetches))))
                except tf.errors.OpError as e:
                    found.append(type(e).__name__)
        return found


def config_of(topology):
    import tensorflow.compat.v1 as tf
    from tensorflow.core.protobuf import rewriter_config_pb2
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS, isolate_session_state=True,
                            allow_soft_placement="it" in topology.split())
    if topology == "passes off":
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def wanted_answers(topology, names, runs, known):
    """Of TensorFlow's servers, by program; kept in `known`."""
    from variable_programs import PROGRAMS
    key = (*sorted(topology.jobs.items()), topology.cpus, topology.target)
    found = known.setdefault(key, {})
    missing = [name for name in names if name not in found]
    if missing:
        tasks = {(job, i) for job, count in topology.jobs.items() for i in range(count)}
        with Servers(topology.jobs, tensorflow=tasks, cpus=topology.cpus) as theirs:
            for name in missing:
                found[name] = answers(PROGRAMS[name], topology.places(of_tensorflow=True),
                                      theirs.target(topology.target), runs, config_of(""))
    return found


def compare(name, chosen, runs, known):
    from variable_programs import PROGRAMS
    topology = TOPOLOGIES[name]
    names = [n for n, p in PROGRAMS.items() if p.kind in topology.kinds and (not chosen or n in chosen)]
    wanted = wanted_answers(TOPOLOGIES[topology.like] if topology.like else topology, names, runs, known)
    failed = 0
    with Servers(topology.jobs, tensorflow=topology.tensorflow, environment=topology.environment,
                 cpus=topology.cpus) as ours:
        for program_name in names:
            program = PROGRAMS[program_name]
            got = answers(program, topology.places(), ours.target(topology.target), runs, config_of(name))
            right = set(wanted[program_name]) | set(program.races)
            right |= set(KNOWN_RACES.get((name, program_name), ()))
            if "ps" in topology.jobs and topology.target != "ps":
                right |= set(program.races_elsewhere)
            wrong = [g for g in got if g not in right or g == "DeadlineExceededError"]
            if wrong:
                failed += 1
                print(f"FAILED: {name}: {program_name}: {sorted(set(wrong))} in {len(wrong)} of "
                      f"{len(got)} runs, wanted {sorted(right)}", flush=True)
    return len(names), failed


def main():
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    tf.disable_resource_variables()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.ERROR)
    for kind in ("memory", "update", "task", "training"):
        importlib.import_module(f"variable_{kind}_programs")
    from variable_random_programs import draw_programs
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--draw", type=int, default=8, help="programs for one memory, and for several tasks")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--only", choices=TOPOLOGIES)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    draw_programs(range(arguments.seed, arguments.seed + arguments.draw))
    known = {}
    failures = 0
    for topology in [arguments.only] if arguments.only else TOPOLOGIES:
        begin = time.time()
        compared, failed = compare(topology, arguments.names, arguments.runs, known)
        failures += failed
        print(f"{topology}: {compared} programs, {failed} differ; {time.time() - begin:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
