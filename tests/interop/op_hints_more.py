# SPDX-License-Identifier: Apache-2.0
"""How ops are used that change single rows, search, quantise, or draw random values."""
from op_cases import Each, Fixed as F, Use, both, with_attrs

BOUNDS = [Use(F(s), F(v), dtypes=["int32", "float32", "int64", "float64"]) for s, v in [
    ([[1, 2, 2, 4]], [[0, 2, 3, 5]]), ([[1, 3], [2, 2]], [[1, 2, 3], [1, 2, 3]]), ([[]], [[1, 2]]),
    ([[1, 2]], [[]]), ([[1, 2]], [[1], [2]]), ([1, 2], [[1]]), ([[1, 2]], [1])]]

QUANTISED = both([Use(s, F(low), F(high), range_given=given, num_bits=bits, axis=axis)
                  for s, low, high, given, bits, axis in [
    ((3, 4), -1, 1.5, True, 8, -1), ((3, 4), -1, 1.5, False, 8, -1), ((3, 4), 0, 2, True, 3, -1),
    ((5,), -2, 0, True, 5, -1), ((2, 3), [-1, -2, 0], [1, 0.5, 3], True, 4, 1), ((2, 3), [0] * 2, [1] * 2, False, 4, 0),
    ((2, 3), 1, -1, True, 8, -1), ((2, 3), -1, 1, True, 63, -1), ((2, 3), -1, 1, True, 8, 2), ((0, 3), -1, 1, False, 8, -1),
    ((2, 3), [-1, 1], [1, 2], True, 8, 1)]], "signed_input", "narrow_range")

FAKE = both([Use(s, **attrs) for s in [(), (5,), (2, 3), (0,)] for attrs in [
    {}, {"min": -1.0, "max": 2.5}, {"min": 0.5, "max": 3.0}, {"num_bits": 2}, {"num_bits": 16}]], "narrow_range") + [
    Use((3,), min=1.0, max=-1.0), Use((3,), num_bits=1), Use((3,), num_bits=17)]
FAKE_VARS = both([Use(s, F(a), F(b), num_bits=n) for s, a, b, n in [
    ((2, 3), -1, 2, 8), ((5,), 0, 0, 8), ((), -3, 1, 4), ((5,), 0.5, 2, 8), ((0,), -1, 1, 8)]], "narrow_range") + [
    Use((3,), F([-1]), F([1])), Use((3,), F(-1), F(1), num_bits=1)]
FAKE_CHANNELS = both([Use(s, F(a), F(b)) for s, a, b in [
    ((2, 3), [-1, 0, -2], [1, 0, 0.5]), ((3,), [-1, -1, -1], [1, 2, 3]), ((2, 1, 2, 2), [0, 0], [1, 2])]],
    "narrow_range") + [Use((2, 3), F([-1, 0]), F([1, 2])), Use((2, 3), F(-1), F(1))]


def behind_gradient(uses):
    """The same uses of the gradient op: what comes back, then the inputs."""
    return [Use(u.inputs[0], *u.inputs, **u.attrs) for u in uses]


KEYED = [[1], [2, 3], 1]

