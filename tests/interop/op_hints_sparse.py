# SPDX-License-Identifier: Apache-2.0
"""How the ops of segments, sparse and ragged tensors are used; see op_hints.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from op_cases import Each, Fixed as F, Use, both, same

SEGMENTS = [((4,), [0, 0, 1, 2]), ((4,), [0, 2, 2, 5]), ((3, 2), [0, 1, 1]), ((3, 2, 1, 2), [0, 0, 3]),
            ((0,), []), ((0, 3), []), ((3, 0), [0, 0, 1])]

# Data, rows of it, and their segments.
SPARSE_SEGMENTS = [Use(d, F(i), F(s)) for d, i, s in [
    ((3, 2), [0, 2, 2, 1], [0, 0, 1, 4]), ((5,), [4, 4, 0], [0, 1, 1]), ((3, 2, 1, 2), [1], [2]),
    ((3, 2), [], []), ((3, 0), [0, 2], [0, 1]), ((9, 40), [8, 0, 3, 3, 5], [1, 1, 1, 2, 2]),
    ((3, 2), [0, 1, 2, 0], [0, 1, 0, 1]), ((3, 2), [0, 1, 2, 0], [0, 1, 2, 0]), ((3, 2), [0, 3], [0, 1]),
    ((3, 2), [0, -1], [0, 1]), ((3, 2), [0, 1], [-1, 0]), ((3, 2), [0, 1, 2], [0, 1]), ((), [0], [0]),
    ((0, 2), [0], [0]), ((3, 0), [0, 7], [0, 1]), ((3, 2), [[0]], [0]), ((3, 2), [0], [[0]]), ((3, 2), 0, 0)]]

SPARSE_SEGMENT_GRADS = [Use(d, F(i), F(s), F(n)) for d, i, s, n in [
    ((3, 2), [3, 1, 3], [0, 2, 2], 4), ((3, 2), [3, 1, 1], [2, 2, 0], 4), ((3, 2), [3, 1], [0, 2], 0),
    ((2,), [1, 0, 1], [0, 0, 1], 2), ((2, 1, 3, 2), [0, 4], [1, 1], 5), ((3, 2), [3, 1], [0, 2], -1),
    ((3, 2), [0, 5], [0, 1], 4), ((3, 2), [-1, 0], [0, 1], 4), ((3, 2), [0, 1], [-1, 0], 4),
    ((3, 2), [0, 1], [0, 4], 4), ((3, 2), [0, 1, 2], [0, 1], 4), ((3, 2), [0], [0], [4]), ((), [0], [0], 4)]]

# Sparse tensors [2, 3] with three entries, most of them wrong in some way: indices, values, shape.
SPARSE = {
    "good": ([[0, 0], [0, 2], [1, 1]], (3,), [2, 3]), "empty": (np.zeros((0, 2)), (0,), [2, 3]),
    "other order": ([[1, 1], [0, 2], [0, 0]], (3,), [2, 3]),
    "repeated": ([[0, 0], [0, 0], [1, 1]], (3,), [2, 3]),
    "other row": ([[0, 0], [0, 1], [2, 1]], (3,), [2, 3]),
    "other column": ([[0, 0], [0, 3], [1, 1]], (3,), [2, 3]),
    "negative": ([[-1, 0], [0, 2], [1, 1]], (3,), [2, 3]),
    "negative size": ([[0, 0], [0, 2], [1, 1]], (3,), [2, -3]),
    "few values": ([[0, 0], [0, 2], [1, 1]], (2,), [2, 3]),
    "long shape": ([[0, 0], [0, 2], [1, 1]], (3,), [2, 3, 4]),
    "scalar shape": ([[0, 0], [0, 2], [1, 1]], (3,), 2),
    "vector of indices": ([0, 1, 2], (3,), [2, 3]),
    "matrix of values": ([[0, 0], [0, 2], [1, 1]], (3, 1), [2, 3]),
    "no rows": (np.zeros((0, 2)), (0,), [0, 3]), "scalar": (np.zeros((1, 0)), (1,), []),
    "overflow": ([[0, 0], [0, 2], [1, 1]], (3,), [1 << 62, 8])}


def sparse(use, leave_out=()):
    """use(indices, values, shape) for each of these."""
    return [use(F(i), v, F(s)) for name, (i, v, s) in SPARSE.items() if name not in leave_out]


GOOD = [F(SPARSE["good"][0]), (3,), F([2, 3])]
BOX = [F([[0, 0, 1], [0, 1, 2], [1, 0, 1], [1, 1, 0]]), (4,), F([2, 2, 3])]

CWISE = sparse(lambda i, v, s: Use(i, v, s, (2, 3))) + [
    Use(*GOOD, d) for d in [(3,), (2, 1), (1, 3), (), (1,), (2,), (1, 2, 3), (2, 2)]] + [
    Use(*BOX, d) for d in [(2, 3), (2, 1, 1), (1, 3)]]

REDUCTIONS_OF_SPARSE = both(
    sparse(lambda i, v, s: Use(i, v, s, F([1])), {"negative", "other row", "other column", "overflow"}) + [
        Use(*GOOD, F(a)) for a in ([], 0, [0, 1], [0, 0], [2], [-1], [-3], [[0]])] + [
        Use(*BOX, F(a)) for a in ([0, 2], [1], [-1], [])], "keep_dims")

SPARSE_PAIRS = [Use(F(i), (3,), F([2, 3]), *GOOD) for i in (
    [[0, 0], [0, 2], [1, 1]], [[0, 0], [0, 1], [1, 1]], [[0, 1], [1, 0], [1, 2]])] + [
    Use(*BOX, F([[0, 1, 2], [1, 0, 1]]), (2,), F([2, 2, 3]))]

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16"]

SETS = [{"set_operation": o} for o in ("intersection", "union", "a-b", "b-a", "foo")]

BINCOUNTS = [([1, 1, 3, 9], 5, (0,)), ([1, 1, 3], 5, (3,)), ([-1, 2], 5, (0,)), ([1], -1, (0,)),
             ([1], [5], (0,)),
             ([], 3, (0,)), ([1, 1], 4, (1,)), ([1], 0, (0,))]

SPLITS, ROW_IDS = ["ROW_SPLITS"], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]

CROSSED = [([(3,)], [tf.string], [(3, 2)], [tf.string], tf.string),
           ([(3,)], [tf.int64], [(3, 1)], [tf.int64], tf.int64),
           ([(3,), (3,)], [tf.string, tf.int64], [(3, 1)], [tf.string], tf.int64),
           ([(3,)], [tf.string], [], [], tf.string),
           ([(3,)], [tf.string], [(2, 1)], [tf.string], tf.string),
           ([(3,)], [tf.string], [(3,)], [tf.string], tf.string)]


def serialized(*parts):
    """A sparse tensor as SerializeSparse writes it."""
    return [tf.make_tensor_proto(part).SerializeToString() for part in parts]


ONE = serialized(np.int64([[0, 1], [1, 0]]), np.float32([1, 2]), np.int64([2, 3]))
OTHER = serialized(np.int64([[4, 0], [4, 1]]), np.float32([3, 4]), np.int64([5, 2]))
VECTOR = serialized(np.int64([[4], [1]]), np.float32([3, 4]), np.int64([5, 5])[:1])
WORDS = serialized(np.int64([[4, 0], [4, 1]]), [b"3", b"4"], np.int64([5, 2]))
SERIALIZED = [ONE, [ONE, OTHER], [[ONE, OTHER], [OTHER, ONE]], [ONE, VECTOR], [WORDS], ONE[:2], ONE[0],
              [b"xx", b"yy", b"zz"], [ONE[0], ONE[2], ONE[1]], [ONE[2], ONE[1], ONE[0]],
              [[b"xx", b"yy", b"zz"]]]

SPARSE_HINTS = {
    "Bincount": [Use(F(a), F(n), w) for a, n, w in BINCOUNTS] + [
        Use(F([[1, 2], [2, 2]]), F(4), (0,)), Use(F([[1, 2]]), F(4), (2,)), Use(F(2), F(4), (0,))],
    "DenseBincount": both([Use(F(a), F(n), w) for a, n, w in BINCOUNTS] + [
        Use(F([[1, 2], [2, 2]]), F(4), w) for w in [(0,), (2, 2), (4,)]] + [
        Use(F([[[1]]]), F(4), (0,)), Use(F(np.zeros((0, 2))), F(3), (0,))], "binary_output"),
    "RaggedBincount": both([Use(F(p), F(v), F(n), w) for p, v, n, w in [
        ([0, 2, 2, 3], [1, 1, 2], 3, (0,)), ([0, 2, 2, 3], [1, 9, 2], 3, (3,)), ([0], [], 3, (0,)),
        ([0, 2], [1, 1, 2], 3, (0,)), ([1, 3], [1, 1, 2], 3, (0,)), ([0, 3], [1, -1, 2], 3, (0,)),
        ([0, 3], [1, 1, 2], -3, (0,)), ([], [], 3, (0,)), ([0, 5], [1, 5, 2], 3, (0,))]], "binary_output"),
    "RaggedFillEmptyRows": [Use(F(rows), n, F(count), ()) for rows, n, count in [
        ([0, 0, 2, 4], (4,), 6), ([3, 1, 3], (3,), 5), ([], (0,), 3), ([2, 0, 1], (3,), 3), ([0, 7], (2,), 3),
        ([0, -1], (2,), 3), ([0, 1], (2,), 0), ([], (0,), -1), ([0, 1], (3,), 3), ([[0, 1]], (2,), 3)]] + [
            Use(F([0, 1]), (2,), F([3]), ()), Use(F([0, 1]), (2,), F(3), (1,))],
    "RaggedFillEmptyRowsGrad": [Use(F(m), g) for m, g in [
        ([0, 3, 1], (5,)), ([], (3,)), ([2, 1, 0], (3,)), ([3], (3,)), ([-1], (3,)), ([[0]], (3,))]],
    "RaggedGather": [Use(Each([F(p) for p in splits]), v, F(i), OUTPUT_RAGGED_RANK=n) for splits, v, i, n in [
        ([[0, 2, 2, 3]], (3,), [2, 0, 2], 1), ([[0, 2, 2, 3]], (3, 2), [[2, 0], [1, 1]], 2),
        ([[0, 2, 3], [0, 1, 1, 3]], (3,), [1, 0, 1], 2), ([[0, 2, 2, 3]], (3,), 0, 0),
        ([[0, 2, 3]], (3,), [], 1),
        ([[0, 2]], (3,), [0], 1), ([[0, 2, 2, 3]], (3,), [3], 1), ([[0, 2, 2, 3]], (3,), [-1], 1),
        ([[0, 5]], (3,), [0], 1), ([[2, 0]], (3,), [0], 1), ([[-1, 2]], (3,), [0], 1)]],
    "RaggedRange": [Use(F(a), F(b), F(d)) for a, b, d in [
        ([0, 5, 8], [3, 5, 2], [1, 1, -2]), (0, [3, 4], 1), ([], [], []), (0, 3, 1), ([2, -3], 5, [3, 2]),
        ([0, 5], [3], [1]), ([0], [3], [0]), ([[0]], [1], [1]), ([9], [0], [1])]] + [
        Use(F([0.25, 3]), F([2.1, -1]), F([0.5, -0.75]), dtypes=["float32", "float64"])],
    "RaggedTensorToSparse": [Use(Each([F(p) for p in splits]), v) for splits, v in [
        ([[0, 2, 2, 3]], (3,)), ([[0, 2, 3], [0, 1, 1, 3]], (3,)), ([[0, 1, 2]], (2, 2)), ([[0]], (0,)),
        ([[0, 0, 0]], (0, 2)), ([[0, 2]], (3,)), ([[1, 3]], (3,)), ([[0, 2, 1, 3]], (3,)), ([[]], (0,)),
        ([[0, 1]], ()), ([[0, 4]], (3,)), ([[0, 2, 3], [0, 1, 3]], (3,)), ([[-1, 3]], (3,))]],
    "RaggedTensorToTensor": [
        Use(F(s), v, d, Each([F(p) for p in parts]), row_partition_types=types) for s, v, d, parts, types in [
            ([-1, -1], (3,), (), [[0, 2, 2, 3]], SPLITS), (-1, (3,), (), [[0, 2, 2, 3]], SPLITS),
            ([-1, 1], (3,), (), [[0, 2, 2, 3]], SPLITS), ([5, 4], (3,), (), [[0, 2, 2, 3]], SPLITS),
            ([2, 2], (3,), (), [[0, 2, 2, 3]], SPLITS), ([-1, -1], (3,), (), [3, [0, 0, 2]], ROW_IDS),
            ([-1, -1], (3,), (), [2, [0, 0, 2]], ROW_IDS),
            ([-1] * 3, (3,), (), [[0, 2, 3], [0, 1, 1, 3]], SPLITS * 2),
            ([-1, -1, 2], (3, 2), (2,), [[0, 2, 2, 3]], SPLITS),
            ([-1] * 3, (3, 2), (), [[0, 2, 2, 3]], SPLITS),
            ([-1, -1, 3], (3, 2), (), [[0, 2, 2, 3]], SPLITS), ([-1] * 3, (3, 2), (1,), [[0, 1, 3]], SPLITS),
            ([-1, -1], (3,), (), [[0, 2, 2]], SPLITS), ([-1, -1], (3,), (), [[0, 2, 1, 3]], SPLITS),
            ([-1, -1], (3,), (), [[1, 3]], SPLITS), ([-1, -1], (3,), (), [[]], SPLITS),
            ([-1, -1], (3,), (), [3, [-1, 0, 1]], ROW_IDS), ([-1, -1], (3,), (2,), [[0, 2, 2, 3]], SPLITS),
            ([-1], (3,), (), [[0, 2, 2, 3]], SPLITS), ([-1] * 3, (3,), (), [[0, 2, 2, 3]], SPLITS),
            ([-2, -1], (3,), (), [[0, 2, 2, 3]], SPLITS), ([-1, -1], (3,), (), [[0, 2, 2, 3]], ["foo"]),
            ([-1, -1], (3,), (), [[0, 0, 2]], ["VALUE_ROWIDS"]), ([-1, -1], (), (), [[0, 1]], SPLITS),
            ([0, 2], (3,), (), [[0, 2, 2, 3]], SPLITS), ([-1, 0], (3,), (), [[0, 2, 2, 3]], SPLITS),
            ([-1, -1], (0,), (), [[0]], SPLITS), ([-1, -1], (0,), (), [4, []], ROW_IDS),
            ([[-1, -1]], (3,), (), [[0, 2, 2, 3]], SPLITS), ([3], (3,), (), [3], ["FIRST_DIM_SIZE"]),
            (3, (3,), (), [[0, 2, 2, 3]], SPLITS), ([-1, -1], (3,), (), [3, [0, 0]], ROW_IDS)]],
    **same([Use(d, F(i)) for d, i in SEGMENTS] + [
        Use((4,), F(i)) for i in ([1, 0, 2, 3], [0, 1, 0, 1], [0, 1, 2, 0], [-1, -1, 0, 0], [0, 0, 0, -1],
                                  [0, 1], [[0, 1, 2, 3]])] + [Use((), F([0]))],
           "SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"),
    **same([Use(d, F(i), F(6)) for d, i in SEGMENTS] + [
        Use(d, F(i), F(n)) for d, i, n in [
            ((3,), [2, 0, 2], 3), ((2, 2), [[0, 1], [1, 2]], 3), ((3,), [-1, 0, 1], 2), ((3,), [0, 3, 1], 3),
            ((), 1, 2), ((0,), [], 0), ((3,), [0, 1], 2), ((2,), [0, 1], [2]), ((3, 0), [0, 1, 1], 2),
            ((3,), [0, 1, 1], -1)]],
           "UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"),
    **same(SPARSE_SEGMENTS, "SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"),
    **same([Use(*u.inputs, F(n)) for u in SPARSE_SEGMENTS for n in (6, 1)] + [
        Use((3, 2), F([]), F([]), F(n)) for n in (3, 0, -1, [3])],
           *(f"SparseSegment{kind}WithNumSegments" for kind in ("Sum", "Mean", "SqrtN"))),
    **same(SPARSE_SEGMENT_GRADS, *(f"SparseSegment{kind}Grad{version}" for version in ("", "V2")
                                   for kind in ("Sum", "Mean", "SqrtN"))),
    # Treal is T or the type of its parts; TensorFlow does not check it.
    "SparseAdd": [Use(*u.inputs, F(1), dtypes=[t], Treal=tf.as_dtype(real)) for u in SPARSE_PAIRS
                  for t, real in [
        ("float32", "float32"), ("float64", "float64"), ("int8", "int8"), ("int64", "int64"),
        ("complex64", "float32"), ("complex128", "float64")]] + [
        Use(*u.inputs, dtypes=["float32"], Treal=tf.float32) for u in
        sparse(lambda i, v, s: Use(i, v, s, *GOOD, F(2))) + [Use(*GOOD, *GOOD, F([0])),
        Use(*GOOD, *GOOD, F(0))]],
    **same(SPARSE_PAIRS + sparse(lambda i, v, s: Use(i, v, s, *GOOD)),
           "SparseSparseMaximum", "SparseSparseMinimum"),
    "SparseAddGrad": [Use(g, *(F(i) for i in indices)) for g, *indices in [
        ((3,), [[0, 0], [0, 2]], [[0, 0], [1, 1]], [[0, 0], [0, 2], [1, 1]]),
        ((1,), [[0, 0], [0, 2]], [[0, 0], [1, 1]], [[1, 1]]), ((0,), [[1]], [[2]], np.zeros((0, 1))),
        ((2,), [[0]], [[1]], [[0]]), ((1,), [[0, 0]], [[0]], [[0]]), ((1,), [0], [[0]], [[0]]),
        ((1, 1), [[0]], [[0]], [[0]])]],
    "SparseConcat": [Use(Each([F(SPARSE[a][0]), F(SPARSE[b][0])]), Each([SPARSE[a][1], SPARSE[b][1]]),
                         Each([F(SPARSE[a][2]), F(SPARSE[b][2])]), concat_dim=d) for a, b, d in [
        ("good", "good", 0), ("good", "good", 1), ("good", "good", -1), ("good", "empty", 1),
        ("no rows", "good", 0), ("no rows", "good", 1), ("other order", "good", 0), ("repeated", "good", 0),
        ("good", "long shape", 0), ("good", "few values", 0), ("good", "scalar", 0),
        ("good", "vector of indices", 0), ("good", "matrix of values", 0), ("good", "scalar shape", 0),
        ("good", "good", 2), ("good", "good", -3)]],
    **same(CWISE, "SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"),
    "SparseFillEmptyRows": sparse(lambda i, v, s: Use(i, v, s, ()), {"negative size", "overflow"}) + [
        Use(F([[3, 0], [1, 2], [3, 1]]), (3,), F([5, 4]), ()), Use(F([[0]]), (1,), F([0]), ()),
        Use(F(np.zeros((0, 1))), (0,), F([0]), ()), Use(*BOX, (1,)),
        Use(F([[1, 5, 0]]), (1,), F([3, 2, 2]), ())],
    "SparseFillEmptyRowsGrad": [Use(F(m), g) for m, g in [
        ([0, 3, 1], (5,)), ([], (3,)), ([0, 0], (2,)), ([2, 1, 0], (3,)), ([3], (3,)), ([-1], (3,)),
        ([[0]], (3,)), ([0], (3, 1)), ([], (0,))]],
    **same(REDUCTIONS_OF_SPARSE, "SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse",
           "SparseReduceMaxSparse"),
    "SparseReorder": sparse(Use, {"negative size"}) + [Use(F([[2], [0], [1], [0]]), (4,), F([3]))],
    "SparseReshape": [Use(F(SPARSE[name][0]), F(SPARSE[name][2]), F([3, -1])) for name in (
        "good", "empty", "other order", "repeated", "negative size", "long shape", "scalar shape",
        "vector of indices", "no rows", "scalar", "overflow")] + [
        Use(F([[0, 0, 1], [1, 1, 2]]), F([2, 2, 3]), F(s)) for s in [
            [12], [-1], [3, 4], [2, 2, 3], [1, -1, 6], [5], [-1, -1], [-2, 6], [5, -1], [], [[12]], [0, -1]]],
    "SparseSlice": sparse(lambda i, v, s: Use(i, v, s, F([0, 1]), F([2, 2]))) + [
        Use(*GOOD, F(a), F(b)) for a, b in [
            ([0, 0], [9, 9]), ([1, 1], [0, 2]), ([-1, 0], [2, 2]), ([0, 5], [2, 2]), ([0, 0], [-1, 2]),
            ([0], [1]), ([0, 0], [[1, 1]])]] + [Use(*BOX, F([1, 0, 0]), F([1, 2, 2]))],
    "SparseSliceGrad": [Use(g, F(i), F(s), F(o)) for g, i, s, o in [
        ((1,), [[0, 1], [2, 0]], [1, 0], [[1, 0]]), ((0,), [[0, 1]], [1, 0], np.zeros((0, 2))),
        ((2,), [[0], [2], [3]], [2], [[0], [1]]), ((2,), [[0, 1]], [0, 0], [[0, 1]]),
        ((1,), [[0, 1]], [0], [[0, 1]]), ((1,), [0], [0], [[0]])]],
    "SparseSoftmax": sparse(Use, {"overflow"}) + [Use(*BOX), Use(F([[0]]), (1,), F([2]))],
    "SparseSplit": sparse(lambda i, v, s: Use(F(1), i, v, s, num_split=2), {"overflow"}) + [
        Use(F(a), *GOOD, num_split=n) for a, n in [(0, 2), (-1, 3), (2, 2), (1, 4), ([1], 2), (-3, 2)]] + [
        Use(F(0), F([[0], [4], [6], [9]]), (4,), F([10]), num_split=4)],
    "SparseTensorDenseAdd": sparse(lambda i, v, s: Use(i, v, s, (2, 3))) + [
        Use(*GOOD, d) for d in [(3,), (2, 2), (1, 2, 3)]] + [Use(F([[1], [1], [0]]), (3,), F([2]), (2,)),
                                                            Use(F(np.zeros((1, 0))), (1,), F([]), ())],
    "SparseTensorDenseMatMul": sparse(
        lambda i, v, s: Use(i, v, s, (3, 4), adjoint_a=False, adjoint_b=False)) + [
        Use(F(i), (4,), F([3, 5]), b, adjoint_a=x, adjoint_b=y)
        for i in ([[0, 1], [0, 4], [2, 0], [2, 3]], [[2, 4], [0, 1], [2, 4], [1, 1]])
        for b, x, y in [((5, 2), False, False), ((3, 2), True, False), ((2, 5), False, True),
                        ((2, 3), True, True), ((5, 300), False, False), ((5, 0), False, False),
                        ((4, 2), False, False), ((5,), False, False)]],
    "SparseMatMul": [Use(a, b, transpose_a=x, transpose_b=y) for a, b, x, y in [
        ((2, 3), (3, 4), False, False), ((3, 2), (3, 4), True, False), ((2, 3), (4, 3), False, True),
        ((3, 2), (4, 3), True, True), ((2, 0), (0, 4), False, False), ((0, 2), (2, 3), False, False),
        ((2, 3), (2, 3), False, False), ((3,), (3, 2), False, False)]],
    "SparseToDense": [Use(F(i), F(s), v, (), validate_indices=c) for i, v, s in [
        u for name, u in SPARSE.items() if name != "overflow"] + [
            ([1, 3], (2,), [5]), ([1, 3], (), [5]), (2, (), [3]), (2, (1,), [3]), (2, (2,), [3]),
            ([1], (1,), [2, 2]),
            ([[[1]]], (1,), [2]), ([], (0,), [3]), ([[0, 1], [1, 0]], (), [2, 2])] for c in (True, False)] + [
        Use(F([1]), F([3]), (1,), (1,))],
    "DenseToDenseSetOperation": [Use((2, 3), (2, 2), **o) for o in SETS] + [
        Use(F(a), F(b), dtypes=INTS, **o) for o in SETS for a, b in [
            ([[3, 1, 1], [2, 2, 5]], [[1, 3], [7, 2]]), ([[[3, 1]], [[2, 2]]], [[[1]], [[7]]])]] + [
        Use(a, b, set_operation="union") for a, b in [
            ((2,), (1,)), ((1, 1), (2, 1)), ((1, 1), (1, 1, 1)), ((2, 0), (2, 0)), ((2, 1), (2, 0)),
            ((0, 2), (0, 1))]],
    "DenseToSparseSetOperation": [Use((2, 3), *GOOD, **o) for o in SETS] + [
        Use(F([[3, 1, 1], [2, 2, 5]]), F([[0, 0], [0, 2], [1, 1]]), F([4, 3, 2]), F([2, 3]), dtypes=INTS, **o)
        for o in SETS] + sparse(lambda i, v, s: Use((2, 3), i, v, s, set_operation="union")),
    "SparseToSparseSetOperation": [
        Use(*GOOD, F([[0, 0], [0, 1], [1, 1], [1, 2]]), (4,), F([2, 4]), **o) for o in SETS] + [
        Use(F([[0, 0], [0, 2], [1, 1]]), F([4, 3, 2]), F([2, 3]), F([[0, 0], [0, 1], [1, 1], [1, 2]]),
            F([4, 7, 2, 2]), F([2, 4]), dtypes=INTS, **o) for o in SETS] + sparse(
        lambda i, v, s: Use(i, v, s, *GOOD, set_operation="a-b")),
    "SetSize": sparse(Use) + [Use(F([[0, 0], [0, 1], [0, 2], [2, 1]]), F([5, 5, 6, 5]), F([3, 4]),
            dtypes=INTS),
                              Use(F([[0], [1]]), (2,), F([3])), Use(*BOX)],
    "SparseBincount": both([Use(F(i), F(v), F(s), F(n), w) for i, v, s, n, w in [
        ([[0, 0], [0, 2], [1, 1]], [1, 1, 2], [2, 3], 4, (0,)),
        ([[0, 0], [0, 2], [1, 1]], [1, 9, 2], [2, 3], 4, (3,)),
        ([[0], [2], [1]], [1, 1, 2], [3], 4, (0,)), ([[0, 0], [0, 2], [5, 1]], [1, 1, 2], [2, 3], 4, (0,)),
        ([[0, 0]], [1], [2, 3], -4, (0,))]], "binary_output"),
    "SparseCross": [Use(Each([F(i)] * len(v)), Each(v), Each([F(z)] * len(v)), Each(d), hashed_output=h,
            num_buckets=n,
                        hash_key=956888297470, sparse_types=t, dense_types=u, out_type=o, internal_type=k)
                    for i, z in [([[0, 0], [0, 1], [2, 0]], [3, 2])]
                    for h, o in [(True, tf.int64), (False, tf.string)]
                    for n in (100, 0) for v, t, d, u, k in CROSSED],
    "SparseCrossV2": [Use(Each([F(i)] * len(v)), Each(v), Each([F(z)] * len(v)), Each(d), F(p),
            sparse_types=t,
                          dense_types=u) for i, z in [
                              ([[0, 0], [0, 1], [2, 0]], [3, 2]), ([[0], [1], [1]], [3, 2]),
                              ([[0, 0], [0, 1], [2, 0]], [4, 2]),
                              ([[0, 0], [0, 1], [2, 0]], [3]), ([[0, 0], [0, 1], [2, 0]], 3),
                              ([[0, 0]], [3, 2])]
                      for p in (b"_Y_", b"") for v, t, d, u, _ in CROSSED] + [
                          Use(Each([F([[0, 0]])]), Each([F([b"x"])]), Each([F([1, 1])]), Each([]), F([b"_"]),
                              sparse_types=[tf.string], dense_types=[])],
    "SparseCrossHashed": [Use(Each([F([[0, 0], [0, 1], [2, 0]])] * len(v)), Each(v),
            Each([F([3, 2])] * len(v)), Each(d), F(n),
                              F(strong), F([3, -4]), sparse_types=t, dense_types=u)
                          for n in (100, 0, -1) for strong in (False, True) for v, t, d, u, _ in CROSSED
                          # TensorFlow ends its process for dense numbers.
                          if not strong or tf.int64 not in u],
    "SerializeSparse": [Use(*GOOD, out_type=tf.string), Use(*BOX, out_type=tf.string)] + [
        Use(F(i), v, F(s), out_type=tf.string) for i, v, s in [
            SPARSE[name] for name in ("empty", "scalar shape", "vector of indices", "matrix of values",
            "other column")]],
    "SerializeManySparse": [Use(i, v, s, out_type=tf.string) for i, v, s in
                            [u.inputs for u in sparse(Use, {"overflow"})] + [BOX]],
    "DeserializeSparse": [Use(F(t), dtype=tf.float32, Tserialized=tf.string) for t in SERIALIZED],
    "DeserializeManySparse": [Use(F(t), dtype=tf.float32) for t in SERIALIZED if np.ndim(t) == 2],
}
