# SPDX-License-Identifier: Apache-2.0
"""How Conv is used, the convolution of any number of batch dimensions."""
from op_cases import Use

FLAT = [
    ((2, 5, 6, 3), (2, 3, 3, 4), dict(padding="SAME")), ((2, 5, 6, 3), (2, 3, 3, 4), dict(padding="VALID", strides=[1, 2, 1, 1])),
    ((2, 3, 5, 6, 3), (2, 3, 3, 4), dict(padding="SAME", batch_dims=2)), ((1, 2, 1, 4, 4, 1), (3, 3, 1, 2), dict(padding="VALID", batch_dims=3)),
    ((1, 5, 6, 2), (2, 2, 2, 2), dict(padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])),
    ((1, 7, 6, 2), (2, 3, 2, 2), dict(padding="SAME", dilations=[1, 2, 1, 1])), ((1, 1, 1, 1), (1, 1, 1, 1), dict(padding="VALID")),
    ((0, 5, 6, 3), (2, 3, 3, 4), dict(padding="SAME")), ((2, 0, 5, 6, 3), (2, 3, 3, 4), dict(padding="SAME", batch_dims=2))]
DEEP = [
    ((1, 3, 4, 5, 2), (2, 2, 3, 2, 3), dict(padding="SAME")), ((2, 3, 4, 5, 2), (1, 2, 3, 2, 3), dict(padding="VALID", strides=[1, 2, 1, 2, 1])),
    ((2, 2, 3, 4, 4, 1), (2, 2, 2, 1, 2), dict(padding="VALID", batch_dims=2))]
WRONG = [
    ((2, 5, 6, 3), (2, 3, 2, 4), {}), ((2, 5, 6, 3), (2, 3, 3), {}), ((2, 5, 6), (2, 3, 3, 4), {}), ((2, 2, 5, 6, 3), (2, 3, 3, 4), {}),
    ((2, 5, 6, 3), (2, 3, 3, 4), dict(strides=[1, 1, 1])), ((2, 5, 6, 3), (2, 3, 3, 4), dict(strides=[2, 1, 1, 1])),
    ((2, 5, 6, 3), (2, 3, 3, 4), dict(strides=[1, 0, 1, 1])), ((2, 5, 6, 3), (2, 3, 3, 4), dict(dilations=[1, 1, 1])),
    ((2, 5, 6, 3), (6, 3, 3, 4), {}), ((2, 5, 6, 3), (2, 3, 3, 0), {})]


def uses(cases, rank):
    return [Use(x, f, plain=True, **{"padding": "VALID", "strides": [1] * rank, **attrs}) for x, f, attrs in cases]


CONV_HINTS = {"Conv": uses(FLAT + WRONG, 4) + uses(DEEP, 5)}
