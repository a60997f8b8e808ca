# SPDX-License-Identifier: Apache-2.0
"""Programs that are drawn: a row of statements, each of which waits for the one before it, on two ref
variables and a resource variable. For ref_variables_test.py; see variable_programs.py.

Every statement waits for the one before, so that TensorFlow has one answer. On several tasks tensors
are made on the worker alone, from references: of a tensor that shares a variable's memory on the
parameter server, TensorFlow sends what is there when the worker asks."""
import random

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import data_flow_ops

from variable_programs import after, program

ROWS, COLUMNS = 4, 16  # rows of 64 bytes, of which slices share memory
WEIGHTS = np.arange(1, ROWS * COLUMNS + 1, dtype=np.float32).reshape(ROWS, COLUMNS) % 7 + 1


def _called(x):
    @function.Defun(tf.float32)
    def same(y):
        return tf.identity(y)
    return tf.ensure_shape(same(x), [ROWS, COLUMNS])


PASSING = [
    _called,
    tf.identity,
    tf.stop_gradient,
    lambda x: tf.identity_n([x, x])[1],
    lambda x: tf.reshape(tf.reshape(x, [-1]), [ROWS, COLUMNS]),
    lambda x: tf.squeeze(tf.expand_dims(x, 0), [0]),
    lambda x: tf.split(x, 1)[0],
    lambda x: tf.stack([x])[0],
    lambda x: tf.bitcast(tf.bitcast(x, tf.int32), tf.float32),
    lambda x: tf.raw_ops.Snapshot(input=x),
    lambda x: tf.raw_ops.DeepCopy(x=x),
    lambda x: tf.concat([x[0:1], x[1:]], 0),
    lambda x: x[::-1],
    lambda x: x + 1.0,
    lambda x: x * -1.0,
    tf.nn.relu,
    lambda x: tf.floormod(x, 97.0),
    lambda x: tf.gather(x, [3, 0, 1, 1]),
    lambda x: tf.tuple([x, x * 2.0])[0],
]


