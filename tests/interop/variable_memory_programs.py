# SPDX-License-Identifier: Apache-2.0
"""Programs whose nodes are all in one memory: what hands a variable's memory on, who keeps it, and
what each update shows. For ref_variables_test.py; see variable_programs.py."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import data_flow_ops

from variable_programs import after, program


# --- What passes a variable's memory on, and what copies it ---

PASSING = {
    "identity": tf.identity,
    "identity_n": lambda x: tf.identity_n([x, x])[0],
    "times_one": lambda x: x * 1.0,
    "one_times": lambda x: 1.0 * x,
    "plus_zero": lambda x: x + 0.0,
    "minus_zero": lambda x: x - 0.0,
    "over_one": lambda x: x / 1.0,
    "reshape": lambda x: tf.reshape(x, [2, 6]),
    "squeeze": lambda x: tf.squeeze(x[None]),
    "expand_dims": lambda x: tf.expand_dims(x, 0),
    "stop_gradient": tf.stop_gradient,
    "prevent_gradient": lambda x: tf.raw_ops.PreventGradient(input=x),
    "check_numerics": lambda x: tf.check_numerics(x, "m"),
    "strided_all": lambda x: x[:],
    "strided_rows": lambda x: x[0:2],
    "strided_middle": lambda x: x[1:3],
    "strided_row": lambda x: x[0],
    "slice_rows": lambda x: tf.slice(x, [1, 0], [2, -1]),
    "slice_all": lambda x: tf.slice(x, [0, 0], [-1, -1]),
    "split": lambda x: tf.split(x, 3)[1],
    "split_in_one": lambda x: tf.split(x, 1)[0],
    "unstack": lambda x: tf.unstack(x)[1],
    "cast_same": lambda x: tf.raw_ops.Cast(x=x, DstT=tf.float32),
    "bitcast": lambda x: tf.bitcast(tf.bitcast(x, tf.int32), tf.float32),
    "add_n_one": lambda x: tf.raw_ops.AddN(inputs=[x]),
    "concat_with_empty": lambda x: tf.raw_ops.ConcatV2(values=[x, tf.zeros([0, 4])], axis=0),
    "tile_once": lambda x: tf.tile(x, [1, 1]),
    "pad_nothing": lambda x: tf.pad(x, [[0, 0], [0, 0]]),
    "broadcast_same": lambda x: tf.broadcast_to(x, [3, 4]),
    "transpose_identity": lambda x: tf.transpose(x, [0, 1]),
    "reverse_none": lambda x: tf.raw_ops.ReverseV2(tensor=x, axis=tf.zeros([0], tf.int32)),
    "gather_all": lambda x: tf.gather(x, [0, 1, 2]),
    "sum_no_axis": lambda x: tf.reduce_sum(x, axis=[]),
    "mean_no_axis": lambda x: tf.reduce_mean(x, axis=[]),
    "max_of_one": lambda x: tf.reduce_max(x[None], axis=0),
    "dynamic_stitch": lambda x: tf.dynamic_stitch([[0, 1, 2]], [x]),
    "branch": lambda x: tf.cond(tf.placeholder_with_default(True, []),
                                lambda: tf.identity(x), lambda: x * 3),
    "loop_invariant": lambda x: tf.while_loop(
        lambda i, y: i < 1, lambda i, y: (i + 1, tf.identity(y)), [0, x])[1],
    "relu": tf.nn.relu,
    "abs": tf.abs,
    "placeholder_with_default": lambda x: tf.placeholder_with_default(x, [3, 4]),
    "dropout_nothing": lambda x: tf.nn.dropout(x, rate=0.0),
    "clip": lambda x: tf.clip_by_value(x, -100., 100.),
    "snapshot": lambda x: tf.raw_ops.Snapshot(input=x),
    "deep_copy": lambda x: tf.raw_ops.DeepCopy(x=x),
    "stack_one": lambda x: tf.stack([x]),
    "select_by_scalar": lambda x: tf.where_v2(True, x, x),
    "band_part_all": lambda x: tf.linalg.band_part(x, -1, -1),
    "roll_nowhere": lambda x: tf.roll(x, 0, 0),
    "squeeze_nothing": lambda x: tf.squeeze(tf.identity(x)),
    "ensure_shape": lambda x: tf.ensure_shape(x, [3, 4]),
}


def _passing(name, pass_on):
    @program("memory", "passing_" + name)
    def build(places):
        with places.ps():
            v = tf.Variable(np.ones((3, 4), np.float32))
            result = pass_on(v.value())
            update = after(result, lambda: v.assign_add(10 * tf.ones([3, 4])))
            return after(update.op, lambda: tf.reduce_max(result))


for _name, _pass_on in PASSING.items():
    _passing(_name, _pass_on)


@program("memory")
def reference_read_by_an_op(places):
    with places.ps():
        v = tf.Variable(np.ones((3, 4), np.float32))
        result = v._ref() + 0.0
        update = after(result, lambda: v.assign_add(10 * tf.ones([3, 4])))
        return after(update.op, lambda: tf.reduce_max(result))


@program("memory")
def rows_of_64_bytes(places):
    with places.ps():
        v = tf.Variable(np.ones((4, 16), np.float32))
        x = v.value()
        parts = [x[0:2], tf.slice(x, [1, 0], [2, 16]), tf.split(x, 2)[1], tf.unstack(x)[2], x[1],
                 x[1:2, :], x[:, 0:3]]
        with tf.control_dependencies(parts):
            update = v.assign_add(10 * tf.ones([4, 16]))
        return after(update.op, lambda: tf.stack([tf.reduce_max(p) for p in parts]))


@program("memory")
def elements_of_a_vector(places):
    with places.ps():
        v = tf.Variable(np.ones(64, np.float32))
        x = v.value()
        parts = [x[16:32], x[0:8], x[8:16], x[5], tf.slice(x, [16], [16]), tf.split(x, 2)[1]]
        with tf.control_dependencies(parts):
            update = v.assign_add(10 * tf.ones([64]))
        return after(update.op, lambda: tf.stack([tf.reduce_max(p) for p in parts]))


# --- Who keeps a value ---

def _two(places, use_resource=False):
    return tf.Variable([1., 2.], use_resource=use_resource)


@program("memory")
def kept_in_a_queue(places):
    with places.ps():
        v = _two(places)
        queue = tf.FIFOQueue(100, [tf.float32], shapes=[[2]])
        update = after(queue.enqueue([v.value()]), lambda: v.assign_add([10., 10.]))
        return after(update.op, queue.dequeue)


@program("memory")
def kept_in_a_queue_and_taken_in_a_batch(places):
    with places.ps():
        v = _two(places)
        queue = tf.FIFOQueue(100, [tf.float32], shapes=[[2]])
        both = after(queue.enqueue([v.value()]), lambda: queue.enqueue([v.value() * 1.]))
        update = after(both, lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: queue.dequeue_many(2))


@program("memory")
def rows_kept_in_a_queue(places):
    with places.ps():
        v = _two(places)
        queue = tf.FIFOQueue(100, [tf.float32], shapes=[[]])
        update = after(queue.enqueue_many([v.value()]), lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: queue.dequeue_many(2))


@program("memory")
def kept_in_a_tensor_array(places):
    with places.ps():
        v = _two(places)
        array = tf.TensorArray(tf.float32, 1, element_shape=[2]).write(0, v.value())
        update = after(array.flow, lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: array.read(0) * 1.0)


@program("memory")
def kept_in_a_tensor_array_and_stacked(places):
    with places.ps():
        v = _two(places)
        array = tf.TensorArray(tf.float32, 2, element_shape=[2])
        array = array.write(0, v.value()).write(1, v.value() * 2.)
        update = after(array.flow, lambda: v.assign_add([10., 10.]))
        return after(update.op, array.stack)


@program("memory")
def kept_in_a_staging_area(places):
    with places.ps():
        v = _two(places)
        area = data_flow_ops.StagingArea([tf.float32], [[2]])
        update = after(area.put([v.value()]), lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: area.get()[0] * 1.0)


@program("memory", runs=1)
def added_to_an_accumulator(places):
    with places.ps():
        v = _two(places)
        accumulator = tf.ConditionalAccumulator(tf.float32, [2])
        update = after(accumulator.apply_grad(v.value()), lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: accumulator.take_grad(1) * 1.0)


@program("memory")
def argument_of_a_function(places):
    with places.ps():
        v = tf.Variable(1.0)

        @function.Defun(tf.float32)
        def same(y):
            return tf.identity(y)
        y = same(v.value())
        update = after(y, lambda: v.assign_add(10.))
        return after(update.op, lambda: y + 100.)


@program("memory")
def value_of_a_loop(places):
    with places.ps():
        v = tf.Variable(0.0)

        def body(i, unused):
            return after(v.assign_add(1.0).op, lambda: (i + 1, tf.identity(v)))
        result = tf.while_loop(lambda i, a: i < 4, body, [0, 0.0], parallel_iterations=1)[1]
        update = after(result, lambda: v.assign_add(100.))
        return after(update.op, lambda: result + 0.5)


@program("memory")
def tuple_of_two(places):
    with places.ps():
        v, w = tf.Variable(1.0), tf.Variable(2.0)
        both = tf.tuple([v.value(), w.value()])
        with tf.control_dependencies(both):
            update = v.assign_add(10.)
        return after(update.op, lambda: both[0] + 100.)


@program("memory")
def stack_of_reads(places):
    with places.ps():
        v = tf.Variable(1.0)
        together = tf.stack([v.value(), v.value()])
        update = after(together, lambda: v.assign_add(10.))
        return after(update.op, lambda: together * 1.)


# --- Assignments ---

@program("memory")
def assign_more_elements(places):
    with places.ps():
        v = tf.Variable([1., 2., 3.], validate_shape=False)
        x = v.value()
        x1 = tf.identity(x)
        update = after(x1, lambda: tf.assign(v, [9., 9., 9., 9.], validate_shape=False))
        # Under both shapes of `x`, of which one was read before.
        return after(update.op, lambda: [x1 * 1., tf.identity(v._ref()), v._ref() * 1.0])


@program("memory")
def assign_another_shape(places):
    with places.ps():
        v = tf.Variable([[1., 2.], [3., 4.]], validate_shape=False)
        x = tf.identity(v.value())
        update = after(x, lambda: tf.assign(v, [9., 8., 7., 6.], validate_shape=False))
        return after(update.op, lambda: [tf.rank(x), tf.reduce_sum(x), tf.rank(v._ref())])


@program("memory")
def assign_one_variable_to_another(places):
    with places.ps():
        v, w = tf.Variable([1., 2.]), tf.Variable([0., 0.])
        update = after(tf.assign(w, v.value()).op, lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: w._ref() * 1.0)


@program("memory")
def assign_a_constant(places):
    with places.ps():
        constant, v = tf.constant([1., 2.]), tf.Variable([5., 5.])
        update = after(tf.assign(v, constant).op, lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: constant * 1.0)


@program("memory")
def assign_a_constant_first(places):
    with places.ps():
        constant = tf.constant([1., 2.])
        v = tf.raw_ops.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="first")
        assigned = tf.raw_ops.Assign(ref=v, value=constant)
        update = after(assigned, lambda: tf.raw_ops.AssignAdd(ref=assigned, value=[10., 10.]))
        return after(update, lambda: constant * 1.0)


@program("memory")
def assign_a_feed(places):
    with places.ps():
        fed = tf.placeholder_with_default([1., 2.], [2])
        v = tf.Variable([5., 5.])
        update = after(tf.assign(v, fed).op, lambda: v.assign_add([10., 10.]))
        return after(update.op, lambda: fed * 1.0)


@program("memory")
def assign_text(places):
    with places.ps():
        v = tf.Variable(["a", "b"])
        x = tf.identity(v.value())
        update = after(x, lambda: tf.assign(v, ["c" * 40, "d"]))
        return after(update.op, lambda: tf.strings.join([x, "!"]))


@program("memory")
def assign_an_integer(places):
    with places.ps():
        v = tf.Variable(1)
        x = tf.identity(v.value())
        update = after(x, lambda: tf.assign(v, 7))
        return after(update.op, lambda: x + 100)


@program("memory")
def assign_twice_what_was_read(places):
    with places.ps():
        v = tf.Variable([1., 2.])
        x = tf.identity(v.value())
        update = tf.assign(v, x * 2.0)
        return after(update.op, lambda: x * 1.0)


@program("memory")
def output_of_assign_after_another(places):
    with places.ps():
        v = tf.Variable([1., 2.])
        first = tf.assign(v, [3., 4.])
        second = after(first.op, lambda: tf.assign(v, [5., 6.]))
        return after(second.op, lambda: first * 1.0)


@program("memory")
def assign_its_own_reverse(places):
    with places.ps():
        v = tf.Variable(np.arange(32, dtype=np.float32).reshape(2, 16))
        return v.assign(tf.reverse(v.value(), [0]))[:, 0]


@program("memory")
def assign_a_slice_of_itself(places):
    with places.ps():
        v = tf.Variable(np.arange(64, dtype=np.float32).reshape(4, 16), validate_shape=False)
        update = tf.assign(v, v.value()[1:3], validate_shape=False)
        return after(update.op, lambda: tf.identity(v._ref()))[:, 0]


@program("memory")
def assign_checks_the_present_shape(places):
    with places.ps():
        v = tf.Variable([1., 2., 3.], validate_shape=False)
        fewer = tf.assign(v, [1., 2.], validate_shape=False)
        return after(fewer.op, lambda: tf.assign(v, [5., 6., 7.]))


@program("memory")
def in_place_kernels_leave_the_variable_alone(places):
    with places.ps():
        v = tf.Variable([1., 2.])
        y = tf.exp(tf.identity(tf.identity(v.value())))
        return after(y, lambda: v._ref() * 1.0)
