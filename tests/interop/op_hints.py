# SPDX-License-Identifier: Apache-2.0
"""How ops with structured inputs are used: axes, shapes, indices, strides, lists of tensors.

An op that is not here is tried on the shapes of elementwise ops. Wrong uses are here on purpose: both
sides must refuse them with the same error.
"""
import tensorflow.compat.v1 as tf

from op_cases import SHAPES_2, Each, Fixed as F, Use, both, same
from op_hints_conv import CONV_HINTS
from op_hints_counts import COUNT_HINTS
from op_hints_linalg import LINALG_HINTS
from op_hints_media import MEDIA_HINTS
from op_hints_more import MORE_HINTS
from op_hints_sequences import SEQUENCE_HINTS
from op_hints_slices import STRIDED, slice_updates
from op_hints_image import IMAGE_HINTS
from op_hints_parsing import PARSING_HINTS
from op_hints_sparse import SPARSE_HINTS
from op_hints_strings import STRING_HINTS
from window_hints import WINDOW_HINTS

SEVERAL = [(), (0,), (1,), (5,), (0, 3), (2, 3), (2, 1, 3, 2), (1, 2, 1, 2, 3)]


REDUCTIONS = both(
    [Use(s, F(axes)) for s, axes in [
        ((), []), ((5,), 0), ((5,), [0]), ((0,), [0]), ((2, 3), 1), ((2, 3), [-2]), ((2, 3), [0, 1]),
        ((2, 3), []), ((0, 3), 0), ((0, 3), [1]), ((2, 3, 2, 2), [1, 3]), ((2, 3, 2, 2), [0, 2]),
        ((2, 1, 3, 2), [0, 1, 2, 3]), ((1, 2, 1, 2, 3), [-1, 0]), ((2, 3), [[0], [1]])]],
    "keep_dims") + [Use(s, F(axes)) for s, axes in [
        ((2, 3), 2), ((2, 3), [-3]), ((2, 3), [0, 0]), ((2, 3), [0, -2]), ((), 0), ((40, 33), 0),
        ((40, 33), 1)]]

ARG_REDUCTIONS = [Use(s, F(a)) for s, a in [
    ((5,), 0), ((2, 3), 1), ((2, 3), -2), ((2, 1, 3, 2), 2), ((1, 2, 1, 2, 3), -1), ((0, 3), 1),
    ((0,), 0), ((2, 3), 2), ((2, 3), [0]), ((2, 3), [0, 1]), ((), 0)]]

MATMULS = [Use(a, b, transpose_a=ta, transpose_b=tb) for a, b, ta, tb in [
    ((2, 3), (3, 4), False, False), ((3, 2), (3, 4), True, False), ((2, 3), (4, 3), False, True),
    ((3, 2), (4, 3), True, True), ((0, 3), (3, 4), False, False), ((2, 0), (0, 4), False, False),
    ((2, 3), (3, 0), False, False), ((1, 3), (3, 1), False, False), ((2, 3), (4, 5), False, False),
    ((2,), (2, 3), False, False), ((1, 2, 3), (3, 2), False, False),
    ((17, 9), (9, 19), False, False)]]

BATCH_MATMULS = [Use(a, b, adj_x=x, adj_y=y) for a, b, x, y in [
    ((2, 3), (3, 4), False, False), ((2, 2, 3), (2, 3, 4), False, False),
    ((2, 3, 2), (2, 3, 4), True, False), ((2, 2, 3), (2, 4, 3), False, True),
    ((2, 1, 2, 3), (2, 1, 3, 2), False, False), ((1, 2, 1, 2, 3), (1, 2, 1, 3, 2), False, False),
    ((0, 2, 3), (0, 3, 4), False, False), ((2, 2, 0), (2, 0, 4), False, False),
    ((1, 2, 3), (4, 3, 2), False, False), ((2, 3), (4, 3, 2), False, False),
    ((3, 1, 2, 3), (2, 3, 2), False, False), ((3, 2, 3), (2, 3, 2), False, False),
    ((2, 3), (2, 3), False, False), ((3,), (3, 2), False, False)]]

GATHER = [((5,), 2), ((5,), [0, 4, 4]), ((3, 2), [[2, 0], [1, 1]]), ((3, 2, 2, 1), [1]), ((3,), []),
          ((0, 2), []), ((3, 0), [1, 2]), ((3, 2), [3]), ((3, 2), [-1]), ((0,), [0]), ((), [0])]

GATHER_AXIS = [Use(p, F(i), F(a), batch_dims=b) for p, i, a, b in [
    ((3, 4), [1, 3], 1, 0), ((3, 4), [1, 3], -1, 0), ((3, 4), 2, 0, 0), ((2, 3, 4, 2), [[0, 2]], 1, 0),
    ((2, 3, 4, 2), [3], 2, 0), ((2, 3), [[0, 2], [1, 1]], 1, 1), ((2, 3, 2), [[0], [1]], 1, 1),
    ((2, 3, 2), [[0], [1]], 2, -1), ((2, 3, 2), [[0], [1]], 2, 1), ((3, 4), [4], 1, 0),
    ((3, 4), [0], 2, 0), ((3, 4), [0], -3, 0), ((0, 3), [], 0, 0), ((3, 4), [0], [1], 0),
    ((2, 3), [[0], [1], [1]], 1, 1), ((3, 4), [0, 1], 0, 2)]]

SLICES = [Use(s, F(b), F(n)) for s, b, n in [
    ((5,), [1], [3]), ((5,), [2], [-1]), ((2, 3), [0, 1], [2, 2]), ((2, 3), [0, 0], [-1, -1]),
    ((2, 3, 2, 2), [1, 0, 1, 0], [1, 2, -1, 2]), ((2, 3), [2, 0], [0, 3]), ((0, 3), [0, 1], [0, 2]),
    ((), [], []), ((5,), [5], [-1]), ((5,), [4], [2]), ((5,), [-1], [1]), ((5,), [0], [-2]),
    ((2, 3), [0], [1]), ((2, 3), [0, 0], [1]), ((5,), [6], [0])]]

PADS = [((5,), [[1, 2]]), ((2, 3), [[0, 1], [2, 0]]), ((0,), [[1, 1]]), ((0, 3), [[0, 0], [1, 1]]),
        ((2, 1, 3, 2), [[0, 0], [1, 0], [0, 2], [1, 1]]), ((2, 3), [[0, 0], [0, 0]]),
        ((1, 2, 1, 2, 3), [[1, 0], [0, 0], [0, 1], [1, 1], [0, 0]]),
        ((2, 3), [[0, 1]]), ((5,), [[-1, 0]]), ((5,), [1, 1])]

TOP_K = [((5,), 2), ((5,), 5), ((5,), 0), ((2, 3), 1), ((2, 1, 3, 7), 3), ((0,), 0), ((0, 3), 2),
        ((2, 0), 0), ((5,), 6),
         ((), 1), ((0,), 1), ((3, 100), 17)]

