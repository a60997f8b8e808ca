# SPDX-License-Identifier: Apache-2.0
"""How the ops on matrices, Einsum and Fourier transforms are used; see op_hints.py.

Decompositions are unique up to the signs of vectors, which follow from how they are computed; what the
vectors must be is checked by a program (op_programs.py), which puts the matrices together again.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from op_cases import Each, Fixed as F, Use, both

SQUARE = [[3, 1, -1], [2, 4, 0.5], [-1, 0.5, 2]]
POSITIVE = [[4, 1, -1], [1, 3, 0.5], [-1, 0.5, 2]]
BATCH = [[[3, 1], [-1, 2]], [[1, 2], [0.5, -2]]]
SINGULAR = [[1, 2], [2, 4]]
NONE = np.zeros((0, 0))

MATRICES = [F(SQUARE), F(BATCH), F([[2]]), F(NONE), F(np.zeros((2, 0, 0))), F(np.zeros((0, 2, 2)))]
NOT_SQUARE = [(2, 3), (3,), ()]


def plain(*inputs, **attrs):
    return Use(*inputs, plain=True, **attrs)


def one(matrices, **attrs):
    return [plain(m, **attrs) for m in matrices]


SOLVES = [(F(SQUARE), (3, 2)), (F(BATCH), (2, 2, 3)), (F(BATCH), (2, 2, 0)), (F(NONE), (0, 3)),
          (F(SQUARE), (2, 2)), (F(BATCH), (2, 3)), (F(SQUARE), (3,)), ((2, 3), (3, 1))]

LEAST_SQUARES = [plain(F(a), b, F(l2), fast=fast) for a, b in [
    (SQUARE, (3, 2)), (BATCH, (2, 2, 1)), ([[1, 2], [3, -1], [0.5, 1]], (3, 2)),
    ([[1, 2, 0], [3, -1, 1]], (2, 1)), (np.zeros((2, 0)), (2, 3)), (SQUARE, (2, 2))]
    for l2, fast in [(0.5, True), (0, True), (0, False)]] + [
        plain(F(SQUARE), (3, 1), F(-1), fast=True), plain(F(SQUARE), (3, 1), F([0]), fast=True)]

TRIANGLES = [plain(a, b, lower=lower, adjoint=adjoint) for a, b in [
    (F(SQUARE), (3, 2)), (F(BATCH), (2, 2, 3)), (F(BATCH), (2, 3)), (F(SQUARE), (2, 1, 3, 1)), (F(NONE), (0, 3)),
    (F(SQUARE), (2, 2)), ((2, 3), (3, 1)), (F(SQUARE), (3,))]
    for lower in (True, False) for adjoint in (True, False)]

BANDS = [[[2, 3, 1.5, -4], [9, 1, -1, 2]], [[9, 1, -1, 2], [2, 3, 1.5, -4]]]
BANDED = [plain(F(BANDS[0] if lower else BANDS[1]), b, lower=lower, adjoint=adjoint)
          for b in [(4, 2), (3, 4, 1)] for lower in (True, False) for adjoint in (True, False)] + [
    plain(F([[1, 2, 4]]), (3, 2), lower=True), plain(F([[0, 2, 4]]), (3, 2), lower=True),
    plain(F(BANDS[0]), (3, 2), lower=True), plain(F(np.zeros((2, 0))), (0, 2), lower=True),
    plain((3,), (3, 2), lower=True)]

DIAGONALS = [[1, -1, 0.5, 9], [1, 4, -3, 2], [9, 2, 0.5, 1]]
TRIDIAGONAL = [plain(F(d), b, partial_pivoting=p, perturb_singular=s) for d, b in [
    (DIAGONALS, (4, 2)), ([DIAGONALS, DIAGONALS], (2, 4, 1)), ([[1, 9], [0, 2], [9, 3]], (2, 1)),
    ([[5], [2], [5]], (1, 2)), ([[5], [0], [5]], (1, 2)), ([[1, 9], [1, 1], [9, 1]], (2, 1)),
    (np.zeros((3, 0)), (0, 2)), (DIAGONALS, (3, 2)), ([[1, 2]] * 2, (2, 1))]
    for p, s in [(True, False), (False, False), (True, True), (False, True)]]

EINSUMS = [plain(Each(shapes), equation=equation) for equation, *shapes in [
    ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("i->ii", (3,)),
    ("iijj->ij", (2, 2, 3, 3)), ("ij->iji", (2, 3)), ("->", ()), ("i...->...", (2, 3, 2)), ("i...j->j...i", (2, 3, 2)),
    ("...ii->...i", (2, 3, 3)), ("ij->ij", (0, 3)), ("ij->j", (0, 3)), ("ab->ba", (1, 3)),
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("i,j->ij", (2,), (3,)),
    ("ij,ij->", (2, 3), (2, 3)), ("ij,ij->ij", (2, 3), (2, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)),
    ("ab,cd->dbca", (2, 1), (2, 3)), ("abc,cbd->ad", (2, 3, 2), (2, 3, 4)), ("aab,bc->ac", (2, 2, 3), (3, 2)),
    ("ab,c->c", (2, 3), (4,)), ("ij,jk->ik", (2, 0), (0, 3)), ("ij,jk->ik", (0, 2), (2, 3)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)),
    ("ij,...jk->...ik", (2, 3), (2, 3, 2)), ("...,...->...", (2, 1), (3,)), ("i...,...->i...", (2, 3), (1,)),
    (",ij->ij", (), (2, 3)), ("ij,jk->ii", (2, 3), (3, 2)),
    ("ij,jk->ik", (2, 3), (4, 4)), ("ii->i", (2, 3)), ("ij,jk", (2, 3), (3, 4)), ("...i->i", (2, 3)),
    ("ij->ji", (2,)), ("ij->i->j", (2, 3)), ("i,j,k->ijk", (2,), (3,)), ("ij,jk->ik", (2, 3))]]

TRANSFORMED = [(3,), (8,), (2, 5), (2, 3, 4), (2, 2, 3, 5), (1, 1, 1), (2, 67), (0, 3), (2, 0), ()]


def real_uses(rank):
    shapes = {1: [((5,), [5]), ((2, 8), [8]), ((2, 6), [3]), ((2, 3), [1]), ((3,), [5]), ((3,), [-1]), ((3,), [2, 2]),
                  ((), [1]), ((0, 3), [3]), ((2, 3, 67), [67]), ((3,), 3)],
              2: [((4, 5), [4, 5]), ((2, 3, 6), [3, 6]), ((2, 3, 6), [2, 4]), ((3, 6), [6]), ((3, 6), [4, 6]), ((3,), [3, 3])],
              3: [((2, 3, 4), [2, 3, 4]), ((2, 3, 2, 5), [3, 2, 5]), ((3, 3, 3), [2, 3, 2]), ((2, 2), [2, 2, 2])]}
    types = [(tf.float32, tf.complex64), (tf.float64, tf.complex128), (tf.float32, tf.complex128)]
    return [plain(s, F(n), Treal=r, Tcomplex=c) for s, n in shapes[rank] for r, c in types]


LINALG_HINTS = {
    "BandedTriangularSolve": BANDED,
    "BatchMatrixDeterminant": one(MATRICES + NOT_SQUARE),
    "Cholesky": one([F(POSITIVE), F([POSITIVE, POSITIVE]), F([[2]]), F(NONE), F(np.zeros((2, 0, 0))),
                     *NOT_SQUARE]),
    "Einsum": EINSUMS,
    "LogMatrixDeterminant": one(MATRICES + [F(SINGULAR)] + NOT_SQUARE),
    "Lu": one(MATRICES + [F(SINGULAR)] + NOT_SQUARE),
    "MatrixDeterminant": one(MATRICES + [F(SINGULAR)] + NOT_SQUARE),
    "MatrixInverse": both(one(MATRICES + [F(SINGULAR)] + NOT_SQUARE), "adjoint"),
    "MatrixLogarithm": one([F(POSITIVE), F(BATCH), F([[2]]), F(NONE), *NOT_SQUARE]),
    "MatrixSolve": both([plain(*u) for u in SOLVES + [(F(SINGULAR), (2, 1))]], "adjoint"),
    "MatrixSolveLs": LEAST_SQUARES,
    "MatrixSquareRoot": one([F(POSITIVE), F([[2]]), F([[0, 1], [-1, 0]]), F(NONE), *NOT_SQUARE]),
    "MatrixTriangularSolve": TRIANGLES,
    "Qr": both(one([F(SQUARE), F(BATCH), F([[1, 2], [3, -1], [0.5, 1]]), F([[1, 2, 0], [3, -1, 1]]), F(NONE),
                    F(np.zeros((0, 3))), F(np.zeros((3, 0))), (3,)]), "full_matrices"),
    "Svd": one([F(SQUARE), F(BATCH), F([[1, 2], [3, -1], [0.5, 1]]), F([[1, 2, 0], [3, -1, 1]]), F(NONE),
                F(np.zeros((0, 3))), (3,)], compute_uv=False),
    "SelfAdjointEigV2": one([F(POSITIVE), F([POSITIVE, SQUARE]), F([[2]]), F(NONE), *NOT_SQUARE], compute_v=False),
    "TridiagonalMatMul": [plain(*u) for u in [
        ((2, 1, 3), (2, 1, 3), (2, 1, 3), (2, 3, 2)), ((1, 4), (1, 4), (1, 4), (4, 1)), ((1, 1), (1, 1), (1, 1), (1, 2)),
        ((1, 4), (1, 3), (1, 4), (4, 1)), ((2, 4), (2, 4), (2, 4), (4, 1))]],
    "TridiagonalSolve": TRIDIAGONAL,
    **{prefix + "FFT" + suffix: [plain(s, Tcomplex=t) for s in TRANSFORMED for t in (tf.complex64, tf.complex128)]
       for prefix in ("", "I") for suffix in ("", "2D", "3D")},
    **{prefix + "RFFT" + suffix: real_uses(rank) for prefix in ("", "I")
       for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))},
}
