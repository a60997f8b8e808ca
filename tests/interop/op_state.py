# SPDX-License-Identifier: Apache-2.0
"""Ops with state, compared with TensorFlow: those that change variables, and those that draw numbers.

Each case is a node in a graph that a local TensorFlow session and a Tenon server both get. Its
variables are set from a placeholder; then it runs twice, and the variables are read.
"""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import errors_impl, op_def_registry

from op_cases import Fixed as F, Use
from op_comparison import Failure, attr_value, session_config
from op_hints_media import SAMPLES
from op_hints_slices import slice_updates

UPDATES = [((5,), [0, 2], (2,)), ((5,), [1, 1, 1], (3,)), ((3, 2), [2, 0], (2, 2)), ((3, 2), 1, (2,)),
           ((3, 2, 1, 2), [[0], [2]], (2, 1, 2, 1, 2)), ((5,), [], (0,)), ((0, 3), [], (0, 3)), ((5,), [5], (1,)),
           ((5,), [-1], (1,)), ((3, 2), [0], (2, 2)), ((5,), [0, 1], ())]
SCATTER = [Use(v, F(i), u) for v, i, u in UPDATES]
SHAPES = [(), (0,), (1,), (5,), (0, 3), (2, 3), (2, 1, 3, 2), (1, 2, 1, 2, 3)]
SET = [Use(s, s) for s in SHAPES]
WRONG_SHAPES = [Use((2, 3), (3,)), Use((2,), ()), Use((2,), (3,))]


OPTIMIZERS = {  # the scalars of each, and its attributes with their other values
    "GradientDescent": dict(alpha=.1), "Adadelta": dict(lr=.1, rho=.9, epsilon=.01),
    "ProximalGradientDescent": dict(alpha=.5, l1=.4, l2=.3), "Adagrad": dict(lr=.1, update_slots=False),
    "AdagradV2": dict(lr=.1, epsilon=.01, update_slots=False),
    "ProximalAdagrad": dict(lr=.5, l1=.4, l2=.3),
    "AdagradDA": dict(lr=.1, l1=.4, l2=.3, global_step=2),
    "Ftrl": dict(lr=.5, l1=.4, l2=.3, lr_power=-.5, multiply_linear_by_lr=True),
    "FtrlV2": dict(lr=.5, l1=.4, l2=.3, l2_shrinkage=.2, lr_power=-.5, multiply_linear_by_lr=True),
    "Momentum": dict(lr=.1, momentum=.9, use_nesterov=True),
    "KerasMomentum": dict(lr=.1, momentum=.9, use_nesterov=True),
    "Adam": dict(beta1_power=.7, beta2_power=.9, lr=.1, beta1=.9, beta2=.99, epsilon=.01, use_nesterov=True),
    "AdamWithAmsgrad": dict(beta1_power=.7, beta2_power=.9, lr=.1, beta1=.9, beta2=.99, epsilon=.01),
    "AdaMax": dict(beta1_power=.7, lr=.1, beta1=.9, beta2=.99, epsilon=.01),
    "RMSProp": dict(lr=.1, rho=.9, momentum=.5, epsilon=.01),
    "CenteredRMSProp": dict(lr=.1, rho=.9, momentum=.5, epsilon=.01),
    "AddSign": dict(lr=.1, alpha=.7, sign_decay=.4, beta=.9),
    "PowerSign": dict(lr=.1, logbase=.7, sign_decay=.4, beta=.9)}
# Scalars that a step treats in another way, or refuses. Not for 16 bits: there the rounding within a
# step, which differs, may be the whole of a divisor.
SPECIAL_SCALARS = [dict(l1=0), dict(l1=-.5), dict(l2=-.5), dict(l2_shrinkage=-.5), dict(lr=0), dict(lr=-1),
                   dict(global_step=0), dict(global_step=-3), dict(lr_power=-.3), dict(lr_power=0),
                   dict(lr_power=.5), dict(momentum=0), dict(l1=0, l2=0)]
GRADIENT_ROWS = [((5,), (2,), [0, 2]), ((5,), (4,), [1, 3, 1, 1]), ((3, 2), (3, 2), [2, 0, 2]),
                 ((3, 1), (2, 1), [1, 0]), ((40, 3, 1, 2), (4, 3, 1, 2), [39, 2, 17, 2]), ((5,), (0,), []),
                 ((0, 3), (0, 3), []), ((3, 0), (1, 0), [1]), ((5,), (2,), [1, 5]), ((5,), (1,), [-1]),
                 ((3, 2), (2, 2), [0]), ((3, 2), (1, 3), [0]), ((5,), (1,), [[0]])]


