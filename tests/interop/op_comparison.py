# SPDX-License-Identifier: Apache-2.0
"""Runs cases of an op on TensorFlow and on a Tenon server, and compares what comes out.

Cases without state: TensorFlow's kernels run eagerly, one case at a time, which also tells which
cases are errors. Tenon gets one graph with all cases that TensorFlow can do, and each of the others
in a step of its own.
"""
import re

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl

# Rounding: the relative difference that is no difference, and the absolute one beside it.
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 4e-6, "float64": 1e-13,
              "complex64": 1e-5, "complex128": 1e-13}


class Failure:
    """What a case gives instead of values."""

    def __init__(self, code, message):
        self.code, self.message = code, message

    def __repr__(self):
        text = re.sub(r"(?s)Graph execution error:.*(Node: '|node ')", "", self.message)
        kind = errors_impl.exception_type_from_error_code(self.code).__name__
        return f"{kind}: {' '.join(text.split())[:160]}"


def attr_value(value):
    """A Python value as an AttrValue."""
    out = tf.AttrValue()
    if isinstance(value, tf.DType):
        out.type = value.as_datatype_enum
    elif isinstance(value, bool):
        out.b = value
    elif isinstance(value, int):
        out.i = value
    elif isinstance(value, float):
        out.f = value
    elif isinstance(value, (str, bytes)):
        out.s = value if isinstance(value, bytes) else value.encode()
    elif isinstance(value, tf.TensorShape):
        out.shape.CopyFrom(value.as_proto())
    else:
        out.list.SetInParent()
        for item in value:
            one = attr_value(item)
            field = one.WhichOneof("value")
            getattr(out.list, field).append(getattr(one, field))
    return out


def eager_attrs(op, attrs):
    flat = []
    for a in op.attr:
        if a.name not in attrs:
            continue
        value = attrs[a.name]
        if isinstance(value, tf.DType):
            value = value.as_datatype_enum
        elif isinstance(value, (list, tuple)):
            value = [v.as_datatype_enum if isinstance(v, tf.DType) else v for v in value]
        flat += [a.name, value]
    return flat


def number_of_outputs(op, attrs):
    count = 0
    for arg in op.output_arg:
        if arg.number_attr:
            count += attrs[arg.number_attr]
        elif arg.type_list_attr:
            count += len(attrs[arg.type_list_attr])
        else:
            count += 1
    return count


class Constants:
    """Tensors of arrays, made once for equal arrays."""

    def __init__(self, make):
        self.make, self.made = make, {}

    def __call__(self, array):
        data = repr(array.tolist()) if array.dtype == object else array.tobytes()
        key = (str(array.dtype), array.shape, data)
        if key not in self.made:
            self.made[key] = self.make(array)
        return self.made[key]


def run_eagerly(case, tensor):
    ctx = context.context()
    try:
        outputs = pywrap_tfe.TFE_Py_Execute(
            ctx._handle, "/device:CPU:0", case.op.name.encode(), [tensor(a) for a in case.arrays],
            tuple(eager_attrs(case.op, case.attrs)), number_of_outputs(case.op, case.attrs))
    except errors_impl.OpError as e:
        return Failure(e.error_code, e.message)
    return [t.numpy() for t in outputs]


def run_tensorflow(cases):
    """For each case a list of arrays, or a Failure."""
    with context.eager_mode():
        context.ensure_initialized()
        tensor = Constants(lambda a: tf.constant(a, tf.as_dtype(a.dtype)))
        return [run_eagerly(case, tensor) for case in cases]


class CaseGraph:
    """A graph with one node for each case, fed by placeholders."""

    def __init__(self, cases, known_shapes):
        self.graph, self.feeds = tf.Graph(), {}
        self.operations, self.inputs, self.outputs = [], [], []
        with self.graph.as_default():
            self.placeholder = Constants(lambda a: self.fed(a, known_shapes))
            for case in cases:
                op, inputs = self.node(case)
                self.operations.append(op)
                self.outputs.append(list(op.outputs) if op else [])
                self.inputs.append(inputs)

    def node(self, case):
        """The node of a case and its inputs; None when TensorFlow makes no node of it: some kernels
        take what the op's shape function refuses."""
        attrs = {k: attr_value(v) for k, v in case.attrs.items()}
        inputs = [self.placeholder(a) for a in case.arrays]
        try:
            return self.graph.create_op(case.op.name, inputs, name="case", attrs=attrs), inputs
        except ValueError:
            return None, []

    def fed(self, array, known_shapes):
        p = tf.placeholder(tf.as_dtype(array.dtype), array.shape if known_shapes else None)
        self.feeds[p] = array
        return p

    def feed(self, indices):
        return {p: self.feeds[p] for i in indices for p in self.inputs[i]}

    def run(self, session, indices):
        try:
            fetches = [self.outputs[i] or self.operations[i] for i in indices]
            values = session.run(fetches, self.feed(indices))
        except errors_impl.OpError as e:
            return Failure(e.error_code, e.message)
        return [[np.asarray(v) for v in outs or []] for outs in values]

    def run_halving(self, session, indices):
        """Results of all; what fails is halved till the culprits are alone."""
        if not indices:
            return []
        values = self.run(session, indices)
        if not isinstance(values, Failure):
            return values
        if len(indices) == 1:
            return [values]
        half = len(indices) // 2
        return (self.run_halving(session, indices[:half])
                + self.run_halving(session, indices[half:]))


