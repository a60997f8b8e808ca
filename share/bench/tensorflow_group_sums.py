#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of TensorFlow's collective ops between two tasks: a client of TensorFlow's runs the same graph, a sum of
a variable of each task, on two of TensorFlow's servers and on two of Tenon's, in turn.

    ~/.cache/tenon/tf-2.15.1/bin/python share/bench/tensorflow_group_sums.py --tenon build/release/tenon

Prints the median microseconds of a step for each size, and the ratio."""
import argparse
import os
import socket
import statistics
import subprocess
import sys
import time

LEADER = "/job:worker/replica:0/task:0"
SERVER = """
import sys
import tensorflow as tf
config = tf.compat.v1.ConfigProto()
config.experimental.collective_group_leader = sys.argv[3]
server = tf.distribute.Server({"worker": sys.argv[1].split(",")}, job_name="worker", task_index=int(sys.argv[2]),
                              config=config)
print("listening", flush=True)
server.join()
"""


def free_addresses(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return addresses


def start(tenon, hosts):
    """The two servers; TensorFlow's without the path of `tenon`."""
    servers = []
    for task in range(2):
        command = [sys.executable, "-c", SERVER, ",".join(hosts), str(task), LEADER]
        if tenon:
            command = [tenon, "serve", "--worker_hosts", ",".join(hosts), "--job_name", "worker",
                       "--task_index", str(task)]
        servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    for server in servers:
        for line in server.stdout:
            if line.startswith("listening"):
                break
    return servers


def measure(tf, ops, tenon, elements, seconds):
    """Microseconds of a step."""
    hosts = free_addresses(2)
    servers = start(tenon, hosts)
    try:
        config = tf.ConfigProto()
        config.experimental.collective_group_leader = LEADER
        with tf.Graph().as_default():
            sums = []
            for task in range(2):
                with tf.device(f"/job:worker/task:{task}"):
                    v = tf.get_variable(f"v{task}", [elements], initializer=tf.ones_initializer())
                    sums.append(ops.all_reduce_v2(v, 2, 1, 1, "Add", "Id"))
            step = tf.group(*sums)
            with tf.Session("grpc://" + hosts[0], config=config) as session:
                session.run(tf.global_variables_initializer())
                found = session.run([s[0] for s in sums])
                assert found == [2., 2.], found
                run = session.make_callable(step)
                for _ in range(5):
                    run()
                times, end = [], time.monotonic() + seconds
                while time.monotonic() < end:
                    begin = time.monotonic()
                    run()
                    times.append(time.monotonic() - begin)
                return statistics.median(times) * 1e6
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="tenon", help="the program; default: that of the PATH")
    parser.add_argument("--elements", type=int, nargs="+", default=[1, 100_000, 3_250_000, 25_000_000],
                        help="floats of a sum; default: 1, 100000, 3250000 and 25000000")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement; default: 4")
    flags = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import collective_ops as ops
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(f"{'bytes':>12} {'TensorFlow':>12} {'Tenon':>12}")
    for elements in flags.elements:
        theirs, ours = [], []
        for _ in range(flags.rounds):
            theirs.append(measure(tf, ops, None, elements, flags.seconds))
            ours.append(measure(tf, ops, flags.tenon, elements, flags.seconds))
        a, b = statistics.median(theirs), statistics.median(ours)
        print(f"{elements * 4:12d} {a:12.0f} {b:12.0f} {a / b:6.2f}x   load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