UNIQUES = [Use(x, F(a)) for x, a in [
    ((5,), []), ((5,), [0]), ((5,), [-1]), ((2, 3), [0]), ((2, 3), [1]), ((2, 1, 3, 2), [2]), ((0,), []),
    ((0, 2), [0]), ((0, 2), [1]), ((), []), ((2, 3), []), ((2, 3), [2]), ((2, 3), [0, 1]), ((2, 3), 0)]] + [
    Use(F([[1, 2, 1], [3, 3, 3]]), F([1]), dtypes=["int32", "float32", "uint8"]),
    Use(F([[1, 2], [3, 3], [1, 2]]), F([0]), dtypes=["int32", "float64", "bfloat16"])]

BATCHES = [((2, 3), [0, 2]), ((1, 4), [3]), ((0, 3), []), ((3, 1), [0, 0, 0])]

SCATTER_ND = [Use(F(i), u, F(s)) for i, u, s in [
    ([[0], [2]], (2,), [4]), ([[0], [0]], (2,), [4]), ([[0, 1], [1, 0]], (2,), [2, 2]),
    ([[1]], (1, 3), [2, 3]), ([[[0, 0]], [[1, 1]]], (2, 1, 2), [2, 2, 2]),
    ([[0, 0, 0, 1]], (1,), [1, 2, 1, 2]), ([[4]], (1,), [4]), ([[-1]], (1,), [4]),
    ([[0], [2]], (3,), [4]), ([[0]], (1, 2), [2, 3]), ([[0]], (1,), [0])]]

PADDED_BLOCKS = [
    ((1, 4, 4, 1), [2, 2], [[0, 0], [0, 0]]), ((2, 3, 5, 2), [2, 3], [[0, 1], [3, 1]]), ((2, 4), [2], [[0, 0]]),
    ((1, 2, 3), [3, 1], [[1, 3], [0, 0]]), ((2, 3), [], [[0, 0]][:0]), ((0, 4), [2], [[1, 1]]),
    ((2, 0, 3), [2], [[2, 4]]), ((1, 2, 2, 2, 2), [2, 1, 2], [[0, 0]] * 3), ((1, 5), [7], [[0, 2]]),
    ((2, 3), [2], [[0, 0]]), ((2, 3), [0], [[0, 0]]), ((2, 3), [-1], [[0, 0]]), ((2, 3), [3], [[-1, 1]]),
    ((2, 3), [3, 1], [[0, 0], [0, 0]]), ((2, 3), [3], [0, 0]), ((2, 3), [3], [[0, 0], [0, 0]]),
    ((2, 3), 3, [[0, 0]]), ((2, 3), [3], [[5, 7]])]

CROPPED_BLOCKS = [
    ((4, 2, 2, 1), [2, 2], [[0, 0], [0, 0]]), ((6, 2, 2), [2, 3], [[0, 1], [3, 1]]), ((4, 2), [2], [[0, 0]]),
    ((3, 2, 3), [3, 1], [[1, 3], [0, 0]]), ((2, 3), [], [[0, 0]][:0]), ((0, 4), [2], [[1, 1]]),
    ((2, 3, 0), [2], [[2, 4]]), ((4, 1, 2, 1, 2), [2, 1, 2], [[0, 0]] * 3), ((7, 1), [7], [[0, 2]]),
    ((3, 3), [2], [[0, 0]]), ((2, 3), [0], [[0, 0]]), ((2, 3), [2], [[4, 3]]), ((2, 3), [2], [[3, 3]]),
    ((2, 3), [2], [[-1, 0]]), ((2,), [2], [[0, 0]]), ((2, 3), [2], [[0, 0, 0]])]

DIAGONALS = [  # k, num_rows, num_cols and the shape of the diagonals
    (0, -1, -1, (3,)), (0, -1, -1, (2, 3)), (1, -1, -1, (3,)), (-2, -1, -1, (2, 2)), (1, 3, -1, (2,)),
    (-1, -1, 2, (2,)), ([-1, 1], -1, -1, (3, 3)), ([-1, 2], 3, 4, (2, 4, 3)), ([1, 2], 5, 4, (2, 3)),
    ([0, 1], 3, 4, (2, 3)), ([-2, -1], 4, 3, (2, 3)), ([0], -1, -1, (2, 1)), ([-3, 3], 4, 4, (7, 4)),
    (0, 0, 0, (0,)), (1, -1, -1, (0,)), ([-1, 1], -1, -1, (2, 3)), ([1, -1], -1, -1, (3, 3)), (0, 2, -1, (3,)),
    (0, 5, 5, (3,)), ([0, 1, 2], -1, -1, (3, 3)), ([], -1, -1, (3,)), ([[0]], -1, -1, (3,)), (0, -2, -1, (3,)),
    (0, [4], -1, (3,)), (0, -1, -1, ())]

DIAGONAL_PARTS = [  # k, the shape of the matrices and that of the diagonals
    (0, (3, 3), (3,)), (0, (2, 3, 4), (2, 3)), (0, (4, 2), (2,)), (1, (3, 4), (3,)), (-1, (3, 4), (2,)),
    (3, (3, 4), (1,)), ([-1, 1], (3, 3), (3, 3)), ([-1, 2], (2, 3, 4), (2, 4, 3)), ([-2, 3], (3, 4), (6, 3)),
    ([1, 3], (2, 3, 4), (2, 3, 3)), ([-2, -1], (3, 2), (2, 2)), ([0, 0], (2, 2), (2,)), ([1], (2, 2), (1,)),
    (0, (0, 3), (0,)), (0, (2, 0, 0), (2, 0)), (0, (0, 3, 3), (0, 3)), (1, (1, 1, 2), (1, 1)),
    (4, (3, 4), (1,)), (-3, (3, 4), (1,)), ([1, -1], (3, 3), (3, 3)), ([0, 4], (3, 4), (5, 3)),
    ([], (3, 3), (3,)), ([0, 1, 2], (3, 3), (3, 3)), (0, (3,), (3,)), (0, (3, 3), (2,)), ([-1, 1], (3, 3), (3,)),
    ([-1, 1], (3, 3), (2, 3))]
