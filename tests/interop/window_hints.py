# SPDX-License-Identifier: Apache-2.0
"""How convolutions and pooling are used: sizes, strides, padding, and what TensorFlow refuses of these."""
from op_cases import Fixed as F, Use

ONES = [1, 1, 1, 1]

# Image, filter, output, attributes. Where the output is None, the convolution is an error.
CONVOLUTIONS = [
    ((1, 4, 5, 2), (2, 2, 2, 3), (1, 3, 4, 3), {}),
    ((2, 5, 4, 3), (3, 3, 3, 2), (2, 5, 4, 2), {"padding": "SAME"}),
    ((2, 7, 6, 3), (3, 2, 3, 4), (2, 4, 3, 4), {"padding": "SAME", "strides": [1, 2, 2, 1]}),
    ((1, 6, 6, 1), (1, 1, 1, 1), (1, 2, 3, 1), {"strides": [1, 3, 2, 1]}),
    ((2, 3, 3, 4), (1, 1, 4, 5), (2, 3, 3, 5), {}),
    ((1, 4, 4, 2), (4, 4, 2, 17), (1, 1, 1, 17), {}),
    ((3, 12, 10, 16), (5, 3, 16, 32), (3, 12, 10, 32), {"padding": "SAME"}),
    ((1, 7, 7, 2), (2, 3, 2, 3), (1, 5, 3, 3), {"dilations": [1, 2, 2, 1]}),
    ((1, 4, 4, 2), (2, 2, 2, 3), (1, 9, 4, 3),
     {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 5, 0, 1, 0, 0]}),
    ((0, 4, 4, 2), (2, 2, 2, 3), (0, 3, 3, 3), {}), ((1, 2, 2, 2), (3, 3, 2, 1), (1, 0, 0, 1), {}),
    ((1, 0, 4, 2), (2, 2, 2, 1), (1, 0, 4, 1), {"padding": "SAME"}),
    ((1, 4, 4, 2), (2, 2, 2, 3), (1, 1, 1, 3), {"strides": [1, 2**30, 2**30, 1]}),
    ((1, 2, 2, 2), (4, 4, 2, 1), None, {}), ((1, 4, 4, 3), (2, 2, 2, 2), None, {}),
    ((1, 4, 4, 2), (2, 2, 0, 2), None, {}), ((1, 4, 4, 2), (0, 2, 2, 2), None, {}),
    ((4, 4, 2), (2, 2, 2, 1), None, {}), ((1, 4, 4, 2), (2, 2, 2), None, {}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"strides": [1, 0, 1, 1]}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"strides": [1, 1, 1]}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"dilations": [1, -1, 1, 1]}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None,
     {"padding": "EXPLICIT", "explicit_paddings": [0, 0, -1, 1, 0, 0, 0, 0]}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 1]}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"explicit_paddings": [0, 0, 1, 1, 0, 0, 0, 0]})]

GROUPED = [((1, 4, 4, 4), (2, 2, 2, 6), (1, 3, 3, 6), {}), ((1, 4, 4, 4), (2, 2, 2, 5), None, {})]

DEPTHWISE = [
    ((1, 4, 5, 2), (2, 2, 2, 3), (1, 3, 4, 6), {}),
    ((2, 5, 4, 3), (3, 3, 3, 1), (2, 5, 4, 3), {"padding": "SAME"}),
    ((2, 7, 6, 40), (3, 2, 40, 1), (2, 4, 3, 40), {"padding": "SAME", "strides": [1, 2, 2, 1]}),
    ((1, 5, 5, 1), (2, 2, 1, 2), (1, 4, 4, 2), {}), ((0, 4, 4, 2), (2, 2, 2, 1), (0, 3, 3, 2), {}),
    ((1, 4, 4, 2), (2, 2, 2, 3), (1, 5, 4, 6),
     {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 1, 0, 1, 0, 0]}),
    ((1, 4, 4, 2), (2, 2, 3, 1), None, {}), ((1, 2, 2, 2), (4, 4, 2, 1), None, {}),
    ((1, 4, 4, 2), (2, 2, 2, 1), None, {"strides": [1, 0, 0, 1]})]

