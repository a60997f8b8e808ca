# SPDX-License-Identifier: Apache-2.0
"""How convolutions and pooling are used: sizes, strides, padding, and what TensorFlow refuses of these."""
import numpy as np

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
    # TensorFlow leaves what was in memory in the place of an empty sum.
    good = [case for case in differentiable(cases) if 0 not in case[0] + case[2]]
    x, f, y, attrs = good[0]
    wrong = [(x, (f[0] + 1,) + f[1:], y, attrs), (x, f[:-1] + (f[-1] + 1,), y, attrs),
             (x, f[:-1], y, attrs), (x, (-2,) + f[1:], y, attrs), (x[1:], f, y, attrs),
             (x, f, y[:-1] + (y[-1] + 1,), attrs), (x, f, y[1:], attrs)]
    return gradients([(x, F(f), y, attrs) for x, f, y, attrs in good + wrong], rank)


# Input, output, ksize, strides, padding, other attributes.
POOLS = [
    ((1, 4, 4, 1), (1, 3, 3, 1), [1, 2, 2, 1], ONES, "VALID", {}),
    ((2, 5, 4, 3), (2, 5, 4, 3), [1, 2, 3, 1], ONES, "SAME", {}),
    ((2, 7, 6, 17), (2, 4, 2, 17), [1, 3, 2, 1], [1, 2, 3, 1], "SAME", {}),
    ((1, 4, 5, 2), (1, 1, 1, 2), [1, 4, 5, 1], ONES, "VALID", {}),
    ((1, 3, 3, 2), (1, 3, 3, 2), [1, 9, 9, 1], ONES, "SAME", {}),
    ((1, 6, 6, 2), (1, 2, 2, 2), [1, 1, 1, 1], [1, 3, 4, 1], "VALID", {}),
    ((1, 6, 5, 3), (1, 3, 2, 3), [1, 2, 2, 1], [1, 2, 2, 1], "VALID", {})]
# TensorFlow refuses some of these, or leaves in their gradients what was in memory.
EMPTY_POOLS = [
    ((0, 4, 4, 2), (0, 3, 3, 2), [1, 2, 2, 1], ONES, "VALID", {}),
    ((1, 4, 4, 0), (1, 3, 3, 0), [1, 2, 2, 1], ONES, "VALID", {}),
    ((1, 2, 4, 1), (1, 0, 3, 1), [1, 3, 2, 1], ONES, "VALID", {})]
PADDED_POOLS = [((1, 4, 4, 1), (1, 5, 4, 1), [1, 2, 2, 1], ONES, "EXPLICIT",
                 {"explicit_paddings": [0, 0, 1, 1, 0, 1, 0, 0]})]
WRONG_POOLS = [
    ((1, 4, 4, 1), None, [1, 7, 7, 1], ONES, "VALID", {}), ((1, 4, 4, 1), None, [1, 0, 1, 1], ONES, "VALID", {}),
    ((1, 4, 4, 1), None, [1, -1, 1, 1], ONES, "VALID", {}), ((1, 4, 4, 1), None, ONES, [1, 0, 1, 1], "VALID", {}),
    ((1, 4, 4, 1), None, [1, 2, 2], ONES, "VALID", {}), ((4, 4, 1), None, [1, 2, 2, 1], ONES, "VALID", {})]
WRONGLY_PADDED = [
    ((1, 4, 4, 1), None, [1, 2, 2, 1], ONES, "EXPLICIT", {"explicit_paddings": [0, 0, 2, 1, 0, 1, 0, 0]}),
    ((1, 4, 4, 1), None, [1, 2, 2, 1], ONES, "SAME", {"explicit_paddings": [0, 0, 1, 1, 0, 1, 0, 0]})]
