#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions of an unmodified TensorFlow client that ask for more than steps: partial runs, a state or a
cluster of their own, costs; and those that TensorFlow's servers do not survive.

What TensorFlow's own servers can do is done there too. Runs itself again under the TensorFlow
environment (TENON_TF_VENV).
"""
import subprocess
import sys
import time

from tensorflow_environment import PYTHON, Servers, end_with_parent, main_with_tensorflow

JOBS = {"ps": 1, "worker": 1}
BOTH = [(job, 0) for job in JOBS]


def expect(kind, call, *arguments, **named):
    try:
        found = call(*arguments, **named)
    except kind as e:
        return e.message
    raise AssertionError(f"no {kind.__name__} but {found}")


def partial_runs(tf, servers):
    """sess.partial_run over two tasks."""
    with tf.Graph().as_default():
        with tf.device("/job:worker"):
            x, y, z = (tf.placeholder(tf.float32, []) for _ in range(3))
            a = x + y
        with tf.device("/job:ps"):
            b = a * z
        with tf.Session(servers.target("worker")) as session:
            for i in range(3):
                handle = session.partial_run_setup([a, b], [x, y, z])
                assert session.partial_run(handle, a, {x: 1., y: 2. + i}) == 3. + i
                assert session.partial_run(handle, b, {z: 4.}) == 4. * (3. + i)
                expect(tf.errors.InvalidArgumentError, session.partial_run, handle, b)
            handle = session.partial_run_setup([a, b], [x, y, z])
            expect(tf.errors.InvalidArgumentError, session.partial_run, handle, a, {x: 1.})
            assert session.partial_run(handle, a, {x: 1., y: 1.}) == 2.
            other = session.partial_run_setup([a], [x, y])
            assert session.partial_run(other, a, {x: 5., y: 5.}) == 10.


def isolated_state(tf, servers):
    """Variables and queues of such a session are its own; those of the others go on."""
    def session(isolated):
        return tf.Session(servers.target("worker"), config=tf.ConfigProto(
            isolate_session_state=isolated))

    with tf.Graph().as_default(), tf.device("/job:ps"):
        ref = tf.get_variable("ref", [], initializer=tf.zeros_initializer(), use_resource=False)
        resource = tf.get_variable("resource", [], initializer=tf.zeros_initializer(), use_resource=True)
        queue = tf.FIFOQueue(9, tf.float32, shapes=[[]], shared_name="shared")
        put, size = queue.enqueue(1.), queue.size()
        add = [ref.assign_add(1.), resource.assign_add(1.)]
        init = tf.global_variables_initializer()
        values = [ref, resource, size]
        with session(False) as shared, session(True) as own, session(True) as other:
            for s in (shared, own):
                s.run(init)
                s.run([add, put])
            own.run([add, put])
            assert shared.run(values) == [1., 1., 1], shared.run(values)
            assert own.run(values) == [2., 2., 2], own.run(values)
            expect(tf.errors.FailedPreconditionError, other.run, ref)
            assert other.run(size) == 0
        with session(False) as later:
            assert later.run(values) == [1., 1., 1]


def own_clusters(tf, servers):
    """A session's cluster_def: the same servers by other names."""
    worker, ps = servers.addresses["worker"][0], servers.addresses["ps"][0]

    def config(cluster):
        return tf.ConfigProto(cluster_def=tf.train.ClusterSpec(cluster).as_cluster_def())

    def session(cluster):
        return tf.Session(servers.target("worker"), config=config(cluster))

    with tf.Graph().as_default():
        with tf.device("/job:store/task:7"):
            v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=False)
            add = v.assign_add([1., 2.])
        with tf.device("/job:main"):
            twice = tf.identity(v) * 2.
        cluster = {"main": {2: worker}, "store": {7: ps}}
        with session(cluster) as first, session(cluster) as second:
            assert sorted(d.name for d in first.list_devices()) == [
                "/job:main/replica:0/task:2/device:CPU:0", "/job:store/replica:0/task:7/device:CPU:0"]
            first.run(v.initializer)
            for i in range(3):
                first.run(add)
                assert list(first.run(twice)) == [2. * (2 + i), 2. * (3 + 2 * i)]
            expect(tf.errors.FailedPreconditionError, second.run, twice)  # it has a state of its own
        invalid = tf.errors.InvalidArgumentError
        with session({"main": {2: worker}}) as alone:
            expect(invalid, alone.run, twice)
        with session({"store": {7: ps}}) as without_master:
            expect(invalid, without_master.run, v.initializer)
        with session({"main": {2: worker, 3: worker}, "store": {7: ps}}) as twice_named:
            expect(invalid, twice_named.run, v.initializer)
    with tf.Graph().as_default(), tf.device("/job:worker"):
        one = tf.constant(1.) + 0.
        with tf.Session(servers.target("worker")) as usual:
            assert usual.run(one) == 1.


def metadata(tf, servers):
    """What RunOptions and GraphOptions ask to be told."""
    with tf.Graph().as_default():
        with tf.device("/job:ps"):
            x = tf.placeholder(tf.float32, [None], name="x")
        with tf.device("/job:worker"):
            y = tf.reduce_sum(tf.square(x, name="square"), name="y")
        config = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=2, build_cost_model_after=1))
        with tf.Session(servers.target("worker"), config=config) as session:
            with_costs = []
            for _ in range(5):
                told = tf.RunMetadata()
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True,
                                        report_tensor_allocations_upon_oom=True)
                assert session.run(y, {x: [3., 4.]}, options=options, run_metadata=told) == 25.
                assert len(told.partition_graphs) == 2 or len(told.partition_graphs) == 1
                stats = [n.node_name for d in told.step_stats.dev_stats for n in d.node_stats]
                assert "square" in stats and "y" in stats, stats
                names = {n.name for n in told.cost_graph.node}
                with_costs.append("square" in names)
            assert with_costs == [True, False, True, False, True], with_costs
            told = tf.RunMetadata()
            session.run(y, {x: [3., 4.]}, run_metadata=told)
            assert not told.step_stats.dev_stats and not told.partition_graphs