ALIGNED = [Use(s, F(k), (), align=a) for k, s, _ in DIAGONAL_PARTS
           for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")]

MIRROR_PADS = [Use(s, F(p), mode=m) for m in ("REFLECT", "SYMMETRIC") for s, p in PADS + [
    ((5,), [[4, 4]]), ((5,), [[5, 0]]), ((5,), [[0, 5]]), ((5,), [[6, 0]]), ((2, 3), [[1, 1], [2, 2]]),
    ((2, 3), [[2, 2], [3, 3]]), ((), [[0, 0]][:0]), ((1,), [[1, 1]]), ((0,), [[0, 0]])]]
MIRROR_PAD_GRADS = [Use(s, F(p), mode=m) for m in ("REFLECT", "SYMMETRIC") for s, p in [
    ((5,), [[1, 1]]), ((6,), [[3, 0]]), ((7,), [[2, 2]]), ((3, 5), [[1, 0], [0, 2]]), ((4, 6), [[1, 1], [2, 1]]),
    ((2, 3, 3, 4), [[0, 0], [1, 0], [0, 1], [1, 1]]), ((5,), [[0, 0]]), ((0, 3), [[0, 0], [1, 0]]), ((), [[0, 0]][:0]),
    ((5,), [[3, 3]]), ((5,), [[-1, 0]]), ((5,), [1, 1]), ((4, 3), [[1, 1]])]]

TENSOR_SCATTERS = [Use(s, F(i), u) for s, i, u in [
    ((4,), [[0], [2]], (2,)), ((4,), [[1], [1]], (2,)), ((2, 2), [[0, 1], [1, 0]], (2,)), ((2, 3), [[1]], (1, 3)),
    ((2, 2, 2), [[[0, 0]], [[1, 1]]], (2, 1, 2)), ((2, 1, 3, 2), [[1, 0, 2, 1]], (1,)), ((3,), [2], ()),
    ((3,), [[0]][:0], (0,)), ((0, 3), [[0]][:0], (0, 3)), ((2, 3), [[]], (1, 2, 3)), ((4,), [[4]], (1,)),
    ((4,), [[-1]], (1,)), ((4,), [[0], [2]], (3,)), ((2, 3), [[0]], (1, 2)), ((0,), [[0]], (1,)),
    ((2,), [[0, 0]], (1,)), ((2,), 0, ()), ((), [[]], (1,))]]

SUMMARY = tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1.5)]).SerializeToString()
OTHER_SUMMARY = tf.Summary(value=[tf.Summary.Value(tag="b", simple_value=2)]).SerializeToString()

STRINGS = [b"", b"abc", b"a1", b"12", b"-1.5", b" 7 ", b"1e3", b"nan", b"inf", b"0x10", b"1.5x",
           b"99999999999999999999", b"-", b"+3", b"2147483648"]

TEXTS = [b"a, b,c", b"", b" x  ab y ", b"ABab", "Grün ÄÖ".encode(), b"a\xffb", b",", b"ababab"]

AS_STRING = [Use(s) for s in SEVERAL] + [Use((5,), **attrs) for attrs in [
    {"precision": 3}, {"scientific": True}, {"shortest": True}, {"width": 9}, {"width": 9, "fill": "0"},
    {"width": 9, "fill": "-"}, {"width": 9, "fill": " "}, {"width": 9, "fill": "+"},
    {"precision": 2, "scientific": True, "width": 12}, {"scientific": True, "shortest": True},
    {"fill": "xy"}]]

