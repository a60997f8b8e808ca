#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every op of TensorFlow's registry that is declared here: a node of it, with only the attributes
that have no default, is imported, its attributes filled in as TensorFlow fills them; and the steps
that do not need the ops without a kernel run."""
import os
import subprocess
import sys
import tempfile

from tensorflow_environment import TENON, Servers, main_with_tensorflow

# These are of the runtime: clients may not bring them.
OF_THE_RUNTIME = {"_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv"}
# TensorFlow does not know them.
OURS = {"HorovodAllgather", "HorovodAllreduce", "HorovodAlltoall", "HorovodBroadcast", "HorovodLocalRank",
        "HorovodLocalSize", "HorovodRank", "HorovodReducescatter", "HorovodSize", "_Conv2DWithBias", "_CopyToDevice", "_CopyToHost", "_CaptureKernel", "_MaxPoolGradOfPlaces",
        "_MaxPoolWithPlaces", "_RecvFromPeer", "_ReluMaxPoolGradOfPlaces",
        "_ReluMaxPoolWithPlaces", "_SendToPeer", "TenonGlmBadRow", "TenonGlmBatch", "TenonGlmBatchGradient",
        "TenonGlmScores", "TenonGlmStream", "TenonGlmStreamOpen", "TenonGlmSums",
        "TenonTable", "TenonTableLevels", "TenonTableOpen", "TenonTableRead", "TenonTableRecode",
        "TenonTableRejected", "TenonTableTexts"}


def choose_attrs(op_def, types_pb2):
    """Values for the attributes of the node, and those of them that have no default."""
    from tensorflow.core.framework import attr_value_pb2
    chosen, given = {}, {}
    for attr in op_def.attr:
        if attr.HasField("default_value"):
            chosen[attr.name] = attr.default_value
            continue
        value = attr_value_pb2.AttrValue()
        count = max(1, attr.minimum)
        kind = attr.type
        a_type = attr.allowed_values.list.type[0] if attr.allowed_values.list.type else (
            types_pb2.DT_FLOAT)
        if kind == "type":
            value.type = a_type
        elif kind == "list(type)":
            value.list.type.extend([a_type] * count)
        elif kind == "int":
            value.i = max(count, 2 if attr.name == "window_size" else 1)
        elif kind == "list(int)":
            # Strides and sizes of windows, one a dimension of images or volumes.
            dims = 5 if "3D" in op_def.name else 4
            if attr.name in ("strides", "ksize", "rates"):
                count = max(count, dims)
            value.list.i.extend([1] * count)
        elif kind == "float":
            value.f = 1
        elif kind == "list(float)":
            value.list.f.extend([1] * count)
        elif kind == "bool":
            value.b = True
        elif kind == "string":
            value.s = attr.allowed_values.list.s[0] if attr.allowed_values.list.s else b"s"
            if attr.name == "equation":
                value.s = b"a->a"
        elif kind == "list(string)":
            value.list.s.extend([b"s"] * count)
        elif kind == "shape":
            value.shape.unknown_rank = True
        elif kind == "list(shape)":
            value.list.shape.extend([value.shape] * count)
            for shape in value.list.shape:
                shape.unknown_rank = True
        elif kind == "tensor":
            value.tensor.dtype = types_pb2.DT_FLOAT
            value.tensor.tensor_shape.SetInParent()
            value.tensor.float_val.append(0)
        elif kind == "func":
            value.func.name = "f"
        elif kind == "list(func)":
            value.list.func.add().name = "f"
        else:
            raise ValueError(f"{op_def.name}: {attr.name} is a {kind}")
        chosen[attr.name] = given[attr.name] = value
    if op_def.name in ("Const", "HostConst"):
        chosen["dtype"].type = types_pb2.DT_FLOAT
    return chosen, given


def input_types(arg, attrs):
    if arg.type_list_attr:
        return list(attrs[arg.type_list_attr].list.type)
    dtype = attrs[arg.type_attr].type if arg.type_attr else arg.type
    count = attrs[arg.number_attr].i if arg.number_attr else 1
    return [dtype + 100 if arg.is_ref else dtype] * count


def add_node(graph, op_def, types_pb2):
    """Adds `op_def` as a node of its own name, fed by placeholders (variables where it takes
    references)."""
    chosen, given = choose_attrs(op_def, types_pb2)
    inputs = []
    for arg in op_def.input_arg:
        for dtype in input_types(arg, chosen):
            is_ref = dtype > 100
            source = graph.node.add(name=f"of{op_def.name}/input_{len(inputs)}",
                                    op="VariableV2" if is_ref else "Placeholder")
            source.attr["dtype"].type = dtype % 100
            source.attr["shape"].shape.unknown_rank = True
            inputs.append(source.name)
    # A node's name may not begin with an underscore.
    node = graph.node.add(name="the" + op_def.name, op=op_def.name, input=inputs)
    for name, value in given.items():
        node.attr[name].CopyFrom(value)
    return chosen


def inspect(graph, folder):
    source, filled = os.path.join(folder, "graph.pb"), os.path.join(folder, "filled.pb")
    with open(source, "wb") as f:
        f.write(graph.SerializeToString())
    done = subprocess.run([TENON, "inspect", source, "--output", filled], capture_output=True,
                          text=True)
    if done.returncode:
        return None, done.stderr.strip()
    with open(filled, "rb") as f:
        return type(graph).FromString(f.read()), ""


def same(a, b):
    """Whether two attribute values are equal; tensors may be written differently."""
    from tensorflow.python.framework import tensor_util
    if a.HasField("tensor") and b.HasField("tensor"):
        return a.tensor.dtype == b.tensor.dtype and (
            tensor_util.MakeNdarray(a.tensor).tolist() == tensor_util.MakeNdarray(b.tensor).tolist())
    return a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)


def check_import(names, op_def_registry, graph_pb2, types_pb2):
    """What is wrong, op by op."""
    whole = graph_pb2.GraphDef()
    whole.versions.producer = 1645
    wanted, failures = {}, []
    for name in names:
        op_def = op_def_registry.get(name)
        if name in OURS:
            continue
        if op_def is None:
            failures.append(f"TensorFlow has no op {name}")
        elif name not in OF_THE_RUNTIME:
            wanted["the" + name] = add_node(whole, op_def, types_pb2)
    with tempfile.TemporaryDirectory() as folder:
        filled, error = inspect(whole, folder)
        if filled is None:
            return whole, failures + [error]
        for name in sorted(OF_THE_RUNTIME):
            graph = graph_pb2.GraphDef()
            add_node(graph, op_def_registry.get(name), types_pb2)
            _, error = inspect(graph, folder)
            if f"the{name}" not in error or name not in error:
                failures.append(f"{name} in a client's graph: {error or 'is taken'}")
    for node in filled.node:
        for attr, value in wanted.get(node.name, {}).items():
            if attr not in node.attr or not same(node.attr[attr], value):
                failures.append(f"{node.op}: {attr} is {node.attr.get(attr)}, wanted {value}")
        extra = set(node.attr) - set(wanted.get(node.name, node.attr)) - {"_output_shapes"}
        if extra:
            failures.append(f"{node.op}: has {extra} besides")
    return whole, failures


def check_steps(whole):
    """Steps of the graph of all ops: those that need no op without a kernel run, and the others say
    what is missing."""
    whole.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    whole.node.add(name="square", op="Square", input=["x"]).attr["T"].type = 1
    failures = []
    with tempfile.TemporaryDirectory() as folder, Servers({"local": 1}) as servers:
        path = os.path.join(folder, "graph.pb")
        with open(path, "wb") as f:
            f.write(whole.SerializeToString())
        for master in ([], ["--master", servers.target("local")]):
            def run(*arguments):
                return subprocess.run([TENON, "run", path, *master, *arguments],
                                      capture_output=True, text=True)
            done = run("--feed", "x=3", "--fetch", "square")
            if done.returncode or "9" not in done.stdout:
                failures.append(f"a step beside ops without a kernel: {done.stdout}{done.stderr}")
            done = run("--target", "theDummyMemoryCache")
            for part in ("node 'theDummyMemoryCache' (DummyMemoryCache) on /job:",
                         "No OpKernel was registered to support Op 'DummyMemoryCache' on CPU with "
                         "these attrs: []; registered kernels: none"):
                if part not in done.stderr or done.returncode != 1:
                    failures.append(f"{part!r} is not in {done.stderr!r}")
    return failures


def main():
    import tensorflow.compat.v1 as tf
    from tensorflow.core.framework import graph_pb2, types_pb2
    from tensorflow.python.framework import op_def_registry
    tf.logging.set_verbosity(tf.logging.ERROR)
    listed = subprocess.run([TENON, "ops"], check=True, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    whole, failures = check_import(names, op_def_registry, graph_pb2, types_pb2)
    if not failures:
        failures = check_steps(whole)
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"imported {len(names) - len(OF_THE_RUNTIME) - len(OURS)} ops")
    return 1 if failures or len(names) != 1214 + len(OURS) else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
