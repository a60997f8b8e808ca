#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's collective ops among devices and tasks: programs of TensorFlow's clients give on Tenon's
servers what they give on TensorFlow's; so do trainings by MultiWorkerMirroredStrategy, whose workers have a
client each. What fails is an error on all, and the group works again afterwards. Tasks of both kinds cannot
be in a group, which is an error, too. Runs itself again under the TensorFlow environment (TENON_TF_VENV)."""
import sys
import threading
import time

from tensorflow_environment import Servers, main_with_tensorflow

WORKERS, CPUS = 2, 2
MEMBERS = WORKERS * CPUS


def programs(tf, ops, raw):
    """By name: what member i builds, on its device."""
    x = lambda i, dtype="float32": tf.constant([1 + i, 2, -3 * i], dtype)
    rows = lambda i: tf.constant([[10. * i + j, j * j] for j in range(MEMBERS)])
    # To TensorFlow an instance is of the same dtype and kind for ever.
    reductions = [(merge, final, dtype) for merge, final in (("Add", "Id"), ("Add", "Div"), ("Mul", "Id"),
                                                             ("Max", "Id"), ("Min", "Id"))
                  for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64")]

    def reduction(key, merge, final, dtype):
        return lambda i: ops.all_reduce_v2(x(i, dtype), MEMBERS, 1, key, merge, final)

    def broadcast(key, data, source):
        def build(i):
            if i == source:
                return ops.broadcast_send_v2(data, MEMBERS, 1, key)
            return ops.broadcast_recv_v2(data.shape, data.dtype, MEMBERS, 1, key)
        return build

    def many(i):
        """In another order on each device, which is as it comes."""
        keys = range(100, 150) if i % 2 else range(149, 99, -1)
        return tf.add_n([ops.all_reduce_v2(x(i) * float(k), MEMBERS, 1, k, "Add", "Id") for k in keys])

    def variable(i):
        if i != 1:
            return ops.broadcast_recv_v2([2], tf.float32, MEMBERS, 1, 22)
        v = tf.get_variable("v", initializer=[1., 2.], use_resource=False)
        sent = ops.broadcast_send_v2(tf.identity(tf.assign(v, [1., 2.])), MEMBERS, 1, 22)
        kept = sent * 1.
        with tf.control_dependencies([sent]):
            changed = tf.assign_add(v, [10., 10.])
        with tf.control_dependencies([changed]):
            return tf.identity(kept)

    def chain(i):
        first = ops.all_reduce(x(i), MEMBERS, 1, 20, "Add", "Id")
        with tf.control_dependencies([first]):
            return ops.all_gather_v2(first * (i + 1.), MEMBERS, 1, 21)

    return {
        "first version": lambda i: ops.all_reduce(x(i), MEMBERS, 1, 1, "Add", "Id"),
        "first version, mean": lambda i: ops.all_reduce(x(i), MEMBERS, 1, 2, "Add", "Div"),
        "first version, gather": lambda i: ops.all_gather(rows(i), MEMBERS, 1, 3),
        "first version, broadcast": lambda i: (
            ops.broadcast_send(x(7), [3], tf.float32, MEMBERS, 1, 4) if i == 1 else
            ops.broadcast_recv([3], tf.float32, MEMBERS, 1, 4)),
        **{str(r): reduction(1000 + n, *r) for n, r in enumerate(reductions)},
        "gather": lambda i: ops.all_gather_v2(rows(i), MEMBERS, 1, 5),
        "broadcast": broadcast(6, tf.constant([[1, 2], [3, 4]], tf.int64), 2),
        "broadcast of truths": broadcast(7, tf.constant([True, False, True]), 0),
        "large broadcast": broadcast(8, tf.range(100000.), 3),
        "large sum": lambda i: ops.all_reduce_v2(tf.range(200000.) * (i + 1.), MEMBERS, 1, 9, "Add", "Id"),
        "a variable that changes afterwards": variable,
        "none": lambda i: ops.all_reduce_v2(tf.zeros([0, 2]), MEMBERS, 1, 10, "Add", "Id"),
        "many": many,
        "chain": chain,
        "assigned": lambda i: tf.stack(raw.collective_assign_group_v2([[0, 2], [3, 1]], i, 50)),
    }


def run_program(tf, target, config, build, members=MEMBERS, steps=2, timeout=60000):
    """What each member has in the last of some steps."""
    with tf.Graph().as_default():
        outputs = []
        for i in range(members):
            with tf.device(f"/job:worker/task:{i // CPUS}/device:CPU:{i % CPUS}"):
                outputs.append(tf.cast(build(i), "float64"))
        with tf.Session(target, config=config) as session:
            for _ in range(steps):
                values = session.run(outputs, options=tf.RunOptions(timeout_in_ms=timeout))
            return values


def error_of(tf, *args, **kwargs):
    try:
        return f"no error: {run_program(tf, *args, **kwargs)}"
    except tf.errors.OpError as e:
        return type(e).__name__ + ": " + e.message


def same_programs(tf, np, ops, raw, ours, theirs, config):
    with tf.Graph().as_default():
        names = list(programs(tf, ops, raw))
    for name in names:
        build = lambda i, name=name: programs(tf, ops, raw)[name](i)
        found, wanted = (run_program(tf, s.target("worker"), config, build) for s in (ours, theirs))
        for f, w in zip(found, wanted):
            np.testing.assert_array_equal(f, w, err_msg=name)


def ours_alone(tf, np, ops, raw, target, config):
    """What TensorFlow has no implementation of for CPUs: the truth is what the ops' documentation says."""
    rows = np.arange(MEMBERS * MEMBERS * 2 * 3, dtype="float64").reshape(MEMBERS, MEMBERS * 2, 3)
    dealt = run_program(tf, target, config,
                        lambda i: raw.collective_all_to_all_v2(rows[i], MEMBERS, 1, 1, []))
    for i in range(MEMBERS):
        np.testing.assert_array_equal(dealt[i], rows[:, 2 * i:2 * i + 2].reshape(-1, 3))
    scattered = run_program(tf, target, config, lambda i: raw.collective_reduce_scatter_v2(
        rows[i], MEMBERS, 1, 2, [], merge_op="Add", final_op="Div"))
    for i in range(MEMBERS):
        np.testing.assert_array_equal(scattered[i], rows.mean(0)[2 * i:2 * i + 2])

    def third(i):
        communicator = raw.collective_initialize_communicator(9, i, MEMBERS)
        none = tf.zeros([0, 0], tf.int32)
        first = raw.collective_reduce_v3(rows[i], communicator, none, reduction="Max")
        with tf.control_dependencies([first]):
            return raw.collective_reduce_v3(first - rows[i], communicator, none, reduction="Add")

    for value in run_program(tf, target, config, third):
        np.testing.assert_array_equal(value, (rows.max(0) - rows).sum(0))