def refused_extension(tf, servers):
    """TensorFlow's client sends the refused nodes again; a session that never had them goes on."""
    with tf.Graph().as_default():
        good = tf.constant(1., name="good") + 1.
        with tf.Session(servers.target("worker")) as session:
            assert session.run(good) == 2.
            with tf.device("/job:nowhere"):
                bad = tf.constant(2., name="bad")
            message = expect(tf.errors.InvalidArgumentError, session.run, bad)
            assert "nowhere" in message, message
            bad.op._set_device("/job:worker")
            assert session.run(bad) == 2.
            assert session.run(good) == 2.


def reset_of_a_blocked_dequeue(tf, servers):
    """The step ends as cancelled, and the server lives."""
    import threading
    target = servers.target("worker")
    with tf.Graph().as_default(), tf.device("/job:ps"):
        take = tf.FIFOQueue(1, tf.float32, shapes=[[]]).dequeue()
        session, ended = tf.Session(target), []

        def wait():
            try:
                session.run(take)
            except tf.errors.OpError as e:
                ended.append(type(e))

        waiting = threading.Thread(target=wait)
        waiting.start()
        servers.await_status(lambda status: "1 step runs" in status, "worker")
        tf.Session.reset(target)
        waiting.join(timeout=60)
        assert ended in ([tf.errors.CancelledError], [tf.errors.AbortedError]), ended
        with tf.Session(target) as later:
            assert later.run(tf.constant(3.)) == 3.


CLIENT = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.device("/job:ps"):
    x = tf.placeholder(tf.float32, [])
    y = x * 2.
    take = tf.FIFOQueue(1, tf.float32, shapes=[[]]).dequeue()
session = tf.Session(sys.argv[1])
session.run(y, {x: 1.})
if sys.argv[2] == "partial":
    handle = session.partial_run_setup([y, take], [x])
    session.partial_run(handle, y, {x: 1.})
print("ready", flush=True)
session.run(take) if sys.argv[2] == "step" else sys.stdin.read()
"""


def killed_clients(tf):
    """A client that is killed leaves nothing: its step ends at once, its session when it has been idle."""
    del tf
    with Servers(JOBS, options=["--session_timeout", "5"]) as servers:
        for doing in ("step", "partial", "nothing"):
            client = subprocess.Popen([PYTHON, "-c", CLIENT, servers.target("worker"), doing],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      preexec_fn=end_with_parent)
            try:
                assert client.stdout.readline() == "ready\n"
                if doing == "step":
                    servers.await_status(lambda status: "1 step runs" in status, "worker")
                assert "\nsession " in servers.status("worker"), servers.status("worker")
            finally:
                client.kill()
                client.wait()
            deadline = time.time() + 90
            for job in JOBS:
                while "\nsession " in servers.status(job) or "steps: 0;" not in servers.status(job):
                    assert time.time() < deadline, (doing, servers.status(job))
                    time.sleep(.2)


def what_passes_did(tf, servers):
    """Partition graphs show products with one left out, unless the session's options keep them; nodes
    that a pass put in the place of others have their names and costs."""
    from tensorflow.core.protobuf import rewriter_config_pb2
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [1, 4, 4, 1])
        pool = tf.nn.max_pool(tf.square(x) * 1., 2, 2, "SAME", name="pool")
        grad, = tf.gradients(pool, x)
        for kept in (False, True):
            config = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=1))
            if kept:
                rewrites = config.graph_options.rewrite_options
                rewrites.arithmetic_optimization = rewrites.remapping = rewriter_config_pb2.RewriterConfig.OFF
            told = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
            with tf.Session(servers.target("worker"), config=config) as session:
                value = session.run(grad, {x: [[[[1.], [2.], [0.], [0.]]] * 4]}, options, told)
            assert value[0, 0, :, 0].tolist() == [0., 4., 0., 0.], value
            names = {n.name for g in told.partition_graphs for n in g.node}
            assert ("mul" in names) == kept, names
            stats = {n.node_name: n.timeline_label for d in told.step_stats.dev_stats for n in d.node_stats}
            assert ("_MaxPoolWithPlaces" in stats["pool"]) != kept, stats["pool"]
            costs = {n.name for n in told.cost_graph.node if n.output_info}
            assert {"pool", "gradients/pool_grad/MaxPoolGrad"} <= costs, costs


EVERYWHERE = [partial_runs, isolated_state, own_clusters, metadata]
OURS_ALONE = [what_passes_did, refused_extension, reset_of_a_blocked_dequeue]


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    names = sys.argv[1:]
    failed = 0

    def run(kind, case, *arguments):
        nonlocal failed
        if names and case.__name__ not in names:
            return
        try:
            case(tf, *arguments)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"{case.__name__} on {kind}: {type(e).__name__}: {str(e)[:2000]}")

    for kind in ("TensorFlow", "Tenon"):
        with Servers(JOBS, tensorflow=BOTH if kind == "TensorFlow" else ()) as servers:
            for case in EVERYWHERE + (OURS_ALONE if kind == "Tenon" else []):
                run(kind, case, servers)
    run("Tenon", killed_clients)
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
