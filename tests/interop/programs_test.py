#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of an unmodified TensorFlow client: functions, functional control flow, queues, tables,
callables, a Keras model, synchronous replicas.

Each program runs on TensorFlow's own session and on Tenon servers, a parameter server and a worker, and
gives the same values. Runs itself again under the TensorFlow environment (TENON_TF_VENV).
"""
import threading

from tensorflow_environment import Servers, expect_error, main_with_tensorflow


def defun(tf):
    """A function with several results, called twice, and its gradient (SymbolicGradient)."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32)
    def mix(a, b):
        return a * tf.sin(b), a + b

    @function.Defun(tf.float32)
    def outer(x):
        left, right = mix(x, 2 * x)
        return tf.reduce_sum(left * right)

    x = tf.constant([1., 2., 3.])
    y = outer(x) + mix(x, x)[1][0]
    return [y, tf.gradients(y, x)[0]]


def defun_in_loops(tf):
    """A function in the body of a loop within a loop, and its gradient: SymbolicGradient in loops."""
    from tensorflow.python.framework import function
    from tensorflow.python.ops.while_v2 import while_loop
    n = tf.constant(3.)

    def powers(i, total):
        def times_n(c, v):
            @function.Defun(tf.float32, tf.float32)
            def inner(c, v):
                return c - 1., v * n

            c, v = inner(c, v)
            c.set_shape([])
            v.set_shape([])
            return c, v

        power = while_loop(lambda c, _: c > 0, times_n, [i, tf.constant(1.)], return_same_structure=False)
        return i - 1., total + power[1]

    total = while_loop(lambda i, _: i >= 0, powers, [tf.constant(5.), tf.constant(0.)],
                       return_same_structure=False)[1]
    return [total, tf.gradients(total, n)[0]]


def partitioned_calls(tf):
    """tf.function in a graph: variables, control dependencies, bodies on two tasks."""
    with tf.device("/job:ps"):
        v = tf.get_variable("v", [2], initializer=tf.constant_initializer([1., 2.]), use_resource=True)

    @tf.function
    def add(x):
        with tf.device("/job:worker"):
            twice = 2 * x
        v.assign_add(twice)
        with tf.device("/job:ps"):
            return v.read_value() * 10

    first = add(tf.constant([1., 1.]))
    with tf.control_dependencies([first]):
        second = add(first)
    return [second]


def control_flow(tf):
    """If, Case and While as newer TensorFlow builds them, nested."""
    p = tf.placeholder_with_default(True, [])
    i = tf.placeholder_with_default(2, [])
    x = tf.constant(3.)
    chosen = [tf.cond(q, lambda: x * 2, lambda: tf.cond(i > 1, lambda: -x, lambda: x))
              for q in (p, tf.logical_not(p))]
    case = [tf.switch_case(i + k, [lambda: x, lambda: x + 10, lambda: x + 20]) for k in (-2, -1, 0, 5)]
    total, steps = tf.while_loop(
        lambda s, n: s < 100.,
        lambda s, n: (tf.cond(tf.equal(n % 2, 0), lambda: s * 2, lambda: s + 1), n + 1),
        [x, 0])
    rows = tf.while_loop(
        lambda r, n: n < 3,
        lambda r, n: (tf.while_loop(lambda a, m: m < n, lambda a, m: (a + r, m + 1), [r, 0])[0], n + 1),
        [tf.ones([2]), 0])[0]
    return chosen + case + [total, steps, rows]


def stateful_branches(tf):
    """Only the branch that is taken assigns, in every iteration."""
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)

    def body(n):
        done = tf.cond(tf.equal(n % 3, 0), lambda: v.assign_add(1.), lambda: v.assign_add(100.))
        with tf.control_dependencies([done]):
            return n + 1

    loop = tf.while_loop(lambda n: n < 7, body, [0])
    with tf.control_dependencies([loop]):
        return [v.read_value()]


def input_queues(tf):
    """Batches of queue runners: every element comes, in order and shuffled."""
    values = tf.train.input_producer(tf.range(12), shuffle=False).dequeue()
    batch = tf.train.batch([values, tf.as_string(values)], batch_size=4, capacity=8)
    shuffled = tf.train.shuffle_batch([values], batch_size=4, capacity=20, min_after_dequeue=5)
    return [tf.shape(batch[0]), tf.shape(batch[1]), tf.shape(shuffled)]