MORE_HINTS = {
    **{name: BOUNDS for name in ("LowerBound", "UpperBound")},
    "DeepCopy": [Use(s) for s in [(), (0,), (2, 3)]],
    "Empty": [Use(F(s), init=True) for s in [[], [2, 3], [0]]],
    "ParallelConcat": [Use(Each(v), shape=s) for v, s in [
        ([(1, 2), (1, 2)], [2, 2]), ([(1,)], [1]), ([(1, 2), (1, 3)], [2, 2])]],
    "Reverse": [Use(s, F(d)) for s, d in [
        ((3,), [True]), ((2, 3), [False, True]), ((2, 3), [True, True]), ((), []), ((2, 3), [True]), ((2, 3), True)]],
    "UnravelIndex": [Use(F(i), F(d)) for i, d in [
        ([5, 0], [2, 3]), (5, [2, 3]), ([], [2]), ([[1]], [3]), ([6], [2, 3]), ([0], [0]),
        ([3], [4, 1, 1])]],
    "ScatterNdNonAliasingAdd": [Use(s, F(i), u) for s, i, u in [
        ((4,), [[0], [2]], (2,)), ((2, 2), [[0, 1], [1, 0]], (2,)), ((2, 3), [[1], [1]], (2, 3)),
        ((4,), [[4]], (1,)), ((4,), [[0], [2]], (3,)), ((2, 3), [[0]], (1, 2))]],
    "ApproximateEqual": [Use(a, a, tolerance=t) for a in [(), (3,), (2, 3)] for t in (1e-5, 2.0)] + [Use((2,), (3,))],
    "QuantizeAndDequantizeV2": QUANTISED + with_attrs(QUANTISED[:5], round_mode="HALF_UP"),
    "QuantizeAndDequantizeV4": QUANTISED + with_attrs(QUANTISED[:5], round_mode="HALF_UP"),
    "QuantizeAndDequantizeV3": [Use(*u.inputs, F(u.attrs["num_bits"]),
                                    **{k: v for k, v in u.attrs.items() if k != "num_bits"}) for u in QUANTISED],
    "QuantizeAndDequantizeV4Grad": [Use(s, s, F(a), F(b), axis=x) for s, a, b, x in [
        ((3, 4), -1, 1.5, -1), ((2, 3), [-1, -2, 0], [1, 0.5, 3], 1), ((2, 3), [-1], [1], 1), ((2, 3), -1, 1, 3)]],
    "FakeQuantWithMinMaxArgs": FAKE,
    "FakeQuantWithMinMaxArgsGradient": behind_gradient(FAKE),
    "FakeQuantWithMinMaxVars": FAKE_VARS,
    "FakeQuantWithMinMaxVarsGradient": behind_gradient(FAKE_VARS),
    "FakeQuantWithMinMaxVarsPerChannel": FAKE_CHANNELS,
    "FakeQuantWithMinMaxVarsPerChannelGradient": behind_gradient(FAKE_CHANNELS),
    "StatelessRandomGammaV2": [Use(F(s), F([1, 2]), F(a)) for s, a in [
        ([40, 3], [0.5, 1.0, 20.0]), ([5, 2], 3.0), ([0, 1], [1.0]), ([3, 2], [1.0]), ([3], [[1.0]])]],
    "StatelessRandomGammaV3": [Use(F(s), *map(F, KEYED), F(a)) for s, a in [([40, 3], [0.5, 1.0, 20.0]), ([5], 3.0)]],
    "StatelessRandomPoisson": [Use(F(s), F([1, 2]), F(a)) for s, a in [
        ([40, 4], [0, 1, 20, 300]), ([5, 2], 3), ([3, 2], [1])]],
    "StatelessRandomBinomial": [Use(F(s), F([1, 2]), F(n), F(p), dtypes=["float16", "float32", "float64"])
                                for s, n, p in [
        ([40, 3], [5, 40, 1000], 0.3), ([20, 2, 2], [[10], [100]], [0.1, 0.9]), ([5], 0, 0.5), ([5], 3, 0), ([5], 3, 1),
        ([3, 2], [1], [0.5])]],
    "StatelessShuffle": [Use(s, *map(F, KEYED)) for s in [(7,), (5, 2), (), (1, 3), (0, 2)]],
    "AllCandidateSampler": [Use(F(c), num_true=1, num_sampled=n, unique=True) for c, n in [
        ([[0], [2]], 3), ([[3]], 3), ([0], 3)]],
    "RandomIndexShuffle": [Use(F(i), F(s), F(m), plain=True, rounds=r) for i, s, m in [
        (3, [1, 2, 3], 9), ([3, 4, 0], [1, 2, 3], 9), ([3, 4], [[1, 2, 3], [4, 5, 6]], [9, 20]), (0, [1, 2, 3], 0),
        (3, [1, 2], 9), ([0, 1], [7, 8, 9], 65536), ([5, 70000], [7, 8, 9], 100000)] for r in (4, 6)],
    "DataFormatDimMap": [Use(F(x), src_format=a, dst_format=b) for x, a, b in [
        ([0, 1, 2, 3, -1, -4], "NHWC", "NCHW"), (2, "NCHW", "NHWC"), ([[4, -5]], "NDHWC", "NCDHW"), ([], "NHWC", "HWCN"),
        ([0], "NHW", "NWH"), ([0], "NHWC", "NCDHW")]],
    "DataFormatVecPermute": [Use(F(x), src_format=a, dst_format=b) for x, a, b in [
        ([1, 2, 3, 4], "NHWC", "NCHW"), ([1, 2, 3, 4], "NCHW", "HWNC"), ([[1, 2], [3, 4], [5, 6], [7, 8]], "NHWC", "NCHW"),
        ([1, 2], "NHWC", "NCHW"), ([1, 2], "NHWC", "CWHN"), ([[1, 2], [3, 4]], "NHWC", "NCWH"),
        ([1, 2, 3, 4, 5], "NDHWC", "NCDHW"), ([1, 2, 3], "NDHWC", "WNCDH"), ([1, 2, 3], "NHWC", "NCHW"),
        ([[1, 2, 3, 4]], "NHWC", "NCHW")]],
    "ComputeAccidentalHits": [Use(F(c), F(s), num_true=t) for c, s, t in [
        ([[1, 2], [3, 4]], [4, 2, 9], 2), ([[1]], [], 1), ([[1], [1]], [1], 1), ([[1, 2]], [1], 1), ([1], [1], 1)]],
}
