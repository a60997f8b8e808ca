# SPDX-License-Identifier: Apache-2.0
"""Writes array_cases.json beside this file: what TensorFlow 2.15.1's kernels make of random arguments
of the ops that rearrange and select values, errors included."""
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

R = np.random.RandomState(5)
CASES = []


def encode(value):
    array = np.asarray(value)
    if array.dtype.kind in "SO":
        array = np.asarray(value, dtype=object)
    values = array.ravel().tolist()
    if array.dtype == object:
        values = [v.decode("latin1") for v in values]
    kind = "string" if array.dtype == object else array.dtype.name
    return {"t": kind, "s": list(array.shape), "v": values}


def case(op, tensors, **attrs):
    """Runs the raw op `op` with `tensors`, a list of (argument, array or list of arrays)."""
    entry = {"op": op, "in": [], "attrs": attrs}
    arguments = {}
    for name, value in tensors:
        many = isinstance(value, list)
        arguments[name] = [tf.constant(v) for v in value] if many else tf.constant(value)
        entry["in"].extend(encode(v) for v in (value if many else [value]))
    try:
        out = getattr(tf.raw_ops, op)(**arguments, **attrs)
    except tf.errors.OpError as error:
        entry["error"] = error.error_code
    else:
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        entry["out"] = [encode(o.numpy()) for o in outs]
    CASES.append(entry)


def shape(low=0, high=4):
    return [int(R.choice([0, 1, 2, 2, 3, 3, 4])) for _ in range(R.randint(low, high + 1))]


def data(dims, dtype=None):
    dtype = dtype or R.choice(["float32", "int32", "int64", "bool", "string", "float64", "int8"])
    size = int(np.prod(dims, dtype=int))
    if dtype == "string":
        return np.array([b"s%d" % i for i in R.randint(0, 9, size)], dtype=object).reshape(dims)
    if dtype == "bool":
        return R.randint(0, 2, size).astype(bool).reshape(dims)
    return R.randint(-9, 10, size).astype(dtype).reshape(dims)


def ints(values, dtype=None):
    return np.array(values, dtype=dtype or R.choice(["int32", "int64"]))


def slices():
    dims = shape()
    begin, size = [], []
    for d in dims:
        b = R.randint(0, d + 1)
        begin.append(b)
        size.append(R.choice([-1, R.randint(0, d - b + 1)]) if R.rand() > 0.05 else d + 1)
    index = R.choice(["int32", "int64"])
    case("Slice", [("input", data(dims)), ("begin", ints(begin, index)), ("size", ints(size, index))])


def strided():
    dims = shape(0, 4)
    n = R.randint(0, len(dims) + 3)
    index = "int32"
    begin, end = R.randint(-5, 6, n), R.randint(-5, 6, n)
    strides = R.choice([1, 1, 1, 2, 3, -1, -2, -4], n) if R.rand() > 0.03 else R.randint(-1, 2, n)
    bits = lambda p: int(sum(1 << i for i in range(n) if R.rand() < p))
    masks = {"begin_mask": bits(.3), "end_mask": bits(.3), "ellipsis_mask": 0, "new_axis_mask": bits(.15),
             "shrink_axis_mask": bits(.2)}
    if n and R.rand() < .5:
        masks["ellipsis_mask"] = 1 << int(R.randint(n)) if R.rand() > .05 else bits(.5)
    args = [("begin", ints(begin, index)), ("end", ints(end, index)), ("strides", ints(strides, index))]
    value = data(dims)
    case("StridedSlice", [("input", value)] + args, **masks)
    if "out" in CASES[-1] and R.rand() < .5:
        dy = data(CASES[-1]["out"][0]["s"], "float32")
        case("StridedSliceGrad", [("shape", ints(dims, index))] + args + [("dy", dy)], **masks)