CHANNEL_POOLS = [((2, 1, 3, 4), (2, 1, 3, 2), [1, 1, 1, 2], [1, 1, 1, 2], "SAME", {})]
POOLS_3D = [
    ((1, 3, 3, 3, 1), (1, 2, 2, 2, 1), [1, 2, 2, 2, 1], [1] * 5, "VALID", {}),
    ((2, 3, 5, 4, 3), (2, 3, 3, 2, 3), [1, 2, 3, 2, 1], [1, 1, 2, 2, 1], "SAME", {}),
    ((0, 3, 3, 3, 1), (0, 2, 2, 2, 1), [1, 2, 2, 2, 1], [1] * 5, "VALID", {})]
WRONG_POOLS_3D = [((1, 3, 3, 3, 1), None, [1, 9, 1, 1, 1], [1] * 5, "VALID", {}),
                  ((3, 3, 3, 1), None, [1, 2, 2, 2, 1], [1] * 5, "VALID", {})]


def pool_uses(cases, inputs, **options):
    """`inputs` makes the inputs of a case of its shapes, and of ksize and strides where these are inputs."""
    return [Use(*inputs(x, y), **options, ksize=k, strides=s, padding=p, **attrs)
            for x, y, k, s, p, attrs in cases]


def pool_uses_v2(cases, inputs, **options):
    return [Use(*inputs(x, y), F(k), F(s), **options, padding=p) for x, y, k, s, p, _ in cases]


def forward(x, _):
    return (x,)


def backward(x, y):
    return x, y, y


def twice(x, y):
    return x, y, x


def wrongly_shaped(inputs):
    """The inputs where the second is no output, and where the third does not fit."""
    x, y = (1, 4, 4, 1), (1, 3, 3, 1)
    good = inputs(x, y)
    return [lambda *_: (x, (1, 2, 3, 1), good[2]), lambda *_: (x, y, (1, 2, 3, 1)),
            lambda *_: (x, y, (3, 3, 1))]


# Each element is in its place as it is in the input, so that outputs are found there.
RAMP = F(np.arange(16).reshape(1, 4, 4, 1) % 11)
RAMP_MAX = F(np.array([[5, 6, 7], [9, 10, 10], [9, 10, 10]]).reshape(1, 3, 3, 1))
FOUND = dict(ksize=[1, 2, 2, 1], strides=ONES, padding="VALID", plain=True)

PLACES = F(np.arange(9).reshape(1, 3, 3, 1) % 7)

DILATIONS = [
    ((1, 3, 3, 1), (2, 2, 1), (1, 2, 2, 1), ONES, ONES, "VALID"),
    ((2, 5, 4, 3), (3, 2, 3), (2, 3, 4, 3), [1, 2, 1, 1], ONES, "SAME"),
    ((1, 5, 6, 2), (2, 2, 2), (1, 3, 2, 2), [1, 1, 2, 1], [1, 2, 2, 1], "VALID"),
    ((0, 3, 3, 1), (2, 2, 1), (0, 2, 2, 1), ONES, ONES, "VALID")]
WRONG_DILATIONS = [
    ((1, 3, 3, 1), (2, 2, 2), (1, 2, 2, 1), ONES, ONES, "VALID"),
    ((3, 3, 1), (2, 2, 1), (1, 2, 2, 1), ONES, ONES, "VALID"),
    ((1, 3, 3, 1), (2, 2, 1, 1), (1, 2, 2, 1), ONES, ONES, "VALID"),
    ((1, 3, 3, 1), (2, 2, 1), (1, 2, 2, 1), [1, 0, 1, 1], ONES, "VALID"),
    ((1, 3, 3, 1), (5, 5, 1), (1, 2, 2, 1), ONES, ONES, "VALID")]
WRONG_SIZE = [((1, 3, 3, 1), (2, 2, 1), (1, 1, 2, 1), ONES, ONES, "VALID")]


def dilations(cases, with_output):
    return [Use(*((x, f, y) if with_output else (x, f)), strides=s, rates=r, padding=p)
            for x, f, y, s, r, p in cases]