class Statements:
    """A program's statements as they are drawn: each in the control dependencies of `last`."""

    def __init__(self, seed, places, on_several_tasks, use_resource):
        self._draw = random.Random(seed)
        self._on_several_tasks, self._in_a_loop, self._depth = on_several_tasks, False, 0
        with places.ps():
            two = [tf.Variable(i + np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(
                ROWS, COLUMNS) % 5, name=f"v{i}", use_resource=use_resource) for i in range(2)]
        with places.ps(1):
            resource = tf.Variable(np.ones((ROWS, COLUMNS), np.float32), use_resource=True)
        self._resources = [*two, resource] if use_resource else [resource]
        self._variables = [*two, resource]
        # TensorFlow knows no legacy functions in those of its control flow of version 2.
        self._passing = PASSING if not use_resource else PASSING[1:]
        self._tensors = []  # those that this statement may read
        self._looks = []  # numbers, each of a tensor at its moment
        self._last = tf.no_op()

    def _run(self, build):
        """What `build` builds after the statement before."""
        built = after(self._last, build)
        # The one before too, since TensorFlow's optimizer takes away a node and with it what it waits for.
        node = getattr(built, "flow", built)  # of a TensorArray
        self._last = tf.group(self._last, node.op if hasattr(node, "op") else node)
        return built

    def _some(self):
        return self._draw.choice(self._tensors) if self._tensors else tf.zeros([ROWS, COLUMNS])

    def _variable(self):
        return self._draw.choice(self._variables)

    def read(self):
        # TensorFlow's tasks wait for each other for ever where a loop on one reads a reference of another.
        variable = self._draw.choice(self._resources) if self._on_several_tasks and self._in_a_loop \
            else self._variable()
        how = self._draw.choice([lambda: variable.read_value(), lambda: tf.identity(variable.read_value())]
                                if self._on_several_tasks or variable in self._resources else
                                [lambda: variable.read_value(), lambda: tf.identity(variable._ref()),
                                 lambda: tf.identity(variable)])
        self._tensors.append(self._run(how))

    def pass_on(self):
        tensor, how = self._some(), self._draw.choice(self._passing)
        self._tensors.append(self._run(lambda: how(tensor)))

    def update(self):
        variable, tensor, a = self._variable(), self._some(), self._draw.randrange(1, 9)
        rows = [self._draw.randrange(ROWS) for _ in range(2)]
        scatter = [variable.scatter_add, variable.scatter_update, variable.scatter_sub]
        self._run(self._draw.choice([
            lambda: variable.assign_add(tf.fill([ROWS, COLUMNS], float(a))),
            lambda: variable.assign_sub(tensor),
            # A resource variable of TensorFlow takes the memory, which may be a ref variable's.
            lambda: variable.assign(tensor * 2.0 if variable in self._resources else tensor),
            lambda: variable.assign(tensor * 2.0),
            lambda: self._draw.choice(scatter)(
                tf.IndexedSlices(tf.fill([2, COLUMNS], float(a)), [rows[0], (rows[0] + 1) % ROWS])),
            lambda: variable[rows[0]:rows[0] + 1].assign(tf.fill([1, COLUMNS], float(-a))),
            lambda: variable.assign_add(tf.floormod(tensor, 13.0)),
        ]))

    def look(self):
        self._look_at(self._some())

    def _look_at(self, tensor):
        self._looks.append(self._run(lambda: tf.reduce_sum(tf.floormod(tensor, 1009.0) * WEIGHTS)))

    def keep(self):
        """Through something that keeps a tensor while an update runs."""
        tensor, what = self._some(), self._draw.randrange(4)
        if what == 0:
            queue = tf.FIFOQueue(10, [tf.float32], shapes=[[ROWS, COLUMNS]])
            self._run(lambda: queue.enqueue([tensor]))
            self.update()
            self._tensors.append(self._run(queue.dequeue))
        elif what == 1:
            array = tf.TensorArray(tf.float32, 1, element_shape=[ROWS, COLUMNS], clear_after_read=False)
            written = self._run(lambda: array.write(0, tensor))
            self.update()
            self._tensors.append(self._run(lambda: written.read(0)))
        elif what == 2:
            area = data_flow_ops.StagingArea([tf.float32], [[ROWS, COLUMNS]])
            self._run(lambda: area.put([tensor]))
            self.update()
            self._tensors.append(self._run(lambda: area.get()[0]))
        else:
            both = self._run(lambda: tf.identity_n([tensor, tensor])[0])
            self.update()
            self._tensors.append(both)

    def _inside(self, count):
        """Statements within a branch or body; gives a tensor that waits for them. What they make is not
        seen outside, and they wait for each other alone."""
        outer, tensors, looks = self._last, list(self._tensors), self._looks
        self._last, self._looks = tf.no_op(), []
        self._depth += 1
        for _ in range(count):
            self._draw.choices([self.read, self.pass_on, self.update, self.look, self.branch, self.loop],
                               [3, 3, 3, 3, 1, 1] if self._depth < 2 else [1, 1, 1, 1, 0, 0])[0]()
        self._depth -= 1
        result = self._some()
        result = self._run(lambda: tf.identity(result))
        if self._looks:
            total = tf.add_n(self._looks)
            result = self._run(lambda: result + total * 0.0625)
        self._last, self._tensors, self._looks = outer, tensors, looks
        return result

    def branch(self):
        tensor, limit = self._some(), self._draw.randrange(-50, 400)
        chosen = self._run(lambda: tf.reduce_sum(tensor) > limit)
        self._tensors.append(self._run(
            lambda: tf.cond(chosen, lambda: self._inside(self._draw.randrange(1, 4)),
                            lambda: self._inside(self._draw.randrange(1, 3)))))

    def loop(self):
        tensor, count = self._some(), self._draw.randrange(1, 4)

        def body(i, x):
            self._tensors.append(x)
            around, self._in_a_loop = self._in_a_loop, True
            result = self._inside(self._draw.randrange(1, 4))
            self._in_a_loop = around
            self._tensors.pop()
            return after(result, lambda: i + 1), result
        self._tensors.append(self._run(lambda: tf.while_loop(
            lambda i, x: i < count, body, [0, tensor], parallel_iterations=1)[1]))

    def fetches(self):
        """All looks, then each tensor as it is after the last statement, and the variables."""
        self._tensors += [self._run(v.read_value) for v in self._variables]
        for tensor in list(self._tensors):
            self._look_at(tensor)
        return self._looks


def draw(seed, places, on_several_tasks, use_resource=False):
    """Builds the program of a seed and gives what is fetched; with `use_resource` all of its variables
    are resource variables."""
    statements = Statements(seed, places, on_several_tasks, use_resource)
    draw_from = random.Random(-1 - seed)
    with places.worker():
        statements.read()
        for _ in range(draw_from.randrange(4, 16)):
            draw_from.choices([statements.read, statements.pass_on, statements.update, statements.look,
                               statements.keep, statements.branch, statements.loop],
                              [3, 4, 4, 2, 1, 1, 1])[0]()
        return statements.fetches()


def draw_programs(seeds):
    """Adds the programs of the seeds, for one memory and for several tasks."""
    for seed in seeds:
        for kind in ("memory", "apart"):
            program(kind, f"drawn_{kind}_{seed}")(
                lambda places, s=seed, k=kind: draw(s, places, on_several_tasks=k == "apart"))
