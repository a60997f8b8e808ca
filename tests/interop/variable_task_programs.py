# SPDX-License-Identifier: Apache-2.0
"""Programs over several tasks. For ref_variables_test.py; see variable_programs.py."""
import tensorflow.compat.v1 as tf

from variable_programs import after, program


# --- Between tasks ---

def _add_after_an_update(places, read, work_first=False):
    """100 and what `read` makes of a variable: added on the worker after an update of 10, which waits
    for work of the worker's, or for nothing."""
    with places.ps():
        v = tf.Variable(1.0)
        x, value = read(v), v.value()
    with places.worker():
        work = value * 2.0
    with places.ps():
        update = after(work, lambda: v.assign_add(10.0)) if work_first else v.assign_add(10.0)
    with places.worker():
        return after(update.op, lambda: tf.add(x, 100.0))


@program("task", races=[101., 111.])
def read_sent_under_a_dependency(places):
    return _add_after_an_update(places, lambda v: v.value())


@program("task", races=[101., 111.])
def read_sent_before_and_after(places):
    """TensorFlow's optimizer takes away the first product, which nobody reads, and what waits for it
    there: without the optimizer the answer is 101, with it 111 most of the time."""
    return _add_after_an_update(places, lambda v: v.value(), work_first=True)


@program("task")
def reference_sent_under_a_dependency(places):
    return _add_after_an_update(places, lambda v: v._ref())


@program("task")
def reference_sent_after_what_the_worker_did(places):
    return _add_after_an_update(places, lambda v: v._ref(), work_first=True)


@program("apart")
def moved_by_the_worker_and_sent_back(places):
    with places.ps():
        v = tf.Variable(1.0)
    with places.worker():
        moved = tf.identity(tf.identity(v._ref()))
    update = after(moved, lambda: v.assign_add(10.0))
    with places.ps():
        return after(update.op, lambda: moved + 100.0)


@program("task")
def two_references_into_one_reader(places):
    with places.ps():
        v, w = tf.Variable(1.0), tf.Variable(5.0)
        updates = [v.assign_add(10.0).op, w.assign_add(20.0).op]
    with places.worker():
        with tf.control_dependencies(updates):
            return tf.add(v._ref(), w._ref())


@program("task")
def output_of_an_update_sent(places):
    with places.ps():
        v = tf.Variable(1.0)
        first = v.assign_add(10.0)
        second = after(first.op, lambda: v.assign_add(100.0))
    with places.worker():
        return after(second.op, lambda: tf.add(first, 0.5))


def _descent(places, read):
    v = tf.Variable(1.0)
    step = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(v))
    return after(step, lambda: tf.square(read(v)) * 1.0)


@program("task")
def loss_after_a_step(places):
    with places.setter():
        return _descent(places, lambda v: v)


@program("task")
def identity_after_a_step(places):
    with places.setter():
        return _descent(places, tf.identity)


@program("task")
def read_value_after_a_step(places):
    with places.setter():
        return _descent(places, lambda v: v.read_value())


@program("task")
def cached_on_the_worker(places):
    with places.setter():
        v = tf.get_variable("v", initializer=1.0, caching_device=places.worker_name())
        step = tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(v))
        return after(step, lambda: tf.square(v) * 1.0)


@program("task", races=[101., 111.])
def read_sent_to_another_parameter_server(places):
    with places.ps():
        v = tf.Variable(1.0)
        x, update = v.value(), v.assign_add(10.0)
    with places.ps(1):
        return after(update.op, lambda: tf.add(x, 100.0))


@program("task")
def loop_that_assigns_elsewhere(places):
    with places.ps():
        v = tf.Variable(0.0)
    with places.worker():
        def body(i, total):
            with places.ps():
                update = v.assign_add(1.0)
            return after(update.op, lambda: (i + 1, total + v._ref() * 1.0))
        return tf.while_loop(lambda i, a: i < 4, body, [0, 0.0], parallel_iterations=1)[1]


@program("task", races=[float(i) for i in range(17)])
def loop_that_assigns_and_reads_elsewhere(places):
    with places.ps():
        v = tf.Variable(0.0)
    with places.worker():
        def body(i, total):
            with places.ps():
                update = v.assign_add(1.0)
            return after(update.op, lambda: (i + 1, total + v))
        return tf.while_loop(lambda i, a: i < 4, body, [0, 0.0], parallel_iterations=1)[1]