DEEP = [
    ((1, 3, 4, 5, 2), (2, 2, 3, 2, 3), (1, 2, 3, 3, 3), {}),
    ((2, 3, 4, 5, 3), (2, 3, 2, 3, 2), (2, 3, 4, 5, 2), {"padding": "SAME"}),
    ((1, 5, 4, 4, 2), (3, 2, 1, 2, 4), (1, 3, 2, 2, 4),
     {"padding": "SAME", "strides": [1, 2, 2, 2, 1]}),
    ((1, 1, 4, 4, 1), (1, 2, 2, 1, 1), (1, 1, 3, 3, 1), {}),
    ((0, 3, 4, 4, 2), (2, 2, 2, 2, 1), (0, 2, 3, 3, 1), {}),
    ((1, 2, 2, 2, 2), (4, 4, 4, 2, 1), None, {}), ((1, 3, 3, 3, 3), (2, 2, 2, 2, 1), None, {}),
    ((1, 3, 3, 3, 2), (2, 2, 2, 2, 1), None, {"strides": [1, 1, 0, 1, 1]}),
    ((3, 4, 4, 2), (2, 2, 2, 2, 1), None, {})]


def use(inputs, attrs, rank, **options):
    return Use(*inputs, plain=True, **{"padding": "VALID", "strides": [1] * rank, **attrs}, **options)


def convolutions(cases, rank):
    return [use((x, f), attrs, rank) for x, f, _, attrs in cases]


def differentiable(cases):
    """Without those whose gradients TensorFlow cannot compute."""
    return [case for case in cases if case[2] and "dilations" not in case[3]]


def gradients(cases, rank):
    # TensorFlow adds 16-bit floats up in 16 bits: a difference for each of many terms.
    return [use((x, f, y), attrs, rank,
                dtypes=["float32", "float64"] if isinstance(y, tuple) and y[-1] == 32 else None)
            for x, f, y, attrs in cases]


def input_gradients(cases, rank):
    """By the input; the last uses have sizes that do not fit."""
    good = differentiable(cases)
    x, f, y, attrs = good[0]
    wrong = [(x[:1] + (x[1] + 1,) + x[2:], f, y, attrs), ((x[0] + 1,) + x[1:], f, y, attrs),
             (x[:-1] + (5,), f, y, attrs), (x[:-2], f, y, attrs), ((-1,) + x[1:], f, y, attrs),
             (x, f, y[:-1] + (y[-1] + 1,), attrs), (x, f[1:], y, attrs), (x, f, y[1:], attrs)]
    return gradients([(F(x), f, y, attrs) for x, f, y, attrs in good + wrong], rank)


def filter_gradients(cases, rank):
    # Of an empty sum TensorFlow leaves what was in memory.
    good = [case for case in differentiable(cases) if 0 not in case[0] + case[2]]
    x, f, y, attrs = good[0]
    wrong = [(x, (f[0] + 1,) + f[1:], y, attrs), (x, f[:-1] + (f[-1] + 1,), y, attrs),
             (x, f[:-1], y, attrs), (x, (-2,) + f[1:], y, attrs), (x[1:], f, y, attrs),
             (x, f, y[:-1] + (y[-1] + 1,), attrs), (x, f, y[1:], attrs)]
    return gradients([(x, F(f), y, attrs) for x, f, y, attrs in good + wrong], rank)


WINDOW_HINTS = {
    "Conv2D": convolutions(CONVOLUTIONS + GROUPED, 4),
    "Conv2DBackpropInput": input_gradients(CONVOLUTIONS, 4) + [
        Use(F([4, 5]), (2, 2, 2, 3), (1, 3, 4, 3), plain=True, padding="VALID", strides=ONES)],
    "Conv2DBackpropFilter": filter_gradients(CONVOLUTIONS, 4),
    "DepthwiseConv2dNative": convolutions(DEPTHWISE, 4),
    "DepthwiseConv2dNativeBackpropInput": input_gradients(DEPTHWISE, 4),
    "DepthwiseConv2dNativeBackpropFilter": filter_gradients(DEPTHWISE, 4),
    "Conv3D": convolutions(DEEP, 5),
    "Conv3DBackpropInputV2": input_gradients(DEEP, 5),
    "Conv3DBackpropFilterV2": filter_gradients(DEEP, 5),
}