def step_uses(op, numbers):
    """Uses of an optimizer's op."""
    names = [a.name for a in op.input_arg]
    attrs = {k: v for k, v in numbers.items() if k not in names}

    def slot(shape, k):
        # Positive, and the later the larger: some hold the mean of squares.
        return F(.1 + .2 * k + .01 * (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape))

    def use(shape, gradient, indices=(), scalar=None, other=(), **more):
        given = []
        for k, arg in enumerate(op.input_arg):
            if arg.name == "var":
                given.append(shape)
            elif arg.is_ref or arg.type == types_pb2.DT_RESOURCE:
                given.append(slot(shape, k))
            elif arg.name in ("grad", "delta"):
                given.append(gradient)
            elif arg.name == "indices":
                given.append(F(indices))
            else:
                given.append(F(dict(numbers, **dict(other))[arg.name]) if scalar is None else scalar)
        return Use(*given, **more)

    shapes = GRADIENT_ROWS if "indices" in names else [(s, s) for s in SHAPES]
    uses = [use(*s) for s in shapes] + [use(*s, **attrs) for s in shapes if attrs]
    s = shapes[2 if "indices" in names else 5]
    wide = ("float32", "float64", "complex64")
    for other in SPECIAL_SCALARS:
        if set(other) <= set(names):
            uses += [use(*s, other=other, dtypes=wide), use(*shapes[0], other=other, dtypes=wide)]
            uses += [use(*s, other=other, dtypes=wide, **attrs)] if attrs else []
    uses += [use(*s, scalar=(), dtypes=wide), use(*shapes[0], scalar=(), dtypes=wide), use(*s, scalar=(1,))]
    if "indices" not in names:
        uses += [use((2, 3), (3,)), use((2,), (3,)), use((2,), ())]
    return uses


