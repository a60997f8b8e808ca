#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resource variables on parameter servers, used by loops, branches and functions of workers.

With TensorFlow's functional control flow a variable's handle comes to its reads, and to what the
gradient makes, through Enter, Switch, Merge, Exit and calls; all of it belongs where the variable
is. Each program gives, on two parameter servers and two workers of Tenon's, and on clusters in which
either are TensorFlow's, what it gives on TensorFlow's, and so does its gradient. Some are drawn.

    resource_handles_test.py [--draw COUNT] [--seed FIRST] [NAME...]
"""
import argparse

from tensorflow_environment import Servers, main_with_tensorflow

JOBS = {"ps": 2, "worker": 2}
PROGRAMS = {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


def on_ps(i=0):
    return tf.device(f"/job:ps/task:{i}")


def on_worker(i=0):
    return tf.device(f"/job:worker/task:{i}")


def variable(initial, name="v", ps=0):
    with on_ps(ps):
        return tf.get_variable(name, initializer=initial, use_resource=True)


def with_gradients(y, *xs):
    """y, and its gradients; rows as a matrix."""
    return [y] + [tf.convert_to_tensor(g) for g in tf.gradients(tf.reduce_sum(y), list(xs))]


def loop(body, *initial, times=3, **options):
    """The last of the loop's values, which `body` makes of the number of the turn and the values."""
    return tf.while_loop(lambda i, *values: i < times,
                         lambda i, *values: (i + 1, *body(i, *values)), [0, *initial], **options)[-1]


@program
def read_in_a_loop():
    v = variable(2.)
    with on_worker():
        return with_gradients(loop(lambda i, a: [a + v], 0.), v)


@program
def product_in_a_loop():
    v = variable(2.)
    with on_worker():
        return with_gradients(loop(lambda i, a: [a * v], 1.), v)


@program
def assigned_in_a_loop():
    v = variable(2.)

    def body(i, a):
        with tf.control_dependencies([v.assign_add(1.)]):
            return [a + 1.]
    with on_worker():
        turns = loop(body, 0.)
        with tf.control_dependencies([turns]):
            return v.read_value()


@program
def map_of_matrices():
    v = variable([[1., 2.], [3., 4.]])
    with on_worker():
        y = tf.map_fn(lambda e: tf.matmul(e, v), tf.ones([3, 2, 2]))
        return with_gradients(y * y, v)


@program
def scan():
    v = variable(2.)
    with on_worker():
        return with_gradients(tf.scan(lambda a, e: a * v + e, tf.constant([1., 2., 3.])), v)


@program
def fold():
    v = variable(2.)
    with on_worker():
        return with_gradients(tf.foldl(lambda a, e: a * v + e, tf.constant([1., 2., 3.])), v)


@program
def nested_loops():
    v, w = variable(2.), variable(3., "w", 1)
    with on_worker():
        y = loop(lambda j, a: [loop(lambda i, b: [b * v + w], a, times=2)], 1., times=2)
        return with_gradients(y, v, w)


@program
def branch_in_a_loop():
    v, w = variable(2.), variable(3., "w", 1)
    with on_worker():
        y = loop(lambda i, a: [tf.cond(tf.equal(i % 2, 0), lambda: a * v, lambda: a + w)], 1.)
        return with_gradients(y, v, w)


@program
def loop_in_a_branch():
    v, w = variable(2.), variable(3., "w", 1)
    with on_worker():
        y = tf.cond(tf.placeholder_with_default(True, []),
                    lambda: loop(lambda i, a: [a * v], 1.), lambda: w * 1.)
        return with_gradients(y, v, w)


@program
def branches_of_a_case():
    v, w = variable(2.), variable(3., "w", 1)
    with on_worker():
        y = tf.switch_case(tf.placeholder_with_default(1, []),
                           [lambda: v * v, lambda: v * w, lambda: w * w])
        return with_gradients(y, v, w)


@program
def arrays():
    v = variable(2.)
    with on_worker():
        array = tf.while_loop(lambda i, t: i < 3,
                              lambda i, t: (i + 1, t.write(i, v * tf.cast(i, tf.float32))),
                              [0, tf.TensorArray(tf.float32, 3)])[1]
        return with_gradients(array.stack(), v)


@program
def recurrent_network():
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    with tf.device(setter), tf.variable_scope("r", initializer=tf.constant_initializer(.1)):
        cell = tf.nn.rnn_cell.BasicRNNCell(3, activation=tf.nn.relu)
        y, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 4, 3]), dtype=tf.float32)
        return with_gradients(y, *tf.trainable_variables())


@program
def rows_in_a_loop():
    v = variable([[1., 2.], [3., 4.], [5., 6.]])
    with on_worker():
        y = loop(lambda i, a: [a + tf.reduce_sum(tf.gather(v, [i, i]))], 0.)
        return with_gradients(y, v)


