# SPDX-License-Identifier: Apache-2.0
"""Graphs of a few nodes as text, and arrays as NumPy's files, for the tests of the command: only Python's own
library is needed."""
import os
import struct

FLOAT, INT32, STRING = "DT_FLOAT", "DT_INT32", "DT_STRING"


def node(name, op, *inputs, **attrs):
    """A NodeDef; attributes are the text of their AttrValue: T="type: DT_FLOAT"."""
    lines = [f'name: "{name}" op: "{op}"'] + [f'input: "{i}"' for i in inputs]
    lines += [f'attr {{ key: "{key}" value {{ {value} }} }}' for key, value in attrs.items()]
    return "node { " + " ".join(lines) + " }\n"


def shape_text(shape):
    return "shape { " + " ".join(f"dim {{ size: {d} }}" for d in shape) + " }"


def placeholder(name, dtype, shape):
    return node(name, "Placeholder", dtype=f"type: {dtype}", shape=shape_text(shape))


def constant(name, dtype, shape, values):
    field = {FLOAT: "float_val", INT32: "int_val", STRING: "string_val"}[dtype]
    texts = " ".join(f'{field}: {v!r}' if dtype != STRING else f'{field}: "{v}"' for v in values)
    tensor = f"tensor {{ dtype: {dtype} tensor_{shape_text(shape)} {texts} }}"
    return node(name, "Const", dtype=f"type: {dtype}", value=tensor)


def variable(name, shape, initial):
    """A variable of floats with its initial value, NAME/initial, and NAME/assign and NAME/read."""
    return (constant(name + "/initial", FLOAT, shape, initial)
            + node(name, "VariableV2", dtype=f"type: {FLOAT}", shape=shape_text(shape))
            + node(name + "/assign", "Assign", name, name + "/initial", T=f"type: {FLOAT}")
            + node(name + "/read", "Identity", name, T=f"type: {FLOAT}"))


# y = 2 x for rows of three; total = the sum of y; twice = 2 n; same = t; w [3] = (1, 2, 3), which
# next counts up by one; z = y + w.
ROWS = (placeholder("x", FLOAT, [-1, 3]) + node("y", "AddV2", "x", "x", T=f"type: {FLOAT}")
        + constant("axes", INT32, [2], [0, 1])
        + node("total", "Sum", "y", "axes", T=f"type: {FLOAT}", Tidx=f"type: {INT32}")
        + placeholder("n", INT32, [-1]) + node("twice", "AddV2", "n", "n", T=f"type: {INT32}")
        + placeholder("t", STRING, [-1]) + node("same", "Identity", "t", T=f"type: {STRING}")
        + variable("w", [3], [1.0, 2.0, 3.0]) + constant("one", FLOAT, [3], [1.0, 1.0, 1.0])
        + node("next", "AssignAdd", "w", "one", T=f"type: {FLOAT}")
        + node("z", "AddV2", "y", "w/read", T=f"type: {FLOAT}")
        + node("init", "NoOp", "^w/assign"))


def write_graph(folder, text=ROWS, name="graph.pbtxt"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


_CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q"}


def npy_bytes(shape, values, descr="<f4", column_major=False):
    """An array in NumPy's format; `values` lie in the file as they come."""
    shape_of = "(" + "".join(f"{d}, " for d in shape) + ")"
    header = f"{{'descr': '{descr}', 'fortran_order': {column_major}, 'shape': {shape_of}, }}\n"
    data = struct.pack(f"<{len(values)}{_CODES[descr]}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def write_npy(path, shape, values, **options):
    with open(path, "wb") as out:
        out.write(npy_bytes(shape, values, **options))
    return path