def padded_queue(tf):
    queue = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], [[None], []])
    puts = [queue.enqueue([tf.range(n), str(n)]) for n in (3, 1, 2)]
    with tf.control_dependencies([puts[0]]):
        second = tf.identity(queue.size())
    with tf.control_dependencies(puts + [second]):
        rows, names = queue.dequeue_many(3)
    return [tf.reduce_sum(tf.square(tf.reduce_sum(rows, 1))), tf.shape(rows),
            tf.reduce_sum(tf.strings.to_number(names))]


def tables(tf):
    """Keys to numbers and back, with what is not in the table."""
    words = tf.constant(["a", "c", "b", "z"])
    static = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b", "c"]), tf.range(3)), -1)
    back = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(3, dtype=tf.int64), tf.constant(["x", "y", "z"])),
        "none")
    mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0., 0.])
    insert = mutable.insert(words[:2], tf.constant([[1., 2.], [3., 4.]]))
    with tf.control_dependencies([insert]):
        found = mutable.lookup(words)
    with tf.control_dependencies([found]):
        remove = mutable.remove(words[:1])
    with tf.control_dependencies([remove]):
        size = mutable.size()
    named = tf.equal(back.lookup(tf.constant([2, 7], tf.int64)), tf.constant(["z", "none"]))
    return [static.lookup(words), named, found, static.size(), size]


PROGRAMS = [tables, defun, defun_in_loops, partitioned_calls, control_flow, stateful_branches, input_queues,
            padded_queue]


def values(tf, program, target):
    """What the program's tensors are in one session."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        if program is control_flow or program is stateful_branches:
            tf.enable_control_flow_v2()
        fetches = program(tf)
        tf.disable_control_flow_v2()
        with tf.Session(target, config=tf.ConfigProto(allow_soft_placement=not target)) as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            found = session.run(fetches)
            coordinator.request_stop()
            session.close()
            coordinator.join(threads, stop_grace_period_secs=20)
            return found


def local_values(tf, program):
    """Without devices, which are the cluster's."""
    device = tf.device
    tf.device = lambda *_: device(None)
    try:
        return values(tf, program, "")
    finally:
        tf.device = device


def compare(tf, program, target):
    import numpy as np
    wanted, found = local_values(tf, program), values(tf, program, target)
    for w, f in zip(wanted, found):
        np.testing.assert_allclose(f, w, rtol=1e-5, err_msg=program.__name__)


def queue_errors(tf, target):
    """What Python code matches on."""
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(2, tf.float32, shapes=[[]])
        dequeue, enqueue, close = queue.dequeue(), queue.enqueue(1.), queue.close()
        with tf.Session(target) as session:
            session.run(enqueue)
            try:
                session.run(queue.dequeue_many(2), options=tf.RunOptions(timeout_in_ms=200))
            except tf.errors.DeadlineExceededError:
                pass
            else:
                raise AssertionError("a dequeue of too much came back")
            session.run(close)
            assert session.run(dequeue) == 1.
            for fetch, kind, text in [(dequeue, tf.errors.OutOfRangeError, "is closed and has insufficient"),
                                      (enqueue, tf.errors.CancelledError, "is closed")]:
                expect_error(session, fetch, kind, text)