def optimizer_hints():
    names = [(prefix + name, numbers) for name, numbers in OPTIMIZERS.items()
             for prefix in ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")]
    ops = [(op_def_registry.get(name), numbers) for name, numbers in names]
    return {op.name: step_uses(op, numbers) for op, numbers in ops if op}


RANDOM_SHAPES = [[], [0], [1], [5], [0, 3], [2, 3], [2, 1, 3, 2], [700], [-1], 3, [[2]]]


def random_uses():
    return [Use(F(s), seed=a, seed2=b) for s in RANDOM_SHAPES for a, b in ((1, 0), (7, 11), (0, 5))]


STATE_HINTS = {
    **optimizer_hints(),
    "Assign": SET + [Use((2, 3), (3,), validate_shape=False)] + WRONG_SHAPES,
    "AssignAdd": SET + WRONG_SHAPES, "AssignSub": SET + WRONG_SHAPES,
    "AssignVariableOp": SET + [Use((2, 3), (3,))],
    "AssignAddVariableOp": SET + WRONG_SHAPES, "AssignSubVariableOp": SET + WRONG_SHAPES,
    "ScatterAdd": SCATTER, "ScatterSub": SCATTER, "ScatterUpdate": SCATTER,
    "ResourceScatterAdd": SCATTER, "ResourceScatterSub": SCATTER, "ResourceScatterUpdate": SCATTER,
    "ResourceGather": [Use(v, F(i)) for v, i, _ in UPDATES] + [
        Use((2, 3), F([[0, 2], [1, 1]]), batch_dims=1), Use((2, 3, 2), F([2, 0]), batch_dims=1)],
    "ResourceGatherNd": [Use(v, F(i)) for v, i in [
        ((5,), [[1], [4]]), ((2, 3), [[0, 1], [1, 2]]), ((2, 3), [[1]]), ((2, 3), [1, 2]), ((2, 3), [[]]),
        ((2, 3), [[2, 0]]), ((2, 3), [[0, -1]]), ((2, 3), [[0, 0, 0]]), ((2, 3), 0)]],
    "StridedSliceAssign": slice_updates(),
    "SampleDistortedBoundingBoxV2": [Use(*u.inputs, dtypes=u.dtypes, seed=3, seed2=9, **u.attrs) for u in SAMPLES],
    "SampleDistortedBoundingBox": [Use(*u.inputs[:2], dtypes=u.dtypes, seed=3, seed2=9, min_object_covered=u.inputs[2].values, **u.attrs)
                                   for u in SAMPLES],
    "IsVariableInitialized": [Use(s) for s in SHAPES], "VarIsInitializedOp": [Use(s) for s in SHAPES],
    "ReadVariableOp": [Use(s) for s in SHAPES], "VariableShape": [Use(s) for s in SHAPES],
    "RandomUniform": random_uses(), "RandomStandardNormal": random_uses(),
    "TruncatedNormal": random_uses(),
    "RandomUniformInt": [Use(F(s), F(low), F(high), seed=3, seed2=9) for s in RANDOM_SHAPES
                         for low, high in ((0, 10), (-5, 1000))] + [
                             Use(F([3]), F(5), F(5), seed=1), Use(F([3]), F([1]), F(5), seed=1)],
    "RandomShuffle": [Use(s, seed=3, seed2=9) for s in SHAPES + [(40,), (30, 2)]],
}


class StateGraph:
    """One node for each case, with its variables."""

    def __init__(self, cases):
        self.graph, self.operations, self.feeds = tf.Graph(), [], []
        self.initializers, self.variables = [], []
        with self.graph.as_default():
            for number, case in enumerate(cases):
                self.add(case, f"{case.op.name}_{number}")

    def add(self, case, name):
        inputs, initializers, variables, feeds = [], [], [], {}
        for k, (arg, array) in enumerate(zip(case.op.input_arg, case.arrays)):
            value = tf.placeholder(tf.as_dtype(array.dtype))
            if arg.is_ref or arg.type == types_pb2.DT_RESOURCE:
                variable = Variable(f"{name}_{k}", array, arg.is_ref)
                initializers.append((variable.assign(value), {value: array}))
                variables.append(variable.read)
                inputs.append(variable.handle)
            else:
                inputs.append(value)
                feeds[value] = array
        self.operations.append(self.graph.create_op(
            case.op.name, inputs, name="case",
            attrs={k: attr_value(v) for k, v in case.attrs.items()}))
        self.feeds.append(feeds)
        self.initializers.append(initializers)
        self.variables.append(variables)

    def initialize(self, session, indices):
        chosen = [pair for i in indices for pair in self.initializers[i]]
        session.run([op for op, _ in chosen], {k: v for _, f in chosen for k, v in f.items()})

    def step(self, session, indices):
        """The outputs of these cases after one step."""
        fetches = [list(self.operations[i].outputs) or self.operations[i] for i in indices]
        feeds = {k: v for i in indices for k, v in self.feeds[i].items()}
        return [[np.asarray(v) for v in outs or []] for outs in session.run(fetches, feeds)]

    def run(self, session, indices):
        """The outputs of two steps and the variables after them."""
        self.initialize(session, indices)
        first, second = self.step(session, indices), self.step(session, indices)
        after = session.run([self.variables[i] for i in indices])
        return [a + b + [np.asarray(v) for v in c] for a, b, c in zip(first, second, after)]

    def run_alone(self, session, index):
        try:
            return self.run(session, [index])[0]
        except errors_impl.OpError as e:
            return Failure(e.error_code, e.message)

    def refused(self, session, indices):
        """Those whose first step fails, with the failure."""
        self.initialize(session, indices)
        failures = {}
        for i in indices:
            try:
                self.step(session, [i])
            except errors_impl.OpError as e:
                failures[i] = Failure(e.error_code, e.message)
        return failures


class Variable:
    """A reference or resource variable."""

    def __init__(self, name, array, is_ref):
        dtype = tf.as_dtype(array.dtype)
        if is_ref:
            self.handle = tf.raw_ops.VariableV2(shape=array.shape, dtype=dtype, shared_name=name)
            self.read = tf.raw_ops.Identity(input=self.handle)
            self.assign = lambda value: tf.raw_ops.Assign(ref=self.handle, value=value).op
        else:
            self.handle = tf.raw_ops.VarHandleOp(shape=array.shape, dtype=dtype, shared_name=name)
            self.read = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=dtype)
            self.assign = lambda value: tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)


def run_with_state(target, cases):
    """The results of all cases on TensorFlow, and on Tenon; None for what is left out: a use that is
    an error in its first dtype is run in no other."""
    graph = StateGraph(cases)
    wanted, got = [None] * len(cases), [None] * len(cases)
    first = sorted({c.use: i for i, c in reversed(list(enumerate(cases)))}.values())
    with tf.Session(graph=graph.graph, config=session_config()) as session:
        failures = graph.refused(session, first)
    for i, failure in failures.items():
        wanted[i] = failure
    wrong = {cases[i].use for i in failures}
    good = [i for i, c in enumerate(cases) if c.use not in wrong]
    # A session of its own: the random numbers begin again.
    with tf.Session(graph=graph.graph, config=session_config()) as session:
        for i, values in zip(good, graph.run(session, good)):
            wanted[i] = values
    with tf.Session(target, graph=graph.graph, config=session_config()) as session:
        try:
            for i, values in zip(good, graph.run(session, good)):
                got[i] = values
        except errors_impl.OpError:
            for i in good:
                got[i] = graph.run_alone(session, i)
        for i in failures:
            got[i] = graph.run_alone(session, i)
    return wanted, got