def joins():
    dims = shape(1, 4)
    axis = R.randint(-len(dims), len(dims)) if R.rand() > .05 else len(dims)
    dtype = R.choice(["float32", "int64", "bool", "string"])
    parts = []
    for _ in range(R.randint(2, 5)):
        part = list(dims)
        part[axis % len(dims)] = R.randint(0, 4)
        if R.rand() < .03:
            part[0] += 1
        parts.append(data(part, dtype))
    case("ConcatV2", [("values", parts), ("axis", ints(axis))])
    case("Concat", [("concat_dim", ints(axis, "int32")), ("values", parts)])
    same = [data(dims, dtype) for _ in range(R.randint(1, 4))]
    case("Pack", [("values", same)], axis=int(R.randint(-len(dims) - 1, len(dims) + 1)))
    case("ConcatOffset", [("concat_dim", ints(axis, "int32")),
                          ("shape", [ints(p.shape, "int32") for p in parts])])


def splits():
    dims = shape(1, 4)
    axis = int(R.randint(-len(dims), len(dims)))
    n = int(R.choice([1, 2, 3]))
    if R.rand() > .1:
        dims[axis] = n * R.randint(0, 3)
    case("Split", [("axis", ints(axis, "int32")), ("value", data(dims))], num_split=n)
    sizes = [int(x) for x in R.randint(0, 3, n)]
    dims[axis] = sum(sizes)
    if n > 1 and R.rand() < .5:  # TensorFlow does not resolve the -1 of a single part
        sizes[R.randint(n)] = -1
    if R.rand() < .1:
        sizes[0] += 1
    case("SplitV", [("value", data(dims)), ("size_splits", ints(sizes)), ("axis", ints(axis, "int32"))],
         num_split=n)
    case("Unpack", [("value", data(dims))], num=int(dims[axis]), axis=axis)


def rearrangements():
    dims = shape()
    rank = len(dims)
    case("Tile", [("input", data(dims)), ("multiples", ints(R.randint(0, 4, rank)))])
    perm = R.permutation(rank) if R.rand() > .1 else R.randint(0, max(rank, 1), rank)
    case("Transpose", [("x", data(dims)), ("perm", ints(perm))])
    axes = R.permutation(rank)[:R.randint(0, rank + 1)]
    case("ReverseV2", [("tensor", data(dims)), ("axis", ints([a - rank * R.randint(0, 2) for a in axes]))])
    # Pad takes tensors of at most six dimensions in TensorFlow.
    pads = R.randint(0, 3, (rank, 2)) if R.rand() > .05 else R.randint(-1, 3, (rank, 2))
    case("Pad", [("input", data(dims, "float32")), ("paddings", ints(pads))])
    case("PadV2", [("input", data(dims, "int32")), ("paddings", ints(pads)),
                   ("constant_values", np.int32(7))])
    n = R.randint(0, 6)
    x = R.permutation(n) if R.rand() > .2 else R.randint(-1, n + 1, n)
    case("InvertPermutation", [("x", ints(x))])
    if rank:
        case("Cumsum", [("x", data(dims, "float32")), ("axis", ints(R.randint(-rank, rank)))],
             exclusive=bool(R.rand() < .5), reverse=bool(R.rand() < .5))


def gathers():
    dims = shape(1, 4)
    axis = R.randint(-len(dims), len(dims))
    batch = int(R.randint(0, axis % len(dims) + 1))
    index_dims = dims[:batch] + shape(0, 2)
    limit = dims[axis]
    indices = R.randint(0, limit, index_dims) if limit else np.zeros(index_dims, int)
    if R.rand() < .05:
        indices = indices + 1
    case("GatherV2", [("params", data(dims)), ("indices", ints(indices)), ("axis", ints(axis))],
         batch_dims=batch)
    depth = R.randint(0, len(dims) + 1)
    rows = shape(0, 2)
    tuples = np.stack([R.randint(0, max(d, 1), rows) for d in dims[:depth]], -1) if depth else (
        np.zeros(rows + [0], int))
    tuples = ints(tuples)
    case("GatherNd", [("params", data(dims)), ("indices", tuples)])
    updates = data(rows + dims[depth:], R.choice(["float32", "int32"]))
    if not rows or not depth:
        return  # TensorFlow's ScatterNd wants at least one tuple of at least one index; ours does not
    case("ScatterNd", [("indices", tuples), ("updates", updates), ("shape", ints(dims, tuples.dtype))])


