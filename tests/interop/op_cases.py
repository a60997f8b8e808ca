# SPDX-License-Identifier: Apache-2.0
"""Cases of an op for comparison with TensorFlow: arrays and attributes, made from its OpDef.

An op without hints is tried on shapes that suit elementwise ops. A hint (op_hints.py) is one use of
the op: for each argument a shape, which is filled with samples of the argument's dtype, or fixed
values; and attributes. Each is repeated for every dtype, and with special values.
"""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels, op_def_registry

PLAIN, SPECIAL = "plain", "special"

SHAPES_1 = [(), (0,), (1,), (3,), (37,), (0, 3), (2, 3), (2, 1, 3, 2), (1, 2, 1, 2, 3)]
SHAPES_2 = [((), ()), ((3,), (3,)), ((33,), (33,)), ((2, 3), (2, 3)), ((2, 1, 3, 2), (2, 1, 3, 2)),
            ((0,), (0,)), ((0, 3), (0, 3)),
            ((), (3,)), ((3,), ()), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)),
            ((2, 3, 1, 2), (3, 4, 1)), ((1, 2, 1, 3, 1), (2, 1, 2, 1, 2)), ((0,), (1,)),
            ((2, 1), (0,)), ((0, 3), ()),
            ((2,), (3,)), ((2, 3), (2,)), ((0,), (2,))]