HINTS = {
    **CONV_HINTS,
    **COUNT_HINTS,
    **IMAGE_HINTS,
    **MEDIA_HINTS,
    **PARSING_HINTS,
    **SPARSE_HINTS,
    **STRING_HINTS,
    "AsString": AS_STRING,
    **same(REDUCTIONS, "EuclideanNorm", "Sum", "Mean", "Max", "Min", "Prod", "All", "Any"),
    **same(ARG_REDUCTIONS, "ArgMax", "ArgMin"),
    "MatMul": MATMULS,
    **same(BATCH_MATMULS, "BatchMatMul", "BatchMatMulV2"),
    "BatchMatMulV3": [Use(*u.inputs, Ta=a, Tb=b, Tout=out, **u.attrs) for u in BATCH_MATMULS for a, b, out in (
        (tf.float32,) * 3, (tf.complex64,) * 3, (tf.int8, tf.int8, tf.int32), (tf.uint8, tf.int8, tf.int32),
        (tf.int8, tf.uint8, tf.int32), (tf.uint8, tf.uint8, tf.int32), (tf.bfloat16, tf.bfloat16, tf.float32),
        (tf.float16, tf.float16, tf.float32))],
    "BiasAdd": [Use(v, b, data_format=f) for v, b, f in [
        ((2, 3), (3,), "NHWC"), ((2, 2, 1, 3), (3,), "NHWC"), ((2, 3, 1, 2), (3,), "NCHW"),
        ((0, 3), (3,), "NHWC"), ((2, 0), (0,), "NHWC"), ((2, 3, 2), (3,), "NCHW"),
        ((2, 3), (3,), "NCHW"), ((1, 2, 1, 2, 3), (3,), "NHWC"), ((2, 3), (2,), "NHWC"),
        ((2, 3), (1, 3), "NHWC"), ((3,), (3,), "NHWC"), ((33, 40), (40,), "NHWC")]],
    "BiasAddV1": [Use(v, b) for v, b in [((2, 3), (3,)), ((2, 2, 1, 3), (3,)), ((0, 3), (3,)),
                                         ((2, 3), (2,)), ((3,), (3,)), ((2, 3), ())]],
    "BiasAddGrad": [Use(v, data_format=f) for v, f in [
        ((2, 3), "NHWC"), ((2, 2, 1, 3), "NHWC"), ((2, 3, 1, 2), "NCHW"), ((0, 3), "NHWC"),
        ((2, 0), "NHWC"), ((2, 3, 2), "NCHW"), ((1, 2, 1, 2, 3), "NHWC"), ((3,), "NHWC"),
        ((), "NHWC"), ((33, 40), "NHWC")]],
    "BatchToSpaceND": [Use(s, F(b), F(c)) for s, b, c in CROPPED_BLOCKS],
    "SpaceToBatchND": [Use(s, F(b), F(p)) for s, b, p in PADDED_BLOCKS],
    "SpaceToBatch": [Use(s, F(p), block_size=b) for s, p, b in [
        ((1, 4, 4, 1), [[0, 0], [0, 0]], 2), ((2, 3, 4, 2), [[1, 2], [0, 2]], 3), ((0, 2, 2, 1), [[0, 0]] * 2, 2),
        ((1, 3, 4, 1), [[0, 0], [0, 0]], 2), ((2, 4), [[0, 0], [0, 0]], 2), ((1, 2, 2, 1, 1), [[0, 0]] * 2, 2),
        ((1, 2, 2, 1), [[0, 0]], 2)]],
    "BatchToSpace": [Use(s, F(p), block_size=b) for s, p, b in [
        ((4, 2, 2, 1), [[0, 0], [0, 0]], 2), ((9, 1, 2, 2), [[1, 2], [0, 2]], 3), ((0, 2, 2, 1), [[0, 0]] * 2, 2),
        ((3, 2, 2, 1), [[0, 0], [0, 0]], 2), ((4, 2, 2), [[0, 0], [0, 0]], 2), ((4, 2, 2, 1), [[3, 2], [0, 0]], 2)]],
    **same([Use(s, block_size=b) for s, b in [
        ((1, 2, 2, 4), 2), ((2, 4, 6, 8), 2), ((1, 3, 6, 9), 3), ((0, 2, 2, 4), 2), ((1, 2, 4, 0), 2),
        ((1, 3, 3, 3), 2), ((1, 2, 4), 2)]], "DepthToSpace", "SpaceToDepth"),
    "BroadcastArgs": [Use(F(a), F(b)) for a, b in [
        ([2, 3], [3]), ([], [2]), ([], []), ([2, 1], [1, 3]), ([0], [1]), ([2], [3]), ([1, 4], [4]), ([[2]], [2]),
        (2, [2])]],
    "Diag": [Use(s) for s in [(3,), (2, 3), (0,), (1, 2, 1), (2, 0), (), (1,)]],
    "DiagPart": [Use(s) for s in [(3, 3), (2, 3, 2, 3), (0, 0), (1, 2, 1, 1, 2, 1), (2, 3), (3,), (), (2, 2, 2)]],
    "EnsureShape": [Use(s, shape=tf.TensorShape(t)) for s, t in [
        ((2, 3), [2, 3]), ((2, 3), [None, 3]), ((2, 3), None), ((), []), ((2, 3), [3, 2]), ((2, 3), [2, 3, 1])]],
    "MatrixBandPart": [Use(s, F(a), F(b)) for s, a, b in [
        ((3, 4), 0, 0), ((2, 3, 4), 1, -1), ((4, 3), -1, 1), ((4, 3), 4, 3), ((3, 3), -1, -1), ((0, 3), 0, 0),
        ((2, 0), 0, 0), ((5, 2), 0, 2), ((2, 5), 1, 0), ((3, 4), 4, 0), ((3, 4), 0, 5), ((3,), 0, 0), ((3, 3), [0], 0)]],
    "MatrixDiag": [Use(s) for s in SEVERAL],
    "MatrixDiagV2": [Use(s, F(k), F(r), F(c), ()) for k, r, c, s in DIAGONALS],
    "MatrixDiagV3": [Use(s, F(k), F(r), F(c), (), align=a) for k, r, c, s in DIAGONALS
                     for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")],
    "MatrixDiagPart": [Use(s) for s in [(3, 3), (2, 3), (3, 2), (2, 1, 3, 2), (0, 3), (2, 0, 0), (3,), ()]],
    "MatrixDiagPartV2": [Use(s, F(k), ()) for k, s, _ in DIAGONAL_PARTS] + [Use((2, 2), F(0), (1,))],
    "MatrixDiagPartV3": ALIGNED + [Use((2, 2), F(0), (2,))],
    "MatrixSetDiag": [Use(s, d) for s, d in [
        ((3, 3), (3,)), ((2, 3), (2,)), ((2, 3, 2), (2, 2)), ((0, 3), (0,)), ((3, 3), (2,)), ((3,), (3,)),
        ((2, 3, 3), (3,))]],
    "MatrixSetDiagV2": [Use(s, d, F(k)) for k, s, d in DIAGONAL_PARTS],
    "MatrixSetDiagV3": [Use(s, d, F(k), align=a) for k, s, d in DIAGONAL_PARTS
                        for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")],
    "MirrorPad": MIRROR_PADS,
    "MirrorPadGrad": MIRROR_PAD_GRADS,
    "Roll": [Use(s, F(n), F(a)) for s, n, a in [
        ((5,), 2, 0), ((5,), -7, -1), ((2, 3), [1, 1], [0, 1]), ((2, 3), [1, 2], [1, 1]), ((2, 1, 3, 2), [1, -1], [3, 2]),
        ((0, 3), 1, 0), ((0, 3), [1], [1]), ((2, 3), [], []), ((2, 3), 0, 1), ((1, 2, 1, 2, 3), [5, 5, 5], [4, 1, 3]),
        ((), 1, 0), ((2, 3), 1, 2), ((2, 3), 1, -3), ((2, 3), [1], 0), ((2, 3), [1, 2], [0]), ((2, 3), [[1]], [[0]])]],
    **same(TENSOR_SCATTERS, "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMin",
           "TensorScatterMax"),
    "Bucketize": [Use(s, boundaries=b) for s in SEVERAL for b in ([], [0.], [-2., -1., 0.5, 2.])] + [
        Use((3,), boundaries=[1., 1.]), Use((3,), boundaries=[1., 0.])],
    "Bincount": [Use(F(v), F(n), w) for v, n, w in [
        ([1, 3, 1], 4, (3,)), ([1, 3, 1], 4, (0,)), ([1, 5, 1], 4, (0,)), ([[1, 2], [0, 2]], 3, (2, 2)), ([], 3, (0,)),
        ([1, 1], 0, (0,)), (2, 3, ()), ([1], -1, (0,)), ([1], [3], (0,)), ([1, -1], 3, (0,)), ([1, 1], 3, (3,))]],
    "DenseBincount": both([Use(F(v), F(n), w) for v, n, w in [
        ([1, 3, 1], 4, (3,)), ([1, 3, 1], 4, (0,)), ([1, 5, 1], 4, (0,)), ([[1, 2], [2, 2]], 3, (2, 2)), ([], 3, (0,)),
        ([[1, 1, 0], [5, 0, 0]], 2, (0,)), ([1, 1], 0, (0,)), ([1], -1, (0,)), ([1, -1], 3, (0,)), ([[[1]]], 3, (0,)),
        ([1, 1], 3, (3,))]], "binary_output"),
    "HistogramFixedWidth": [Use(s, F(r), F(n), plain=True) for s in SEVERAL for r in ([-1, 2], [0, 5]) for n in (1, 4)] + [
        Use((3,), F(r), F(n)) for r, n in [([2, 1], 3), ([1, 1], 3), ([0, 1], 0), ([0, 1], -1), ([0, 1, 2], 3), ([0, 1], [3])]],
    **same([Use(a, b, c) for a, b, c in [
        ((3,), (3,), (3,)), ((2, 3),) * 3, ((), (), ()), ((3,), (), ()), ((), (3,), ()), ((2, 2), (2, 2), ()), ((0,),) * 3,
        ((3,), (2,), ()), ((2, 3), (3,), (3,))]], "Betainc"),
    "Cross": [Use(a, b) for a, b in [((3,), (3,)), ((2, 3), (2, 3)), ((0, 3), (0, 3)), ((2, 1, 3), (2, 1, 3)), ((2,), (2,)),
                                     ((2, 3), (3,)), ((), ())]],
    **same([Use(s, alpha=a) for s in SEVERAL for a in (0.2, 0.0, 1.5, -0.5)], "LeakyRelu"),
    **same([Use(s, s, alpha=a) for s in SEVERAL for a in (0.2, 1.5)] + [Use((3,), (2,))], "LeakyReluGrad"),
    "NthElement": both([Use(s, F(n), plain=True) for s, n in [
        ((5,), 0), ((5,), 4), ((2, 3), 1), ((2, 1, 3, 2), 1), ((0, 3), 2), ((5,), 5), ((5,), -1), ((), 0), ((5,), [1]),
        ((2, 0), 0)]], "reverse"),
    **same([Use(F(s), F(z)) for z in ([1, 2], [0, 0], [-5, 2**31 - 1]) for s in ([], [7], [2, 0], [3, 5], [2, 1, 3, 2])] + [
        Use(F(s), F(z)) for s, z in [([2], [1]), ([2], [1, 2, 3]), ([-1], [1, 2]), ([[2]], [1, 2]), (2, [1, 2])]],
           "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"),
    "StatelessRandomUniformFullInt": [Use(F(s), F(z)) for s in ([], [3, 5]) for z in ([1, 2], [0, 2**31 - 1])],
    **same([Use(F(s), F(k), F(c), F(a)) for s, k, c, a in [
        ([7], [5], [1, 2], 1), ([3, 5], [5], [0, 9], 3), ([], [1], [2**63, 3], 1), ([4], [5], [1, 2, 3], 1),
        ([4], [5], [2**64 - 1, 0], 1), ([4], 5, [1, 2], 1), ([4], [5, 6], [1, 2], 1), ([4], [5], [1], 1), ([4], [5], [1, 2], 4),
        ([4], [5], [1, 2], [1]), ([-4], [5], [1, 2], 1)]],
           "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
           "StatelessRandomUniformFullIntV2"),
    "StatelessRandomUniformInt": [Use(F([3, 5]), F([1, 2]), F(a), F(b)) for a, b in [
        (0, 10), (-7, 8), (-2**31, 2**31 - 1), (3, 3), (5, 2), ([1], 3), (1, [3])]],
    "StatelessRandomUniformIntV2": [Use(F([3, 5]), F([1]), F([2, 3]), F(1), F(a), F(b)) for a, b in [
        (0, 10), (7, 8), (0, 2**31 - 1), (3, 3), (5, 2), ([1], 3), (1, [3])]],
    **same([Use(F(s)) for s in ([1, 2], [0, 0], [-1, 5], [1], [[1, 2]])], "StatelessRandomGetKeyCounter",
           "StatelessRandomGetKeyCounterAlg"),
    "StatelessMultinomial": [Use(l, F(n), F(s)) for l, n, s in [
        ((2, 3), 5, [1, 2]), ((4, 7), 6, [3, 4]), ((2, 3), 0, [1, 2]), ((0, 3), 2, [1, 2]), ((2, 3), -1, [1, 2]), ((3,), 2, [1, 2]),
        ((2, 3), 2, [1]), ((2, 3), [2], [1, 2]), ((2, 0), 2, [1, 2])]],
    "StringLength": [Use(s, unit=u) for s in SEVERAL for u in ("BYTE", "UTF8_CHAR")],
    **same([Use(F(TEXTS), encoding=e) for e in ("", "utf-8")] + [Use(s) for s in SEVERAL], "StringLower", "StringUpper"),
    "StringStrip": [Use(F([b" a b ", b"\t\n x", b"", b"  ", b"y\x0b\x0c\r"]))] + [Use(s) for s in SEVERAL],
    "EncodeBase64": [Use(s, pad=p) for s in SEVERAL for p in (True, False)] + [Use(F([b"\xff\xfe\xfd", b"\x00", b"ab"]))],
    "DecodeBase64": [Use(F(t)) for t in (
        [b"", b"YQ", b"YQ==", b"YWI", b"YWI=", b"YWJj", b"_-8", b"YR"], b"a", b"YQ=", b"Y===", b"YW+j", b"YW/j", b"YW j", b"====",
        b"YQ==YQ==", b"YWJjYQ==")],
    "RegexReplace": [Use(F(TEXTS), F(p), F(r), replace_global=g) for g in (True, False) for p, r in [
        (b"[a-z]", b"x"), (b"(a)(.)", b"\\2\\1"), (b"", b"-"), (b"(", b""), (b"a", b"\\5"), (b"^ *", b"")]] + [
        Use((2,), F([b"a"]), F(b"")), Use((2,), F(b"a"), F([b""]))],
    "StaticRegexReplace": [Use(F(TEXTS), pattern=p, rewrite=r, replace_global=g) for g in (True, False) for p, r in [
        ("[a-z]", "x"), ("(a)(.)", "\\2\\1"), ("", "-"), ("^ *", "")]],
    "StringSplit": both([Use(F(TEXTS), F(d)) for d in (b" ", b"", b", ", b"ab")] + [
        Use(F([]), F(b" ")), Use(F(b"a b"), F(b" ")), Use(F([b"a b"]), F([b" "]))], "skip_empty"),
    "StringSplitV2": [Use(F(TEXTS), F(d), maxsplit=m) for d in (b" ", b"", b", ", b"ab") for m in (-1, 0, 1, 2)] + [
        Use(F([]), F(b" ")), Use(F(b"a b"), F(b" ")), Use(F([b"a b"]), F([b" "]))],
    "Substr": [Use(F(t), F(p), F(n), unit=u) for u in ("BYTE", "UTF8_CHAR") for t, p, n in [
        (b"abcdef", 1, 3), (b"abcdef", -3, 2), (b"abcdef", 2, 100), (b"abcdef", 6, 1), ([b"abc", b"defg"], [0, 1], [2, 2]),
        ([[b"abc", b"defg"]], [0, 1], [2, 2]), ([b"abc", b"defg"], 1, 1), ("grün".encode(), 2, 1), ("grün".encode(), -2, 5),
        (b"abc", 4, 1), (b"abc", -4, 1), ([b"abc", b"d"], [0, 2], [1, 1]), (b"abc", [0, 1], [1, 1]), (b"abc", 0, [1]),
        ([], 0, 1), (b"", 0, 1)]],
    "ReduceJoin": [Use(s, F(a), separator=p) for p in ("", ", ") for s, a in [
        ((2, 3), 0), ((2, 3), -1), ((2, 3), [0, 1]), ((2, 3), [1, 0]), ((2, 3), []), ((2, 1, 3, 2), [3, 0]), ((), []),
        ((0, 3), 0), ((0, 3), 1), ((2, 3), 2), ((2, 3), [0, 0])]] + [
        Use((2, 3), F([0]), keep_dims=True)],
    **same([Use(F([b"x" * n for n in range(9)] + [bytes(range(n)) for n in (15, 16, 17, 32, 33, 64, 65, 128, 200)]),
                num_buckets=n) for n in (1, 10, 2**62)] + [Use(s, num_buckets=7) for s in SEVERAL],
           "StringToHashBucketFast", "StringToHashBucket"),
    "StringToHashBucketStrong": [Use(F([bytes(range(n)) for n in (0, 1, 7, 8, 9, 64)]), num_buckets=n, key=[5, -9])
                                 for n in (1, 2**62)] + [Use((2,), num_buckets=3, key=[1])],
    "BroadcastTo": [Use(s, F(t)) for s, t in [
        ((), []), ((), [2, 3]), ((3,), [2, 3]), ((2, 1), [2, 3]), ((1,), [0]), ((0,), [0]),
        ((2, 1, 3, 1), [2, 2, 3, 2]), ((1, 1), [2, 1, 1, 3]), ((3,), [2]), ((2, 3), [3]),
        ((1,), [-1]), ((2, 3), [[2, 3]])]],
    "BroadcastGradientArgs": [Use(F(a), F(b)) for a, b in [
        ([], []), ([2, 3], [3]), ([3], [2, 3]), ([2, 1], [1, 3]), ([0], [1]), ([2, 1, 3, 1], [3, 2]),
        ([1], [1]), ([2], [3]), ([[2]], [2]), ([1, 1, 2, 1, 2], [2, 1])]],
    "CheckNumerics": [Use(s, message="checked") for s in SEVERAL],
    "Concat": [Use(F(a), Each(v)) for a, v in [
        (0, [(2,), (3,)]), (1, [(2, 3), (2, 1)]), (-1, [(2, 3), (2, 0)]), (0, [(0,), (0,)]),
        (2, [(2, 1, 3, 2), (2, 1, 1, 2), (2, 1, 2, 2)]), (0, [(2, 3), (1, 2)]), (2, [(2, 3), (2, 3)]),
        (0, [(2,), (2, 3)]), (0, [(), ()]), ([0], [(2,), (3,)]), (0, [(0,), (3,), (0,)])]],
    "ConcatV2": [Use(Each(v), F(a)) for a, v in [
        (0, [(2,), (3,)]), (1, [(2, 3), (2, 1)]), (-1, [(2, 3), (2, 0)]), (0, [(0,), (0,)]),
        (2, [(2, 1, 3, 2), (2, 1, 1, 2), (2, 1, 2, 2)]), (0, [(2, 3), (1, 2)]), (2, [(2, 3), (2, 3)]),
        (0, [(2,), (2, 3)]), (0, [(), ()]), ([0], [(2,), (3,)]), (-2, [(2,), (2,)])]],
    "ConcatOffset": [Use(F(a), Each([F(s) for s in shapes])) for a, shapes in [
        (0, [[2], [3]]), (1, [[2, 3], [2, 1], [2, 0]]), (-1, [[2, 1, 3, 2], [2, 1, 3, 4]]),
        (0, [[2, 3], [2, 4]]), (2, [[2, 3], [2, 3]]), (0, [[2], [2, 3]]), ([0], [[2], [3]])]],
    **same(both([Use(s, F(a)) for s, a in [
        ((5,), 0), ((2, 3), 1), ((2, 3), -2), ((2, 1, 3, 2), 2), ((1, 2, 1, 2, 3), -1), ((0,), 0),
        ((0, 3), 1)]], "exclusive", "reverse") + [Use(s, F(a)) for s, a in [
            ((), 0), ((2, 3), 2), ((2, 3), [0]), ((2, 3), [0, 1])]], "Cumsum", "Cumprod", "CumulativeLogsumexp"),
    "DynamicPartition": [Use(d, F(p), num_partitions=n) for d, p, n in [
        ((4,), [0, 1, 0, 1], 2), ((4, 2), [2, 0, 2, 2], 3), ((2, 2), [[0, 1], [1, 1]], 2), ((), 1, 2),
        ((0,), [], 2), ((2, 1, 3, 2), [1, 0], 2), ((3,), [0, 2, 0], 2), ((3,), [0, -1, 0], 2),
        ((3,), [0, 1], 2), ((3, 0), [0, 1, 0], 2)]],
    "DynamicStitch": [Use(Each([F(i) for i in ids]), Each(d)) for ids, d in [
        ([[0, 2], [1]], [(2,), (1,)]), ([[0, 1], [1, 2]], [(2, 2), (2, 2)]), ([0, [2, 1]], [(3,), (2, 3)]),
        ([[[0, 1]], [[2], [3]]], [(1, 2, 2), (2, 1, 2)]), ([[], []], [(0,), (0,)]),
        ([[0, 1]], [(2, 1, 3, 2)]), ([[0], [1]], [(1, 2), (1, 3)]), ([[-1]], [(1,)]),
        ([[0, 1]], [(3,)]), ([[0], [1]], [(1,), (2,)])]],
    **same([Use(*shapes, incompatible_shape_error=e) for shapes in SHAPES_2 for e in (True, False)],
           "Equal", "NotEqual"),
    "ExpandDims": [Use(s, F(a)) for s, a in [
        ((), 0), ((), -1), ((5,), 1), ((2, 3), -2), ((2, 1, 3, 2), 4), ((0,), 0), ((2, 3), 3),
        ((2, 3), -4), ((2, 3), [1]), ((2, 3), [0, 1])]],
    "Fill": [Use(F(d), v) for d, v in [
        ([], ()), ([3], ()), ([2, 3], ()), ([0], ()), ([2, 0, 3], ()), ([2, 1, 3, 2], ()), ([-1], ()),
        ([3], (1,)), (3, ()), ([[2]], ())]],
    "Gather": [Use(p, F(i)) for p, i in GATHER],
    "GatherNd": [Use(p, F(i)) for p, i in [
        ((5,), [[1], [4]]), ((2, 3), [[0, 1], [1, 2]]), ((2, 3), [[1]]), ((2, 3), [1, 2]),
        ((2, 3, 2, 2), [[[0, 1, 1, 0]], [[1, 2, 0, 1]]]), ((2, 3), [[]]), ((0, 3), [[0]][:0]),
        ((2, 3), [[2, 0]]), ((2, 3), [[0, -1]]), ((2, 3), [[0, 0, 0]]), ((), [[]]), ((2, 3), 0)]],
    "GatherV2": GATHER_AXIS + [Use(p, F(i), F(0)) for p, i in GATHER],
    "IdentityN": [Use(Each([s, (2, 1, 3, 2), (0,)]), T=[tf.float32, tf.int64, t]) for s in SEVERAL
                  for t in (tf.string, tf.bool, tf.bfloat16)],
    "InTopK": [Use(p, F(t), k=k) for p, t in BATCHES for k in (1, 2, 5, 0)] + [
        Use((2, 3), F([3, -1]), k=1), Use((2, 3), F([0]), k=1), Use((3,), F([0, 0, 0]), k=1)],
    "InTopKV2": [Use(p, F(t), F(k)) for p, t in BATCHES for k in (1, 2, 5, 0)] + [
        Use((2, 3), F([3, -1]), F(1)), Use((2, 3), F([0]), F(1)), Use((2, 3), F([0, 1]), F([1]))],
    "InvertPermutation": [Use(F(v)) for v in ([], [0], [2, 0, 1], [4, 3, 2, 1, 0], [0, 0], [0, 3],
                                             [-1, 0], [[0, 1]], 0)],
    "ListDiff": [Use(x, y) for x, y in [((5,), (2,)), ((0,), (2,)), ((3,), (0,)), ((37,), (20,)),
            ((2, 3), (2,)),
                                        ((3,), (2, 3)), ((), ())]],
    "LinSpace": [Use(F(a), F(b), F(n), plain=True) for a, b, n in [
        (0, 1, 5), (-2.5, 7, 3), (1, 1, 4), (3, -3, 7), (2, 9, 1), (0, 1, 0), (0, 1, -1), ([0], 1, 2)]],
    "HistogramSummary": [Use(F(b"a/tag"), s) for s in SEVERAL] + [Use(F([b"a"]), (3,))],
    "ScalarSummary": [Use(F(t), s) for t, s in [
        (b"tag", ()), ([b"a", b"b", b"c"], (3,)), ([[b"a"], [b"b"]], (2, 1)), ([], (0,)), (b"tag", (1,)),
        ([b"a"], ()), ([b"a"], (2,)), ([b"a", b"a"], (2,))]],
    "MergeSummary": [Use(Each([F(t) for t in texts])) for texts in [
        [SUMMARY], [SUMMARY, OTHER_SUMMARY], [[SUMMARY, OTHER_SUMMARY]], [SUMMARY, SUMMARY], [b""],
        [b"no summary"], [[], b""]]],
    "OneHot": [Use(F(i), F(d), on, off, axis=a) for i, d, on, off, a in [
        (2, 3, (), (), -1), ([0, 2], 3, (), (), -1), ([0, 2, 5], 3, (), (), 0), ([-1, 1], 3, (), (), -1),
        ([[0, 1], [2, 0]], 3, (), (), 1), ([[[0, 1]], [[2, 0]]], 3, (), (), 1), ([], 3, (), (), -1),
        ([0, 1], 0, (), (), -1), ([0], -1, (), (), -1), ([0], 3, (1,), (), -1), ([0], 3, (), (2,), -1),
        ([0], 3, (), (), 2), ([0], 3, (), (), -2), ([0], [3], (), (), -1)]],
    "ParallelDynamicStitch": [Use(Each([F(i) for i in ids]), Each(d)) for ids, d in [
        ([[0, 2], [1]], [(2,), (1,)]), ([0, [2, 1]], [(3,), (2, 3)]),
        ([[[0, 1]], [[2], [3]]], [(1, 2, 2), (2, 1, 2)]),
        ([[], []], [(0,), (0,)]), ([[0, 1]], [(2, 1, 3, 2)]), ([[0], [1]], [(1, 2), (1, 3)]), ([[-1]], [(1,)]),
        ([[0, 1]], [(3,)]), ([[0], [1]], [(1,), (2,)])]],
    "Pack": [Use(Each(v), axis=a) for v, a in [
        ([(), ()], 0), ([(), ()], -1), ([(3,), (3,)], 0), ([(3,)] * 3, 1), ([(2, 3)] * 2, -1),
        ([(2, 1, 3, 2)] * 2, 2), ([(0,)] * 2, 0), ([(0, 3)] * 2, 1), ([(5,)], 0), ([(2,), (3,)], 0),
        ([(2,), (2,)], 2), ([(2,), (2,)], -3)]],
    "Pad": [Use(s, F(p)) for s, p in PADS],
    "PadV2": [Use(s, F(p), ()) for s, p in PADS] + [Use((2,), F([[1, 1]]), (1,))],
    "Range": [Use(F(a), F(b), F(d), plain=True) for a, b, d in [
        (0, 5, 1), (1, 10, 3), (5, 0, -2), (0, 0, 1), (3, 0, 1), (0, 3, -1), (0, 3, 0), ([0], 3, 1),
        (0, 7, 2), (0, [3], 1), (1, 1.9, 0.1), (0, 0.6, 0.05), (2, 4.1, 0.7), (3, 0.6, -0.3)]],
    "RegexFullMatch": [Use(F([b"abc", b"", b"ab1"]), F(p)) for p in (b"[a-z]+", b".*", b"", b"(", b"\\w+")
                       ] + [Use(s, F(b"a.*")) for s in SEVERAL] + [Use((2,), F([b"a"]))],
    "StaticRegexFullMatch": [Use(s, pattern=p) for s in SEVERAL for p in ("[a-z]*", "a.c", "")],
    "Reshape": [Use(s, F(t)) for s, t in [
        ((), []), ((), [1, 1]), ((6,), [2, 3]), ((2, 3), [-1]), ((2, 3), [3, -1]), ((0,), [0, 3]),
        ((0, 3), [-1, 3]), ((2, 1, 3, 2), [2, 2, 3, 1]), ((1, 2, 1, 2, 3), [12]), ((6,), [4]),
        ((6,), [-1, -1]), ((6,), [-1, 4]), ((6,), [-2]), ((1,), []), ((0,), [-1, 0]), ((6,), [[6]])]],
    "ReverseSequence": [Use(s, F(n), seq_dim=q, batch_dim=b) for s, n, q, b in [
        ((2, 3), [3, 2], 1, 0), ((2, 3), [0, 1], 1, 0), ((2, 3), [1, 2, 0], 0, 1),
        ((2, 1, 3, 2), [2, 3], 2, 0), ((2, 1, 3, 2), [1, 2, 2], 0, 2), ((1, 2, 1, 2, 3), [2, 1], 4, 1),
        ((0, 3), [], 1, 0), ((2, 0), [0, 0], 1, 0), ((2, 3), [4, 0], 1, 0), ((2, 3), [-1, 0], 1, 0),
        ((2, 3), [1], 1, 0), ((2, 3), [[1, 1]], 1, 0), ((2, 3), [1, 1], 0, 0), ((2, 3), [1, 1], 2, 0),
        ((2, 3), [1, 1], 1, 2), ((3,), [1, 1, 1], 0, 0)]],
    "ReverseV2": [Use(s, F(a)) for s, a in [
        ((5,), [0]), ((2, 3), [1]), ((2, 3), [0, -1]), ((2, 3), []), ((2, 1, 3, 2), [0, 2]),
        ((1, 2, 1, 2, 3), [-1, 1, 3]), ((0, 3), [0]), ((), []), ((2, 3), [2]), ((2, 3), [0, 0]),
        ((2, 3), 0)]],
    "ScatterNd": SCATTER_ND,
    "ShardedFilename": [Use(F(b"a/model"), F(i), F(n)) for i, n in [(0, 1), (3, 12), (1, 100000)]]
                       + [Use(F([b"a"]), F(0), F(1))],
    "ShardedFilespec": [Use(F(b"a/model"), F(n)) for n in (1, 12, 100000)] + [Use(F([b"a"]), F(1))],
    "Slice": SLICES,
    "SparseSoftmaxCrossEntropyWithLogits": [Use(f, F(l)) for f, l in [
        ((2, 3), [0, 2]), ((1, 4), [3]), ((0, 3), []), ((3, 1), [0, 0, 0]), ((2, 3), [0, 3]),
        ((2, 3), [-1, 0]), ((2, 3), [0]), ((3,), [0]), ((2, 3), [[0], [1]]), ((2, 0), [0, 0]),
        ((33, 10), list(range(10)) * 3 + [0, 1, 2])]],
    "SoftmaxCrossEntropyWithLogits": [Use(f, l) for f, l in [
        ((2, 3), (2, 3)), ((0, 3), (0, 3)), ((2, 3), (1, 3)), ((2, 3), (3,)), ((1, 3), (2, 3)), ((2, 1), (1, 3)),
        ((33, 10), (33, 10)), ((2, 3), (2, 2)), ((3,), (3,)), ((2, 3), ()), ((), ()), ((2, 1, 3), (2, 1, 3)),
        ((2, 0), (2, 0))]],
    "Split": [Use(F(a), s, num_split=n) for a, s, n in [
        (0, (6,), 3), (1, (2, 4), 2), (-1, (2, 4), 4), (0, (2, 3), 1), (2, (2, 1, 6, 2), 3), (0, (0,), 2),
        (1, (0, 4), 2), (0, (5,), 2), (2, (2, 4), 2), (-3, (2, 4), 2), (0, (), 1), ([0], (6,), 3)]],
    "SplitV": [Use(s, F(z), F(a), num_split=n) for s, z, a, n in [
        ((6,), [1, 2, 3], 0, 3), ((2, 4), [4, 0], 1, 2), ((2, 4), [-1, 1], -1, 2), ((6,), [6], 0, 1),
        ((2, 1, 6, 2), [2, 4], 2, 2), ((0,), [0, 0], 0, 2), ((6,), [1, 2], 0, 2), ((6,), [-1, -1], 0, 2),
        ((6,), [7, -1], 0, 2), ((6,), [1, 2, 3], 1, 3), ((6,), [3, 3, 0], 0, 2), ((6,), [8, -2], 0, 2)]],
    "Squeeze": [Use(s, squeeze_dims=d) for s, d in [
        ((), []), ((1,), []), ((2, 1, 3, 1), []), ((2, 1, 3, 1), [1]), ((2, 1, 3, 1), [-1, 1]), ((1, 0), [0]),
        ((1, 1), [0]), ((2, 3), []), ((2, 3), [0]), ((1, 3), [2]), ((1, 3), [-3])]],
    "StridedSlice": [Use(s, F(b), F(e), F(n), **m) for s, b, e, n, m in STRIDED],
    "TensorStridedSliceUpdate": slice_updates() + [Use(s, F(b), F(e), F(n), (), **m) for s, b, e, n, m in STRIDED[14:]],
    "StridedSliceGrad": [Use(F(s), F(b), F(e), F(n), d, **m) for s, b, e, n, d, m in [
        ([5], [1], [4], [1], (3,), {}), ([5], [4], [0], [-2], (2,), {}), ([5], [2], [0], [1], (),
                                                                        {"shrink_axis_mask": 1}),
        ([2, 3], [0, 1], [2, 3], [1, 1], (2, 2), {}), ([2, 3], [1], [2], [1], (1, 3), {}),
        ([2, 3, 2, 2], [0, 1], [0, 2], [1, 1], (2, 3, 2, 1), {"ellipsis_mask": 1}),
        ([2, 3], [0, 0], [0, 2], [1, 1], (1, 2, 3), {"new_axis_mask": 1}),
        ([0, 3], [0], [2], [1], (0, 3), {}), ([5], [1], [4], [1], (2,), {}),
        ([5], [0], [3], [0], (3,), {})]],
    "StringToNumber": [Use(F([s]), plain=True) for s in STRINGS] + [
        Use(F(s)) for s in (b"3", [], [[b"1", b"2"]], [[[[b"1"]]]])] + [
        Use(F(s), plain=True) for s in (
            b"0x1A", b"-0x1a", b"+0X1f", b"0x", b"0x1.8p1", b"0x1.8", b" 0x10 ", b"0x1g", b"0xffffffffffffffffff", b"INF",
            b"0x" + b"f" * 29, b"-0x" + b"f" * 29, b"1" * 31, b"1" * 32, b" " * 31 + b"1", b"+nan", b"infinity", b"nan(1)", b"  ", b"1e400", b"1e-400", b".5", b"5.", b".", b"+.5", b"++1", b"1e", b"1f")],
    "Tile": [Use(s, F(m)) for s, m in [
        ((), []), ((3,), [2]), ((2, 3), [1, 2]), ((2, 3), [3, 0]), ((0, 3), [2, 2]), ((2, 1, 3, 2), [1, 2, 1, 3]),
        ((1, 2, 1, 2, 3), [2, 1, 2, 1, 1]), ((2, 3), [2]), ((3,), [-1]), ((3,), [[2]]), ((2, 3), [1, 1])]],
    "TopKV2": [Use(s, F(k), plain=True) for s, k in TOP_K] + [
        Use((3,), F([1])), Use((3,), F(-1)),
        Use(F([3, 1, 3, 3, 2, 1]), F(4)), Use(F([[3, 1, 3], [2, 2, 2]]), F(2))],
    **{name: [Use(s, F(p)) for s, p in [
        ((), []), ((3,), [0]), ((2, 3), [1, 0]), ((2, 3), [0, 1]), ((0, 3), [1, 0]), ((2, 1, 3, 2), [3, 0, 2, 1]),
        ((2, 1, 3, 2), [0, 2, 3, 1]), ((1, 2, 1, 2, 3), [4, 3, 2, 1, 0]), ((2, 3), [0]), ((2, 3), [0, 0]),
        ((2, 3), [0, 2]), ((2, 3), [[1, 0]])]] for name in ("Transpose", "ConjugateTranspose")},
    **same(UNIQUES, "UniqueV2", "UniqueWithCountsV2"),
    "Unpack": [Use(s, num=n, axis=a) for s, n, a in [
        ((3,), 3, 0), ((2, 3), 2, 0), ((2, 3), 3, -1), ((2, 1, 3, 2), 3, 2), ((0,), 0, 0), ((2, 0), 2, 0),
        ((2, 3), 4, 0), ((2, 3), 2, 2), ((), 1, 0), ((2, 3), 2, -3)]],
    **LINALG_HINTS,
    **WINDOW_HINTS,
    **MORE_HINTS,
    **SEQUENCE_HINTS,
}