def session_config():
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def run_in_graph(target, cases, known_shapes, together):
    """For each case a list of arrays, a Failure, or None when it cannot be in a graph."""
    if not cases:
        return []
    graph = CaseGraph(cases, known_shapes)
    results = [None] * len(cases)
    possible = [i for i, op in enumerate(graph.operations) if op]
    with tf.Session(target, graph=graph.graph, config=session_config()) as session:
        if together:
            values = graph.run_halving(session, possible)
        else:
            values = [graph.run_halving(session, [i])[0] for i in possible]
    for i, value in zip(possible, values):
        results[i] = value
    return results


def run_tenon(target, cases, wanted):
    """As run_tensorflow, for the same cases. Of one use's errors only the first dtype's is run, in a
    step of its own; the others give None."""
    results = [None] * len(cases)
    good = [i for i, w in enumerate(wanted) if not isinstance(w, Failure)]
    bad = list({cases[i].use: i for i in reversed(range(len(cases)))
                if isinstance(wanted[i], Failure) and
                wanted[i].code != errors_impl.UNIMPLEMENTED}.values())
    values = run_in_graph(target, [cases[i] for i in good], True, True)
    # One node that the server refuses makes it refuse the graph: once more, each alone.
    for k, value in enumerate(values):
        if isinstance(value, Failure):
            values[k] = run_in_graph(target, [cases[good[k]]], True, False)[0]
    values += run_in_graph(target, [cases[i] for i in bad], False, False)
    for i, value in zip(good + bad, values):
        results[i] = value
    return results


def difference(wanted, got, magnitude=1e-2, any_zero_sign=False):
    """What differs between the results of a case, or None. A difference of floats is relative to
    the value, or to `magnitude` where that is larger: that of the terms of a sum."""
    if isinstance(wanted, Failure) or isinstance(got, Failure):
        if isinstance(wanted, Failure) and isinstance(got, Failure) and wanted.code == got.code:
            return None
        return f"is {describe(got)}, not {describe(wanted)}"
    for i, (w, g) in enumerate(zip(wanted, got)):
        text = array_difference(np.asarray(w), np.asarray(g), magnitude, any_zero_sign)
        if text:
            return f"output {i} {text}"
    return None


def describe(result):
    if isinstance(result, Failure):
        return repr(result)
    return "; ".join(f"{a.dtype}{list(a.shape)} {str(a.ravel()[:6])}" for a in map(np.asarray, result))


def array_difference(w, g, magnitude, any_zero_sign):
    if w.dtype != g.dtype or w.shape != g.shape:
        return f"is {g.dtype}{list(g.shape)}, not {w.dtype}{list(w.shape)}"
    if w.dtype.kind in "OSU" or not tf.as_dtype(w.dtype).is_floating and \
            not tf.as_dtype(w.dtype).is_complex:
        wrong = np.asarray(w != g)
    else:
        wide = np.complex128 if tf.as_dtype(w.dtype).is_complex else np.float64
        with np.errstate(invalid="ignore"):
            wrong = wrong_floats(w.astype(wide), g.astype(wide), TOLERANCES[str(w.dtype)], magnitude,
                                 any_zero_sign)
    if not wrong.any():
        return None
    at = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(wrong)))
    values = np.atleast_1d(g)[at], np.atleast_1d(w)[at]
    return f"is {values[0]!r} at {list(at)}, not {values[1]!r} ({int(wrong.sum())} of {w.size})"


def wrong_floats(w, g, limit, magnitude, any_zero_sign):
    if w.dtype == np.complex128:
        # Which part of an invalid complex number is NaN is left open.
        finite = np.isfinite(w) & np.isfinite(g)
        with np.errstate(all="ignore"):
            near = np.abs(w - g) <= limit * np.maximum(np.abs(w), max(magnitude, 1))
        return np.where(finite, ~near, np.isfinite(w) != np.isfinite(g))
    with np.errstate(all="ignore"):
        near = np.abs(w - g) <= limit * np.maximum(np.abs(w), magnitude)
    same = (w == g) | (np.isnan(w) & np.isnan(g)) | near
    if not any_zero_sign:
        same &= ~((w == 0) & (g == 0) & (np.signbit(w) != np.signbit(g)))
    return ~same