def selections():
    dims = shape()
    case("Where", [("condition", data(dims, R.choice(["bool", "float32", "int64"])))])
    case("Unique", [("x", data([R.randint(0, 8)], R.choice(["int32", "int64", "float32", "string"])))])
    case("UniqueWithCounts", [("x", data([R.randint(0, 8)], "int64"))])
    axis = int(R.randint(-1, len(dims) + 1)) if R.rand() > .1 else len(dims) + 1
    case("OneHot", [("indices", ints(R.randint(-1, 4, dims))), ("depth", np.int32(R.randint(0, 4))),
                    ("on_value", np.float32(2)), ("off_value", np.float32(-1))], axis=axis)
    case("Range", [("start", np.int32(R.randint(-9, 9))), ("limit", np.int32(R.randint(-9, 9))),
                   ("delta", np.int32(R.choice([-3, -2, -1, 0, 1, 2, 3])))])
    case("Range", [("start", np.float32(R.randint(-9, 0))), ("limit", np.float32(R.randint(0, 9))),
                   ("delta", np.float32(R.choice([.25, .5, .1, 1.5])))])
    case("LinSpace", [("start", np.float32(R.randint(-9, 9))), ("stop", np.float32(R.randint(-9, 9))),
                      ("num", np.int32(R.randint(0, 6)))])
    case("Fill", [("dims", ints(dims)), ("value", data([]))])


def partitions():
    row = shape(0, 2)
    groups = [shape(0, 2) for _ in range(R.randint(1, 4))]
    sizes = [int(np.prod(g, dtype=int)) for g in groups]
    # Every row up to the last one is named: TensorFlow leaves the others uninitialised.
    rows = R.permutation(np.arange(sum(sizes)) // 2)
    indices = [ints(part, "int32").reshape(g)
               for part, g in zip(np.split(rows, np.cumsum(sizes)[:-1]), groups)]
    case("DynamicStitch", [("indices", indices),
                           ("data", [data(g + row, "float32") for g in groups])])
    dims = shape(0, 2)
    n = int(R.randint(1, 4))
    part = R.randint(0, n, dims) if R.rand() > .1 else R.randint(-1, n + 1, dims)
    case("DynamicPartition", [("data", data(dims + row)), ("partitions", ints(part, "int32"))],
         num_partitions=n)


def shapes():
    dims = shape()
    size = int(np.prod(dims, dtype=int))
    wanted = R.choice([1, 2, 3, -1, 0], R.randint(0, 4)).tolist()
    case("Reshape", [("tensor", data(dims)), ("shape", ints(wanted))])
    case("Reshape", [("tensor", data(dims)), ("shape", ints([size, -1][:R.randint(1, 3)]))])
    case("ExpandDims", [("input", data(dims)), ("axis", ints(R.randint(-len(dims) - 2, len(dims) + 2)))])
    ones = [i for i, d in enumerate(dims) if d == 1 or R.rand() < .05]
    case("Squeeze", [("input", data(dims))], axis=ones[:R.randint(0, 3)])
    for op in ("Shape", "Size", "Rank"):
        case(op, [("input", data(dims))])
    case("Bitcast", [("input", data(shape(1, 3), "float32"))], type="uint8")
    case("Bitcast", [("input", data(shape(0, 2) + [int(R.choice([1, 2]))], "int32"))], type="int64")


def main():
    for make, times in ((slices, 25), (strided, 110), (joins, 20), (splits, 20), (rearrangements, 25),
                        (gathers, 35), (selections, 12), (partitions, 15), (shapes, 15)):
        for _ in range(times):
            make()
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "array_cases.json"), "w") as file:
        lines = [json.dumps(c, separators=(",", ":"), default=int) for c in CASES]
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
    errors = sum("error" in c for c in CASES)
    print(f"{len(CASES)} cases, {errors} of them errors")


if __name__ == "__main__":
    main()