POSITIVE = F([0.5, 2, 1.25])
NORMS = [
    Use((2, 2, 1, 3), (3,), (3,), (0,), (0,), plain=True), Use((1, 1, 1, 3), (3,), (3,), (0,), (0,), plain=True),
    Use((2, 2, 3, 3), (3,), (3,), (3,), POSITIVE, plain=True, exponential_avg_factor=0.25),
    Use((2, 3, 2, 2), (3,), (3,), (0,), (0,), plain=True, data_format="NCHW"),
    Use((20, 9, 8, 3), (3,), (3,), (0,), (0,), plain=True, epsilon=0.5),
    Use((2, 2, 1, 3), (3,), (3,), (0,), (0,), plain=True, exponential_avg_factor=0.25),
    Use((2, 2, 1, 3), (2,), (3,), (0,), (0,), plain=True), Use((2, 2, 1, 3), (3,), (2,), (0,), (0,), plain=True),
    Use((2, 2, 1, 3), (1, 3), (3,), (0,), (0,), plain=True), Use((2, 2, 3), (3,), (3,), (0,), (0,), plain=True),
    Use((2, 2, 1, 3), (3,), (3,), (2,), POSITIVE, plain=True, is_training=False)]
NORMS_3D = [Use((1, 2, 2, 2, 3), (3,), (3,), (0,), (0,), plain=True, data_format="NDHWC"),
            Use((1, 3, 2, 2, 2), (3,), (3,), (0,), (0,), plain=True, data_format="NCDHW")]
INFERENCES = [
    Use((2, 2, 1, 3), (3,), (3,), (3,), POSITIVE, plain=True, is_training=False),
    Use((2, 3, 1, 2), (3,), (3,), (3,), POSITIVE, plain=True, is_training=False, data_format="NCHW")]


def norm_gradients(*more):
    x, c = (2, 2, 1, 3), (3,)
    return [Use(*inputs, *more, plain=True, **attrs) for inputs, attrs in [
        ((x, x, c, c, POSITIVE), {}), ((x, x, c, c, POSITIVE), {"is_training": False}),
        (((2, 3, 2, 2),) * 2 + (c, c, POSITIVE), {"data_format": "NCHW", "epsilon": 0.5}),
        (((0, 2, 1, 3),) * 2 + (c, c, POSITIVE), {}), ((x, (2, 1, 2, 3), c, c, POSITIVE), {}),
        ((x, x, (2,), c, POSITIVE), {}), ((x, x, c, (2,), POSITIVE), {}), (((2, 3),) * 2 + (c, c, POSITIVE), {})]]


# TensorFlow computes those of half floats in half.
LRNS = [((1, 1, 2, 5), {}), ((2, 1, 3, 7), {"depth_radius": 1, "alpha": 0.5, "beta": 0.75}),
        ((1, 2, 1, 4), {"depth_radius": 0, "beta": 1.0, "bias": 2.0}), ((1, 1, 2, 5), {"depth_radius": 100}),
        ((0, 1, 2, 5), {}), ((2, 5), {}), ((1, 1, 2, 5), {"depth_radius": -1}),
        ((1, 1, 2, 5), {"depth_radius": 2**40})]

# Windows of two elements, of which the second is so near to the largest that both get the gradient,
# or just not so near; and infinities.
NEARLY_EQUAL = np.reshape(
    [3.0, 3.0, 0.5, 0.5 - 9.9e-6, 0.5, 0.5 - 1.1e-5, 4e-6, -4e-6, np.inf, 1.0, -np.inf, -np.inf],
    (1, 1, 1, 12, 1))
NEARLY_EQUAL_MAX = NEARLY_EQUAL[:, :, :, ::2]