@program("task", races=[101., 111.])
def read_after_a_branch_that_assigns(places):
    with places.setter():
        v = tf.Variable(1.0)
        branch = tf.cond(tf.placeholder_with_default(True, []),
                         lambda: tf.group(v.assign_add(10.0)), tf.no_op)
        return after(branch, lambda: v + 100.0)


@program("task")
def update_out_of_a_branch(places):
    with places.setter():
        v = tf.Variable(1.0)
        return tf.cond(tf.placeholder_with_default(True, []),
                       lambda: tf.identity(v.assign_add(10.0)), lambda: tf.identity(v)) + 0.0


@program("task")
def sum_made_where_the_variable_is(places):
    with places.ps():
        v = tf.Variable(1.0)
        x, update = v.value(), v.assign_add(10.0)
        y = after(update.op, lambda: tf.add(x, 100.0))
    with places.worker():
        return y + 0.5


@program("task")
def read_merged_on_the_worker(places):
    with places.ps():
        v = tf.Variable(1.0)
        x = v.value()
    with places.worker():
        result = tf.cond(tf.placeholder_with_default(True, []), lambda: tf.identity(x),
                         lambda: x * 2.0)
        with places.ps():
            update = after(result, lambda: v.assign_add(10.0))
        return after(update.op, lambda: result + 100.0)


@program("task", warm_up=1)
def read_captured_by_a_branch(places):
    with places.ps():
        v = tf.Variable(1.0)
        update = v.assign_add(10.)
    with places.worker():
        chosen = tf.placeholder_with_default(True, [])
        return after(update.op, lambda: tf.cond(chosen, lambda: v + 100., lambda: v * 0.))


@program("task", warm_up=1)
def reference_captured_by_a_branch(places):
    with places.ps():
        v = tf.Variable(1.0)
        update = v.assign_add(10.)
    with places.worker():
        chosen = tf.placeholder_with_default(True, [])
        return after(update.op, lambda: tf.cond(chosen, lambda: v._ref() + 100.,
                                                lambda: v._ref() * 0.))


@program("task", warm_up=1)
def read_value_after_a_branch_that_assigns(places):
    with places.setter():
        v = tf.Variable(1.0)
        branch = tf.cond(tf.placeholder_with_default(True, []),
                         lambda: tf.group(v.assign_add(10.0)), tf.no_op)
        return after(branch, lambda: v.read_value() + 100.0)


@program("task", warm_up=1, races=[1., 5., 15., 16., 9., 13.])
def moving_average_after_an_update(places):
    with places.setter():
        v = tf.Variable(1.0)
        average = tf.train.ExponentialMovingAverage(0.5)
        step = after(v.assign_add(8.), lambda: average.apply([v]))
        return after(step, lambda: average.average(v) * 1.0 + 0.0)


@program("task", warm_up=1, races=[1., 0.36])
def gradients_applied_every_second_step(places):
    with places.setter():
        v = tf.Variable(1.0)
        total, count = tf.Variable(0.0, trainable=False), tf.Variable(0, trainable=False)
        gradient = tf.gradients(tf.square(v), v)[0]
        counted = after(total.assign_add(gradient), lambda: count.assign_add(1))

        def apply():
            return after(v.assign_sub(0.1 * total), lambda: tf.group(total.assign(0.0)))
        step = after(counted, lambda: tf.cond(tf.equal(counted % 2, 0), apply, tf.no_op))
        return after(step, lambda: tf.square(v))


@program("task", warm_up=1, races=[0., 1., 2.])
def counters_in_cases(places):
    with places.setter():
        a, b = tf.Variable(0.), tf.Variable(0.)
        chosen = tf.placeholder_with_default(1, [])
        step = tf.case([(tf.equal(chosen, 0), lambda: tf.group(a.assign_add(1.))),
                        (tf.equal(chosen, 1), lambda: tf.group(b.assign_add(1.)))],
                       default=tf.no_op)
        return after(step, lambda: a + b)