SHAPES_3 = [((), (), ()), ((3,), (3,), (3,)), ((2, 1, 3, 2),) * 3, ((0,),) * 3,
            ((2, 3), (), ()), ((2, 3), (3,), (3,)), ((3,), (2, 3), (2, 3)), ((), (2, 3), (2, 3)),
            ((2,), (2, 3), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((2, 3), (3,), (2, 2))]

QUANTIZED = {"qint8", "quint8", "qint16", "quint16", "qint32"}
VALUES_OF_ANY = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
                 "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "string"]


class Fixed:
    """An argument's values, in the argument's dtype."""

    def __init__(self, values):
        self.values = values


class Each(list):
    """What an argument that stands for several tensors (N * T, list(type)) gets."""


class Use:
    """One use of an op. `dtypes` limits the dtypes of T; `plain` leaves out the special values."""

    def __init__(self, *inputs, dtypes=None, plain=False, **attrs):
        self.inputs, self.dtypes, self.plain, self.attrs = inputs, dtypes, plain, attrs


def same(uses, *names):
    return {name: uses for name in names}


def with_attrs(uses, **attrs):
    """Each use once more, with these attributes."""
    return [Use(*u.inputs, dtypes=u.dtypes, plain=u.plain, **{**u.attrs, **attrs}) for u in uses]


def both(uses, *names):
    """The uses with all combinations of these boolean attributes."""
    for name in names:
        uses = with_attrs(uses, **{name: False}) + with_attrs(uses, **{name: True})
    return uses


class Case:
    """One node: op, attributes (dtypes, numbers, strings, lists), and an array for each input.
    `label` says with which values; `use` is the same number for one use in several dtypes."""

    def __init__(self, op, attrs, arrays, label, use):
        self.op, self.attrs, self.arrays = op, attrs, arrays
        self.label, self.use = label, use

    def __str__(self):
        attrs = ", ".join(f"{k}={v.name if isinstance(v, tf.DType) else v}"
                          for k, v in self.attrs.items())
        inputs = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{self.op.name}({inputs}) {{{attrs}}} {self.label}"


def sample(dtype, shape, fill, position):
    """Values of a dtype; `position` is the argument's, so that arguments differ."""
    n = int(np.prod(shape))
    kind = dtype.as_numpy_dtype
    ramp = np.arange(n) + 1
    if dtype == tf.string:
        words = [b"", b"a", b"bc", b"a\x00b", "grün".encode(), b"-1.5", b"12"]
        values = np.array([words[(i * 3 + position) % len(words)] for i in range(n)], dtype=object)
    elif dtype == tf.bool:
        values = (ramp * 7 + position) % 3 > 0
    elif fill == SPECIAL:
        special = special_values(dtype)
        # The stride makes the values of two arguments meet in all combinations.
        values = np.array([special[(i + position * (1 + i // len(special))) % len(special)]
                           for i in range(n)], dtype=kind)
    elif dtype.is_integer:
        values = (ramp * 5 + position * 3) % 9 - (0 if dtype.is_unsigned else 4)
    else:
        values = np.sin(ramp * 1.7 + position * 0.9) * 2.3 + 0.1
        if dtype.is_complex:
            values = values + 1j * np.cos(ramp * 0.6 + position)
    return np.asarray(values).astype(kind).reshape(shape)


def special_values(dtype):
    if dtype.is_integer:
        low, high = dtype.min, dtype.max
        return [0, 1, low, high, low + 1, high - 1, 2] + ([] if dtype.is_unsigned else [-1, -2])
    floats = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 100.0,
              -30.0, 1e-4]
    if dtype.is_complex:
        return [complex(0, 0), complex(1, -1), complex(-2, 0.5), complex(0, 3), complex(-1, 0),
                complex(float("nan"), 1), complex(-0.5, -0.25)]
    return floats


def type_attrs(op):
    return [a for a in op.attr if a.type == "type"]


class Dtypes:
    """Which dtypes of an op's type attributes have kernels, here and in TensorFlow."""

    def __init__(self, op, listed):
        self.ours = [{name: {tf.as_dtype(t) for t in types} for name, types in k["types"].items()}
                     for k in listed["kernels"]]
        self.theirs = [{c.name: {tf.as_dtype(t) for t in c.allowed_values.list.type}
                        for c in k.constraint}
                       for k in kernels.get_registered_kernels_for_op(op.name).kernel
                       if k.device_type in ("CPU", "DEFAULT")]
        self.allowed = {a.name: [tf.as_dtype(t) for t in a.allowed_values.list.type]
                        or [tf.as_dtype(t) for t in VALUES_OF_ANY] for a in type_attrs(op)}

    def both(self, types):
        return all(any(all(types[name] in allowed for name, allowed in kernel.items()
                           if name in types) for kernel in side)
                   for side in (self.ours, self.theirs))

    def choices(self, op):
        """Each choice of type attributes: all of a first one's dtypes, the others varied singly."""
        names = [a.name for a in type_attrs(op)]
        values = {name: [t for t in self.allowed[name] if t.name not in QUANTIZED and
                         t.name != "variant"] for name in names}
        if op.name in ("Cast", "Bitcast"):
            every = [dict(zip(names, c)) for c in itertools.product(*(values[n] for n in names))]
            return [types for types in every if self.both(types)]
        names.sort(key=lambda n: n not in ("T", "dtype", "Tparams"))
        defaults = {a.name: tf.as_dtype(a.default_value.type) for a in type_attrs(op)
                    if a.HasField("default_value")}
        for name in names:
            defaults.setdefault(name, tf.float32 if tf.float32 in values[name] else
                                tf.int32 if tf.int32 in values[name] else values[name][0])
        defaults = {name: defaults[name] for name in names}
        found = [defaults] + [dict(defaults, **{name: t}) for name in names for t in values[name]
                              if t != defaults[name]]
        return [types for types in found if self.both(types)]


def generic_uses(op):
    count = len(op.input_arg)
    if any(a.number_attr or a.type_list_attr for a in op.input_arg):
        return [Use(Each([s] * n)) for n in (1, 2, 3) for s in SHAPES_1]
    shapes = {0: [()], 1: [(s,) for s in SHAPES_1], 2: SHAPES_2, 3: SHAPES_3}[count]
    return [Use(*s) for s in shapes]


def fill_argument(arg, given, types, fill, position, attrs):
    """The arrays of one argument, and the length or type attributes that follow from it."""
    several = bool(arg.number_attr or arg.type_list_attr)
    parts = given if several else [given]
    arrays = []
    for i, part in enumerate(parts):
        if arg.type_list_attr:
            dtype = attrs[arg.type_list_attr][i]
        elif arg.type == types_pb2.DT_RESOURCE:
            dtype = variable_dtype(attrs)
        elif arg.type_attr:
            dtype = types.get(arg.type_attr, attrs.get(arg.type_attr))
        else:
            dtype = tf.as_dtype(arg.type)
        if isinstance(part, Fixed):
            values = part.values
            if dtype == tf.string:
                values = np.array(values, dtype=object)
            arrays.append(np.asarray(values).astype(dtype.as_numpy_dtype))
        else:
            arrays.append(sample(dtype, part, fill, position + i))
    if arg.number_attr:
        attrs[arg.number_attr] = len(parts)
    return arrays


def variable_dtype(attrs):
    """That of the variable behind a resource argument."""
    return attrs.get("dtype", attrs.get("T", tf.float32))


def default_of(attr):
    value = attr.default_value
    kind = value.WhichOneof("value")
    if kind == "type":
        return tf.as_dtype(value.type)
    if kind == "list":
        items = value.list
        return list(items.i) or list(items.s) or list(items.f) or []
    return getattr(value, kind)


def make_case(op, use, types, fill, number):
    attrs = {a.name: default_of(a) for a in op.attr
             if a.HasField("default_value") and a.type != "type"}
    attrs.update(use.attrs)
    attrs.update(types)
    arrays, position = [], 0
    for arg, given in zip(op.input_arg, use.inputs):
        made = fill_argument(arg, given, types, fill, position, attrs)
        position += len(made)
        arrays.append(made)
    return Case(op, attrs, [a for made in arrays for a in made], fill, number)


def fills(use, types, hinted):
    # Elementwise ops compute, each dtype in its own way; the others mostly move what they are given.
    main = next(iter(types.values()), None)
    if hinted and main not in (tf.float32, tf.int32):
        return [PLAIN]
    if use.plain or not any(t not in (tf.string, tf.bool) for t in types.values()):
        return [PLAIN]
    return [PLAIN, SPECIAL]


def cases_of(listed, hints):
    """All cases of one op of `tenon ops --json`."""
    op = op_def_registry.get(listed["name"])
    dtypes, names = Dtypes(op, listed), {a.name for a in type_attrs(op)}
    found = []
    # The hints of some ops name all dtypes, of which only some that differ go together.
    for types in dtypes.choices(op) or [{}]:
        for number, use in enumerate(hints.get(op.name) or generic_uses(op)):
            free = dict(types)
            free.update({k: v for k, v in use.attrs.items() if k in names})
            if use.dtypes and not all(t.name in use.dtypes for n, t in types.items() if n == "T"):
                continue
            if free != types and not dtypes.both(free):
                continue
            for fill in fills(use, free, op.name in hints):
                found.append(make_case(op, use, free, fill, number))
    return found
