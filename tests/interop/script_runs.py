# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of tests/interop/scripts on Tenon's servers and on TensorFlow's."""
import importlib
import os
import sys
import threading
import time
import traceback

from tensorflow_environment import free_addresses

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
sys.path.insert(0, SCRIPTS)


def run(script, argv):
    """What the script's main gives, in a graph of its own."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default():
        return importlib.import_module(script).main(argv)


class TensorFlowServers:
    """TensorFlow's own servers in this process, used as tensorflow_environment.Servers."""

    def __init__(self, jobs):
        import tensorflow.compat.v1 as tf
        self.addresses = {job: free_addresses(count) for job, count in jobs.items()}
        self.servers = [tf.train.Server(self.addresses, job_name=job, task_index=task)
                        for job, count in jobs.items() for task in range(count)]

    def target(self, job, task=0):
        return "grpc://" + self.addresses[job][task]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def run_workers(servers, script, argv, awaited=None, limit=100):
    """What each worker of the servers' cluster gives. All run `script` at the same time, or the others when
    the first one has made the file `awaited`."""
    hosts = [f"--{job}_hosts=" + ",".join(addresses) for job, addresses in servers.addresses.items()]
    importlib.import_module(script)  # not by several threads at once
    results, errors = {}, []

    def work(task):
        try:
            while awaited and task > 0 and not errors and not os.path.exists(awaited):
                time.sleep(.02)
            results[task] = run(script, hosts + [f"--task_index={task}"] + argv)
        except Exception:  # pylint: disable=broad-except
            errors.append(f"worker {task}: {traceback.format_exc()}")

    threads = [threading.Thread(target=work, args=[task], daemon=True)
               for task in range(len(servers.addresses["worker"]))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(limit)
    if errors or any(t.is_alive() for t in threads):
        raise AssertionError("\n".join(errors) or f"{script} did not end; results so far: {results}")
    return [results[task] for task in sorted(results)]


def report(cases):
    """Runs the (name, function) pairs, or those that the command line names; 1 if one fails."""
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    failed = 0
    for name, case in cases:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        try:
            case()
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"{name}: {type(e).__name__}: {str(e)[:3000]}", flush=True)
    return 1 if failed else 0