def callables(tf, target):
    """Steps that are prepared once, with a tensor that stands in another's place."""
    import numpy as np
    from tensorflow.core.protobuf import config_pb2
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, [2], name="y")
        tf.multiply(tf.identity(x, name="i"), y, name="p")
        tf.constant([10., 20.], name="c")
        with tf.Session(target) as session:
            plain = config_pb2.CallableOptions(feed=["x:0", "y:0"], fetch=["p:0", "i:0"])
            run = session._make_callable_from_options(plain)
            for k in range(3):
                product, same = run(np.float32([1, k]), np.float32([3, 4]))
                assert list(product) == [3., 4. * k] and list(same) == [1., k], (product, same)
            connected = config_pb2.CallableOptions(feed=["y:0"], fetch=["p:0"])
            connected.tensor_connection.add(from_tensor="c:0", to_tensor="i:0")
            assert list(session._make_callable_from_options(connected)(np.float32([1, 2]))[0]) == [10., 40.]
            for options, kind in (
                    (config_pb2.CallableOptions(fetch=["no:0"]), tf.errors.NotFoundError),
                    (config_pb2.CallableOptions(feed=["p:0"], fetch=["p:0"]), tf.errors.InvalidArgumentError)):
                try:
                    session._make_callable_from_options(options)
                except kind:
                    pass
                else:
                    raise AssertionError(f"no {kind.__name__}")
            try:
                run(np.float32([1, 2]), np.float32([3, 4, 5]))
            except tf.errors.InvalidArgumentError as e:
                assert "x" in e.message or "y" in e.message, e.message
            else:
                raise AssertionError("a feed of the wrong shape was taken")


def keras_model(tf, target):
    """fit, evaluate and predict of a Keras model in graph mode."""
    import numpy as np
    keras = tf.keras
    random = np.random.RandomState(0)
    x = random.rand(64, 4).astype("float32")
    y = x.sum(1, keepdims=True)
    weights = [random.rand(4, 8), np.zeros(8), random.rand(8, 1), np.zeros(1)]

    def train(address):
        with tf.Graph().as_default(), tf.Session(address) as session:
            keras.backend.set_session(session)
            model = keras.Sequential([keras.layers.Dense(8, activation="tanh", input_shape=(4,)),
                                      keras.layers.BatchNormalization(), keras.layers.Dense(1)])
            model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
            first, norm, last = model.layers
            first.set_weights(weights[:2])
            last.set_weights(weights[2:])
            history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
            return sum(history.values(), []) + model.evaluate(x, y, verbose=0), model.predict(x)

    for wanted, found in zip(train(""), train(target)):
        np.testing.assert_allclose(found, wanted, rtol=1e-3)


def sync_replicas(tf):
    """Two replicas in step: as many updates as steps, each the mean of both."""
    steps, losses, last = 20, {}, {}
    both = threading.Barrier(2, timeout=240)
    with Servers({"ps": 1, "worker": 2}) as servers:
        spec = tf.train.ClusterSpec(servers.addresses)

        def replica(task):
            with tf.Graph().as_default():
                with tf.device(tf.train.replica_device_setter(
                        worker_device=f"/job:worker/task:{task}", cluster=spec)):
                    step = tf.train.get_or_create_global_step()
                    w = tf.get_variable("w", [], initializer=tf.constant_initializer(5.))
                    loss = tf.square(w - float(task))
                    optimizer = tf.train.SyncReplicasOptimizer(
                        tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2,
                        total_num_replicas=2)
                    train = optimizer.minimize(loss, global_step=step)
                with tf.train.MonitoredTrainingSession(
                        servers.target("worker", task), is_chief=task == 0, stop_grace_period_secs=2,
                        hooks=[optimizer.make_session_run_hook(task == 0)]) as session:
                    for _ in range(steps):
                        # Else one replica may use up the tokens of both, and the other waits for ever.
                        both.wait()
                        losses[task], _ = session.run([loss, train])
                    both.wait()
                    last[task] = session.run([w, step])

        threads = [threading.Thread(target=replica, args=[task], daemon=True) for task in (0, 1)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(timeout=300)
            assert not t.is_alive(), "the replicas do not end"
    # The mean of the gradients leads to the mean of the targets; the last step may be on its way.
    for w, step in last.values():
        assert step in (steps - 1, steps), last
        assert abs(w - 0.5) < 4.5 * 0.8 ** (steps - 1) + 1e-3, last


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    failed = 0
    with Servers({"ps": 1, "worker": 1}) as servers:
        target = servers.target("worker")
        cases = [(p.__name__, lambda p=p: compare(tf, p, target)) for p in PROGRAMS]
        cases += [(f.__name__, lambda f=f: f(tf, target)) for f in (queue_errors, callables, keras_model)]
        for name, case in cases:
            try:
                case()
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"{name}: {type(e).__name__}: {str(e)[:2000]}")
    sync_replicas(tf)
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