def failures(tf, ops, servers, config):
    """Each is an error of all members within its limit, and the group works again."""
    target = servers.target("worker")
    x = lambda i: tf.constant([1. + i])
    good = lambda i: ops.all_reduce_v2(x(i), MEMBERS, 1, 1, "Add", "Id")
    receive = lambda: ops.broadcast_recv_v2([1], tf.float32, MEMBERS, 1, 1)
    cases = {
        "do not do the same": lambda i: ops.all_reduce_v2(tf.zeros([2 + i // 2]), MEMBERS, 1, 1, "Add", "Id"),
        "do not do the same ": lambda i: ops.all_reduce_v2(x(i), MEMBERS, 1, 1, "Max" if i == 3 else "Add", "Id"),
        "as one of ": lambda i: ops.all_reduce_v2(x(i), MEMBERS + (i > 1), 1, 1, "Add", "Id"),
        "has two sources": lambda i: receive() if i % 2 else ops.broadcast_send_v2(x(i), MEMBERS, 1, 1),
        "none is the source": lambda i: receive(),
        "twice at once": lambda i: good(i) + good(i),
    }
    for text, build in cases.items():
        found = error_of(tf, target, config, build)
        # The step's own DeadlineExceededError is none of these. Whoever comes as one of another number makes the group anew.
        kinds = ("InvalidArgumentError", "AbortedError" if text == "as one of " else "InvalidArgumentError")
        assert text.strip() in found and found.startswith(kinds), (text, found)
        assert [v[0] for v in run_program(tf, target, config, good)] == [10.] * MEMBERS, text
    late = error_of(tf, target, config, lambda i: ops.all_reduce_v2(x(i), MEMBERS, 1, 1, "Add", "Id", timeout=1.),
                    members=3)
    assert "DeadlineExceededError" in late and "have come to instance 1 of group 1" in late or "task:1" in late, late
    assert [v[0] for v in run_program(tf, target, config, good)] == [10.] * MEMBERS


def strategy(tf, servers, steps=40):
    """Weights and losses of a training that has a client for each worker, as scripts of
    MultiWorkerMirroredStrategy are in TensorFlow 1."""
    import numpy as np
    ends = {}

    def client(task):
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(servers.addresses), task_type="worker", task_id=task,
            num_accelerators={"GPU": 0}, rpc_layer="grpc")
        random = np.random.RandomState(task)
        xs = random.randn(64, 2).astype("float32")
        ys = xs @ np.array([1., -2.], "float32") + task
        with tf.Graph().as_default():
            multi = tf.distribute.experimental.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
            with multi.scope():
                # Only the chief's values count.
                w = tf.get_variable("w", [2], initializer=tf.constant_initializer([task + 1., 3.]))
                b = tf.get_variable("b", [], initializer=tf.constant_initializer(task))
                optimizer = tf.train.MomentumOptimizer(.05, .9)

                def replica():
                    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(xs, w) + b - ys))
                    with tf.control_dependencies([optimizer.minimize(loss)]):
                        return tf.identity(loss)

                loss = multi.reduce(tf.distribute.ReduceOp.MEAN, multi.extended.call_for_each_replica(replica),
                                    axis=None)
                config = multi.update_config_proto(tf.ConfigProto())
                with tf.Session(servers.target("worker", task), config=config) as session:
                    session.run(tf.global_variables_initializer())
                    losses = [session.run(loss) for _ in range(steps)]
                    ends[task] = losses, session.run([w.read_value(), b.read_value()])

    clients = [threading.Thread(target=client, args=[t], daemon=True) for t in range(WORKERS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join(240)
    assert len(ends) == WORKERS, ends
    return ends


def trains(tf, np, ours, theirs):
    found, wanted = strategy(tf, ours), strategy(tf, theirs)
    for task in range(WORKERS):
        np.testing.assert_allclose(found[task][0], wanted[task][0], rtol=1e-5)
        for f, w in zip(found[task][1], wanted[task][1]):
            np.testing.assert_allclose(f, w, rtol=1e-5)
    np.testing.assert_array_equal(found[0][0], found[1][0])


def death(tf, ops, config):
    """A worker's server that dies ends the step of the other worker's client at once; started again, both
    train on."""
    build = lambda i: ops.all_reduce_v2(tf.constant([1. + i]), MEMBERS, 1, 1, "Add", "Id")

    def client(servers, task, ends):
        with tf.Graph().as_default():
            outputs = []
            for cpu in range(CPUS):
                with tf.device(f"/job:worker/task:{task}/device:CPU:{cpu}"):
                    outputs.append(build(CPUS * task + cpu))
            own = tf.ConfigProto()
            own.CopyFrom(config)
            own.device_filters.append(f"/job:worker/task:{task}")
            try:
                with tf.Session(servers.target("worker", task), config=own) as session:
                    for _ in range(20):
                        ends[task] = session.run(outputs, options=tf.RunOptions(timeout_in_ms=60000))[0][0]
            except tf.errors.OpError as e:
                ends[task] = e.message

    def both(servers):
        ends = {}
        other = threading.Thread(target=client, args=[servers, 0, ends])
        other.start()
        client(servers, 1, ends)
        other.join()
        assert ends == {0: 10., 1: 10.}, ends

    with Servers({"worker": WORKERS}, cpus=CPUS) as servers:
        both(servers)
        ends = {}
        waiting = threading.Thread(target=client, args=[servers, 0, ends])
        waiting.start()
        servers.await_status(lambda status: "1 step runs" in status, "worker")
        begin = time.time()
        servers.restart("worker", 1)
        waiting.join()
        assert time.time() - begin < 30 and "/job:worker/replica:0/task:1" in ends[0], ends
        both(servers)


def mixed(tf, ops, config):
    """Whoever leads the group says that its kinds differ."""
    build = lambda i: ops.all_reduce_v2(tf.constant([1. + i]), MEMBERS, 1, 1, "Add", "Id")
    for theirs in range(WORKERS):
        with Servers({"worker": WORKERS}, tensorflow=[("worker", theirs)], cpus=CPUS,
                     leader="/job:worker/replica:0/task:0") as servers:
            # A master of TensorFlow's: its workers know no groups in the steps of another one's.
            found = error_of(tf, servers.target("worker", theirs), config, build)
            assert "one of TensorFlow's" in found and "of the same kind" in found, (theirs, found)


def run_all():
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import collective_ops as ops
    from tensorflow.python.ops import gen_collective_ops as raw
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    leader = "/job:worker/replica:0/task:0"
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = leader
    tasks = [("worker", t) for t in range(WORKERS)]
    with Servers({"worker": WORKERS}, cpus=CPUS) as ours:
        with Servers({"worker": WORKERS}, tensorflow=tasks, cpus=CPUS, leader=leader) as theirs:
            same_programs(tf, np, ops, raw, ours, theirs, config)
        ours_alone(tf, np, ops, raw, ours.target("worker"), config)
        failures(tf, ops, ours, config)
    with Servers({"worker": WORKERS}) as ours:
        with Servers({"worker": WORKERS}, tensorflow=tasks, leader=leader) as theirs:
            trains(tf, np, ours, theirs)
    death(tf, ops, config)
    mixed(tf, ops, config)
    return 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
