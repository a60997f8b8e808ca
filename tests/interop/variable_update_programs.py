# SPDX-License-Identifier: Apache-2.0
"""Programs whose nodes are all in one memory: updates, control flow and fetches.

For ref_variables_test.py; see variable_programs.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from variable_programs import after, program


# --- Other updates ---

def _seen_after(update_of, initial, seen=lambda x: x * 1, **options):
    v = tf.Variable(initial, **options)
    x = tf.identity(v.value())
    update = after(x, lambda: update_of(v))
    return after(update, lambda: seen(x))


@program("update")
def scatter_update(places):
    with places.ps():
        return _seen_after(lambda v: tf.scatter_update(v, [1], [50.]), [1., 2., 3.])


@program("update")
def scatter_nd_add(places):
    with places.ps():
        return _seen_after(lambda v: tf.scatter_nd_add(v, [[1]], [5.]), [1., 2., 3.])


@program("update")
def scatter_div(places):
    with places.ps():
        return _seen_after(lambda v: tf.scatter_div(v, [1], [2.]), [8., 8., 8.])


@program("update")
def assign_to_a_slice(places):
    with places.ps():
        return _seen_after(lambda v: v[0:2].assign([9., 9.]), [1., 2., 3.])


@program("update")
def count_up_to(places):
    with places.ps():
        return _seen_after(lambda v: tf.raw_ops.CountUpTo(ref=v._ref(), limit=10), 0)


@program("update")
def assign_sub(places):
    with places.ps():
        return _seen_after(lambda v: v.assign_sub([1., 1., 1.]).op, [1., 2., 3.])


OPTIMIZERS = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(.5),
    "momentum": lambda: tf.train.MomentumOptimizer(.5, .9),
    "adam": lambda: tf.train.AdamOptimizer(.5),
    "adagrad": lambda: tf.train.AdagradOptimizer(.5),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(.5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(.5),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(.5),
}


def _optimizer(name, make):
    @program("update", "optimizer_" + name)
    def build(places):
        with places.ps():
            v = tf.Variable([1., 2., 3.])
            x = tf.identity(v.value())
            with tf.control_dependencies([x]):
                step = make().minimize(tf.reduce_sum(tf.square(v)), var_list=[v])
            return after(step, lambda: x * 1.)


for _name, _make in OPTIMIZERS.items():
    _optimizer(_name, _make)


@program("update")
def rows_of_an_embedding(places):
    with places.ps():
        v = tf.Variable(np.ones((8, 16), np.float32))
        x = v.value()
        rows = tf.nn.embedding_lookup(v, [1, 3])
        with tf.control_dependencies([x]):
            step = tf.train.GradientDescentOptimizer(1.).minimize(tf.reduce_sum(rows), var_list=[v])
        return after(step, lambda: tf.reduce_sum(x, 1))


# --- References that go through control flow ---

@program("update")
def reference_out_of_a_branch(places):
    with places.ps():
        v = tf.Variable(1.0)
        chosen = tf.cond(tf.placeholder_with_default(True, []), lambda: v.assign_add(10.),
                         lambda: v.assign_add(20.))
        update = after(chosen, lambda: v.assign_add(100.))
        return after(update.op, lambda: chosen + 0.5)


@program("update")
def loop_that_assigns_and_reads(places):
    with places.ps():
        v = tf.Variable(0.0)

        def body(i, total):
            return after(v.assign_add(1.0).op, lambda: (i + 1, total + v))
        return tf.while_loop(lambda i, a: i < 4, body, [0, 0.0], parallel_iterations=1)[1]


@program("update")
def gather_of_the_reference(places):
    with places.ps():
        v = tf.Variable([1., 2., 3.])
        rows = tf.gather(v._ref(), [0, 1])
        update = after(rows, lambda: v.assign_add([10., 10., 10.]))
        return after(update.op, lambda: rows * 1.0)


@program("update")
def temporary_variable(places):
    with places.ps():
        temporary = tf.raw_ops.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="t")
        assigned = tf.raw_ops.Assign(ref=temporary, value=[1., 2.])
        x = tf.identity(assigned)
        added = after(x, lambda: tf.raw_ops.AssignAdd(ref=assigned, value=[10., 10.]))
        y = after(added, lambda: x * 1.0)
        last = after(y, lambda: tf.raw_ops.DestroyTemporaryVariable(ref=added, var_name="t"))
        return tf.stack([y, last])


def _uninitialized():
    return tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)


@program("update", runs=1)
def uninitialized_reference_passed_on(places):
    with places.ps():
        return tf.raw_ops.IsVariableInitialized(ref=tf.raw_ops.RefIdentity(input=_uninitialized()))


@program("update", runs=1)
def uninitialized_reference_in_a_branch(places):
    with places.ps():
        sides = tf.raw_ops.RefSwitch(data=_uninitialized(), pred=True)
        return tf.raw_ops.Assign(ref=sides[1], value=[1., 2.])


@program("update", runs=1)
def uninitialized_reference_after_a_branch(places):
    with places.ps():
        sides = tf.raw_ops.RefSwitch(data=_uninitialized(), pred=True)
        merged = tf.raw_ops.RefMerge(inputs=list(sides))
        return tf.raw_ops.Assign(ref=merged[0], value=[1., 2.])


@program("update", runs=1)
def uninitialized_is_added_to(places):
    with places.ps():
        return tf.raw_ops.AssignAdd(ref=_uninitialized(), value=[1., 2.])


@program("update", runs=1)
def uninitialized_is_read(places):
    with places.ps():
        return tf.identity(_uninitialized())


@program("update", runs=1)
def uninitialized_reference_is_chosen(places):
    with places.ps():
        v, w = _uninitialized(), _uninitialized()
        chosen = tf.raw_ops.RefSelect(index=1, inputs=[v, w])
        return after(tf.raw_ops.Assign(ref=chosen, value=[1., 2.]), lambda: tf.identity(w))


# --- Fetches ---

@program("update", races_elsewhere=[[1., None], [2., None]])
def fetch_a_read_beside_an_update(places):
    with places.ps():
        v = tf.Variable(1.0)
        return [v.value(), v.assign_add(1.0).op]


@program("update", races_elsewhere=[[1., None], [2., None]])
def fetch_a_reference_beside_an_update(places):
    with places.ps():
        v = tf.Variable(1.0)
        return [v._ref(), v.assign_add(1.0).op]


def _training(places):
    v, step = tf.Variable(0.5), tf.Variable(0., trainable=False)
    return [tf.train.GradientDescentOptimizer(0.1).minimize(v * v, global_step=step), step]


@program("update", races_elsewhere=[[None, 0.], [None, 1.]])
def fetch_the_step_beside_training(places):
    with places.ps():
        return _training(places)


# TensorFlow's servers, on a busy machine: 1 in 22 of 400 runs.
@program("elsewhere", races_elsewhere=[[None, 0.], [None, 1.]])
def fetch_the_step_beside_training_elsewhere(places):
    with places.setter():
        return _training(places)
