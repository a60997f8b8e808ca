# SPDX-License-Identifier: Apache-2.0
"""How the ops that take or change parts of tensors with strides are used."""
import numpy as np

from op_cases import Fixed as F, Use

# Shape, begin, end, strides, and the masks: begin, end, ellipsis, new_axis, shrink_axis.
STRIDED = [
    ((5,), [1], [4], [1], {}), ((5,), [4], [0], [-2], {}), ((5,), [-4], [-1], [2], {}),
    ((5,), [0], [0], [-1], {"begin_mask": 1, "end_mask": 1}), ((5,), [9], [-9], [-1], {}),
    ((5,), [2], [0], [1], {"shrink_axis_mask": 1}), ((5,), [-1], [0], [1], {"shrink_axis_mask": 1}),
    ((2, 3), [0, 1], [2, 3], [1, 1], {}), ((2, 3), [1], [2], [1], {}),
    ((2, 3), [0, 2], [0, 0], [1, -1], {"end_mask": 3}),
    ((2, 3, 2, 2), [0, 0, 1], [0, 0, 2], [1, 1, 1], {"ellipsis_mask": 2, "begin_mask": 1,
                                                     "end_mask": 1}),
    ((2, 3, 2, 2), [0, 1, 0, 0], [2, 3, 1, 2], [1, 1, 1, 1], {"shrink_axis_mask": 4}),
    ((2, 3), [0, 0, 1], [0, 2, 2], [1, 1, 1], {"new_axis_mask": 1}),
    ((2, 3), [0, 0], [0, 0], [1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ((0, 3), [0], [2], [1], {}), ((), [], [], [], {}), ((), [0], [1], [1], {"new_axis_mask": 1}),
    ((5,), [3], [2], [1], {}), ((5,), [0], [3], [0], {}), ((5,), [5], [6], [1],
                                                          {"shrink_axis_mask": 1}),
    ((5,), [0, 0], [1, 1], [1, 1], {}), ((5,), [0], [1, 2], [1], {}),
    ((2, 3), [0, 0], [1, 1], [1, 1], {"ellipsis_mask": 3}),
    ((5,), [1], [0], [-1], {"shrink_axis_mask": 1})]


def slice_updates():
    """Values for parts that can be taken, one that is broadcast and one that has not the right shape."""
    uses = []
    for s, b, e, n, m in STRIDED[:14]:
        at = np.zeros(s)[numpy_slice(b, e, n, m)]
        uses.append(Use(s, F(b), F(e), F(n), at.shape, **m))
    return uses + [Use((5,), F([1]), F([4]), F([1]), (2,)), Use((5,), F([1]), F([4]), F([1]), ())]


def numpy_slice(begin, end, strides, masks):
    index = []
    for i, (b, e, n) in enumerate(zip(begin, end, strides)):
        def has(name, bit=1 << i):
            return masks.get(name, 0) & bit
        if has("ellipsis_mask"):
            index.append(Ellipsis)
        elif has("new_axis_mask"):
            index.append(np.newaxis)
        elif has("shrink_axis_mask"):
            index.append(b)
        else:
            index.append(slice(None if has("begin_mask") else b, None if has("end_mask") else e, n))
    return tuple(index)
