# SPDX-License-Identifier: Apache-2.0
"""How the ops are used that count values; see op_hints.py."""
from op_cases import Fixed as F, Use

COUNTED = [([[1, 1, 4], [0, 5, 5]], []), ([[1, 1, 4], [0, 5, 5]], [[1, 2, 3], [4, 5, 6]]), ([3, 3, 0], []), ([3, -1, 0], [1, 2, 3]),
           ([], []), ([[]], []), ([[], []], []), ([3, 3], [1]), ([[[1]]], []), (3, [])]
LENGTHS = [dict(minlength=a, maxlength=b) for a, b in ((-1, -1), (8, -1), (-1, 4), (3, 0))]
SPARSE_COUNTED = [
    ([[0, 0], [0, 2], [1, 1]], [1, 1, 4], [2, 3], []), ([[0, 0], [0, 2], [1, 1]], [1, 1, 4], [2, 3], [1, 2, 3]),
    ([[0], [2]], [5, 5], [3], []), ([[0, 0, 1], [1, 1, 0]], [2, 2], [2, 2, 2], []), ([[0, 0]], [1, 2], [2, 3], []),
    ([[0, 3]], [1], [2, 3], []), ([[2, 0]], [1], [2, 3], []), ([[-1, 0]], [1], [2, 3], []), ([[0, 0]], [1], [2], []),
    ([[0, 0]], [1], [2, 3], [1, 2]), ([0], [1], [2], [])]
RAGGED_COUNTED = [([0, 1, 1, 3], [1, 1, 4], []), ([0, 3], [1, 1, 4], [1, 2, 3]), ([0, 0], [], []), ([0], [], []), ([1, 3], [1, 1, 4], []),
                  ([0, 2], [1, 1, 4], []), ([0, 3], [1, 1, 4], [1])]

COUNT_HINTS = {
    "DenseCountSparseOutput": [Use(F(v), F(w), binary_output=b, **n) for v, w in COUNTED for b in (False, True) for n in LENGTHS],
    "SparseCountSparseOutput": [Use(F(i), F(v), F(s), F(w), binary_output=b, **n)
                                for i, v, s, w in SPARSE_COUNTED for b in (False, True) for n in LENGTHS],
    "RaggedCountSparseOutput": [Use(F(s), F(v), F(w), binary_output=b, **n)
                                for s, v, w in RAGGED_COUNTED for b in (False, True) for n in LENGTHS],
}
