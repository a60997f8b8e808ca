#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every op gives what TensorFlow's gives: values, dtypes, shapes, and which cases are errors.

Takes the ops from `tenon ops --json`, makes cases for each (op_cases.py, op_state.py) or finds it in a
small graph (op_programs.py), and runs them on TensorFlow and, through TensorFlow's client, on a Tenon
server. An op that no case reaches fails the test.

    op_conformance_test.py                   the families that have changed since all were compared
    op_conformance_test.py --all [--record]  all of them, which is then recorded (conformance_digests.py)
    op_conformance_test.py --simulated       all, on a server whose device is the simulated one
    op_conformance_test.py NAME...           these ops
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile

import conformance_digests
from tensorflow_environment import SIMULATED_DEVICE, TENON, Servers, main_with_tensorflow

MOST_PRINTED = 8


class Comparison:
    """Counts what was compared, and prints what differs."""

    def __init__(self):
        self.ops, self.cases, self.errors, self.failed = set(), 0, 0, 0
        self.excepted = collections.Counter()

    def add(self, op, cases, wanted, got):
        from op_comparison import Failure, difference
        from op_exceptions import ANY_ZERO_SIGN, TERMS, reason
        self.ops.add(op)
        printed = 0
        for case, w, g in zip(cases, wanted, got):
            if w is None or g is None:
                continue
            self.cases += 1
            self.errors += isinstance(w, Failure)
            text = difference(w, g, TERMS.get(op, 1e-2), op in ANY_ZERO_SIGN)
            if not text:
                continue
            why = reason(case, w)
            if why:
                self.excepted[why] += 1
                continue
            self.failed += 1
            printed += 1
            if printed <= MOST_PRINTED:
                print(f"FAILED: {case}: {text}", flush=True)
        if printed > MOST_PRINTED:
            print(f"        and {printed - MOST_PRINTED} more of {op}")

    def fail(self, text):
        self.failed += 1
        print(f"FAILED: {text}", flush=True)


def run_program(program, target, folder):
    """The result of each step, and the ops in the graph."""
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorflow.python.framework import errors_impl

    from op_comparison import Failure, session_config
    results = []
    with tf.Graph().as_default() as graph:
        steps = program(folder)
        with tf.Session(target, config=session_config()) as session:
            for fetches in steps:
                try:
                    values = session.run(fetches)
                    results.append([np.asarray(v) for v in values if v is not None])
                except errors_impl.OpError as e:
                    results.append(Failure(e.error_code, e.message))
        return results, {op.type for op in graph.get_operations()}


def compare_programs(comparison, target, wanted_ops):
    from op_comparison import difference
    from op_programs import PROGRAMS
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as ours:
            wanted, ops = run_program(program, "", theirs)
            if not ops & wanted_ops:
                continue
            got, _ = run_program(program, target, ours)
        comparison.ops |= ops & wanted_ops
        for i, (w, g) in enumerate(zip(wanted, got)):
            comparison.cases += 1
            text = difference(w, g)
            if text:
                comparison.fail(f"program {program.__name__} step {i}: {text}")


def compare_ops(comparison, target, listed):
    from op_cases import cases_of
    from op_comparison import run_tenon, run_tensorflow
    from op_hints import HINTS
    from op_programs import ONLY_IN_PROGRAMS
    from op_state import STATE_HINTS, run_with_state
    for op in listed:
        name = op["name"]
        if name in STATE_HINTS:
            cases = cases_of(op, STATE_HINTS)
            comparison.add(name, cases, *run_with_state(target, cases))
        elif name in HINTS or not (op["stateful"] or name in ONLY_IN_PROGRAMS):
            cases = cases_of(op, HINTS)
            wanted = run_tensorflow(cases)
            comparison.add(name, cases, wanted, run_tenon(target, cases, wanted))


def main():
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_control_flow_v2()
    from op_programs import ELSEWHERE
    listed = json.loads(subprocess.run([TENON, "ops", "--json"], check=True, capture_output=True,
                                       text=True).stdout)
    # TensorFlow does not know the ops of tables and linear models, nor Horovod's.
    listed = [op for op in listed if op["kernels"] and not op["name"].startswith(("Tenon", "Horovod"))]
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = set(arguments.names)
    if not (chosen or arguments.all or arguments.simulated):
        ops_of = conformance_digests.families()
        changed = conformance_digests.changed_families()
        chosen = set().union(*(ops_of[family] for family in changed))
        print(f"changed since all were compared: {', '.join(sorted(changed)) or 'nothing'}")
        if not chosen:
            return 0
    if chosen:
        listed = [op for op in listed if op["name"] in chosen]
    names = {op["name"] for op in listed}
    comparison = Comparison()
    environment = SIMULATED_DEVICE if arguments.simulated else None
    with Servers({"local": 1}, environment=environment) as servers:
        target = servers.target("local")
        compare_programs(comparison, target, names - set(ELSEWHERE))
        compare_ops(comparison, target,
                    [op for op in listed if op["name"] not in ELSEWHERE])
    for name in sorted(names - comparison.ops - set(ELSEWHERE)):
        comparison.fail(f"no case reaches {name}")
    for why, count in comparison.excepted.items():
        print(f"{count} cases may differ: {why}")
    print(f"compared {len(comparison.ops)} ops in {comparison.cases} cases with TensorFlow, "
          f"{comparison.errors} of them errors; {comparison.failed} differ")
    if arguments.all and arguments.record and not comparison.failed:
        conformance_digests.record()
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