@program
def body_on_two_workers():
    v = variable(2.)

    def body(i, a):
        b = a * v
        with on_worker(1):
            return [b + 1.]
    with on_worker():
        return with_gradients(loop(body, 1.), v)


@program
def swapped_memory():
    v = variable(2.)
    with on_worker():
        return with_gradients(loop(lambda i, a: [a * v], 1., swap_memory=True), v)


@program
def second_gradient():
    v = variable(2.)
    with on_worker():
        y = loop(lambda i, a: [a * v], 1.)
        return with_gradients(tf.gradients(y, [v])[0], v)


@program
def handle_out_of_a_branch():
    v, w = variable(2.), variable(3., "w")
    with on_worker():
        handle = tf.cond(tf.placeholder_with_default(True, []), lambda: tf.identity(v.handle),
                         lambda: tf.identity(w.handle))
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


@program
def handle_out_of_a_loop():
    v = variable(2.)
    with on_worker():
        handle = loop(lambda i, h: [tf.identity(h)], v.handle)
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


@program
def handle_goes_round_a_loop():
    v = variable(2.)

    def body(i, h, a):
        return [h, a + tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32)]
    with on_worker():
        return loop(body, v.handle, 0.)


@program
def handle_is_assigned_to_after_a_loop():
    v = variable(2.)
    with on_worker():
        handle = loop(lambda i, h: [tf.identity(h)], v.handle)
        assigned = tf.raw_ops.AssignAddVariableOp(resource=handle, value=5.)
        with tf.control_dependencies([assigned]):
            return v.read_value()


@program
def handle_through_a_call():
    v = variable(2.)

    @tf.function
    def call(h):
        return tf.identity(h), tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) * 2.
    with on_worker():
        handle, twice = call(v.handle)
        return [twice, tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)]


@program
def handles_of_two_tasks_through_a_call():
    v, w = variable(2.), variable(3., "w", 1)

    @tf.function
    def call(g, h):
        return tf.identity(h), tf.identity(g)
    with on_worker():
        return [tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32)
                for h in call(v.handle, w.handle)]


@program
def assigned_in_a_call():
    v = variable(2.)

    @tf.function
    def call(x):
        v.assign_add(x)
        return v * 10.
    with on_worker():
        return call(tf.constant(3.))


@program
def assigned_in_a_branch():
    v = variable(2.)

    def add():
        with tf.control_dependencies([v.assign_add(5.)]):
            return tf.identity(v.read_value())
    with on_worker():
        return tf.cond(tf.placeholder_with_default(True, []), add, lambda: v * 1.)


@program
def handles_of_two_tasks_out_of_one_branch():
    v, w = variable(2.), variable(3., "w", 1)
    with on_worker():
        handle = tf.cond(tf.placeholder_with_default(True, []), lambda: tf.identity(v.handle),
                         lambda: tf.identity(w.handle))
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


def result(build, target):
    """What the program gives; an error's kind."""
    with tf.Graph().as_default():
        fetches = build()
        config = tf.ConfigProto(operation_timeout_in_ms=20000, isolate_session_state=True)
        with tf.Session(target, config=config) as session:
            try:
                session.run(tf.global_variables_initializer())
                return session.run(fetches)
            except tf.errors.OpError as e:
                return type(e)


def same(wanted, got):
    import numpy as np
    if isinstance(wanted, type) or isinstance(got, type):
        return wanted is got
    if not isinstance(wanted, list):
        wanted, got = [wanted], [got]
    return len(wanted) == len(got) and all(np.allclose(w, g, 1e-5) for w, g in zip(wanted, got))


def main():
    global tf
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    tf.enable_resource_variables()
    tf.enable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.ERROR)
    from variable_programs import Places
    from variable_random_programs import draw
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    places = Places("/job:ps/task:", JOBS["ps"], "/job:worker/task:", JOBS["worker"])
    for seed in range(arguments.seed, arguments.seed + arguments.draw):
        PROGRAMS[f"drawn_{seed}"] = lambda s=seed: draw(s, places, True, use_resource=True)
    chosen = {n: p for n, p in PROGRAMS.items() if not arguments.names or n in arguments.names}
    tasks = [(job, i) for job, count in JOBS.items() for i in range(count)]
    with Servers(JOBS, tensorflow=tasks) as theirs:
        wanted = {name: result(build, theirs.target("worker")) for name, build in chosen.items()}
    failed = 0
    for of_tensorflow in ((), ("ps",), ("worker",)):
        with Servers(JOBS, tensorflow=[t for t in tasks if t[0] in of_tensorflow]) as ours:
            for name, build in chosen.items():
                got = result(build, ours.target("worker"))
                if not same(wanted[name], got):
                    failed += 1
                    print(f"FAILED: {name}: found {got}, wanted {wanted[name]}; TensorFlow's are "
                          f"{of_tensorflow or 'none'}", flush=True)
    print(f"{len(chosen)} programs, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