WINDOW_HINTS = {
    "Dilation2D": dilations(DILATIONS + WRONG_DILATIONS, False),
    "Dilation2DBackpropInput": dilations(DILATIONS + WRONG_DILATIONS + WRONG_SIZE, True),
    "Dilation2DBackpropFilter": dilations(DILATIONS + WRONG_DILATIONS + WRONG_SIZE, True),
    "FusedBatchNorm": NORMS + INFERENCES, "FusedBatchNormV2": NORMS + INFERENCES,
    "FusedBatchNormV3": NORMS + NORMS_3D + INFERENCES,
    "FusedBatchNormGrad": norm_gradients(), "FusedBatchNormGradV2": norm_gradients(),
    "FusedBatchNormGradV3": norm_gradients(()),
    "LRN": [Use(x, plain=True, dtypes=["float32"], **attrs) for x, attrs in LRNS],
    "LRNGrad": [Use(x, x, x, plain=True, dtypes=["float32"], **attrs) for x, attrs in LRNS] + [
        Use((1, 1, 2, 4), (1, 1, 2, 5), (1, 1, 2, 5), plain=True)],
    "MaxPool": pool_uses(POOLS + EMPTY_POOLS + PADDED_POOLS, forward) + pool_uses(CHANNEL_POOLS, forward, plain=True)
    + pool_uses(WRONG_POOLS + WRONGLY_PADDED, forward),
    "MaxPoolV2": pool_uses_v2(POOLS + EMPTY_POOLS, forward) + pool_uses_v2(CHANNEL_POOLS, forward, plain=True)
    + pool_uses_v2(WRONG_POOLS, forward),
    "MaxPoolGrad": pool_uses(POOLS + PADDED_POOLS, backward) + [
        use for wrong in wrongly_shaped(backward) for use in pool_uses(POOLS[:1], wrong)],
    "MaxPoolGradV2": pool_uses_v2(POOLS, backward) + [
        use for wrong in wrongly_shaped(backward) for use in pool_uses_v2(POOLS[:1], wrong)],
    "MaxPoolGradGrad": pool_uses(POOLS, twice) + [Use(RAMP, RAMP_MAX, (1, 4, 4, 1), **FOUND)] + [
        use for wrong in wrongly_shaped(twice) for use in pool_uses(POOLS[:1], wrong)],
    "MaxPoolGradGradV2": pool_uses_v2(POOLS, twice) + [
        use for wrong in wrongly_shaped(twice) for use in pool_uses_v2(POOLS[:1], wrong)],
    "MaxPoolWithArgmax": pool_uses(POOLS, forward) + [
        Use((2, 4, 3, 3), ksize=[1, 2, 2, 1], strides=ONES, padding="SAME", include_batch_in_index=True)],
    "MaxPoolGradWithArgmax": [
        Use((1, 4, 4, 1), (1, 3, 3, 1), PLACES, **FOUND),
        Use((1, 4, 4, 1), (1, 3, 3, 1), PLACES, include_batch_in_index=True, **FOUND),
        Use((1, 4, 4, 1), (1, 3, 3, 1), F([[1]]), **FOUND), Use((1, 4, 4, 1), (1, 2, 3, 1), PLACES, **FOUND)],
    "AvgPool": pool_uses(POOLS + EMPTY_POOLS + WRONG_POOLS, forward),
    "AvgPoolGrad": pool_uses(POOLS, lambda x, y: (F(x), y)) + [
        Use(F(s), (1, 3, 3, 1), **FOUND) for s in ([4, 4, 1], [1, -4, 4, 1])],
    "MaxPool3D": pool_uses(POOLS_3D + WRONG_POOLS_3D, forward, plain=True),
    "MaxPool3DGrad": pool_uses(POOLS_3D, backward, plain=True) + pool_uses(
        POOLS_3D[:1], lambda x, y: (x, (1, 1, 2, 2, 1), y)) + [
        Use(F(NEARLY_EQUAL), F(NEARLY_EQUAL_MAX), (1, 1, 1, 6, 1), ksize=[1, 1, 1, 2, 1],
            strides=[1, 1, 1, 2, 1], padding="VALID")],
    "MaxPool3DGradGrad": pool_uses(POOLS_3D[:2], twice, plain=True),
    "AvgPool3D": pool_uses(POOLS_3D + WRONG_POOLS_3D, forward),
    "AvgPool3DGrad": pool_uses(POOLS_3D, lambda x, y: (F(x), y)) + [
        Use(F([3, 3, 3, 1]), (1, 2, 2, 2, 1), ksize=[1, 2, 2, 2, 1], strides=[1] * 5, padding="VALID")],
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
