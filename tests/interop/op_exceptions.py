# SPDX-License-Identifier: Apache-2.0
"""Where Tenon and TensorFlow differ and that is right, each with the reason; and how exact floats are."""
import numpy as np
from tensorflow.python.framework import errors_impl

from op_state import optimizer_hints

# Ops that add up: their rounding error follows the terms, of about this size, not the sum.
TERMS = {
    "BatchMatMul": 3, "BatchMatMulV2": 3, "BatchMatMulV3": 3, "Conv": 60, "Einsum": 3, "MatMul": 3, "Sum": 3, "Mean": 3, "Cumsum": 3, "BiasAddGrad": 3,
    "L2Loss": 3, "LogSoftmax": 3, "SeluGrad": 1, "TanhGrad": 1, "AddN": 3,
    "SoftmaxCrossEntropyWithLogits": 10, "SparseSoftmaxCrossEntropyWithLogits": 3, "_FusedMatMul": 3,
    **{name: 3 for name in optimizer_hints()},
    **{"Resize" + name: 3 for name in ("Area", "Bicubic", "BicubicGrad", "Bilinear", "BilinearGrad")},
    **{name: 3 for name in ("AdjustHue", "AdjustSaturation", "AdjustContrastv2", "CropAndResizeGradBoxes", "CropAndResizeGradImage",
                            "ScaleAndTranslate", "ScaleAndTranslateGrad")},
    "ScatterNd": 3, "LRNGrad": 3, "MaxPoolGrad": 3, "MaxPoolGradV2": 3,
    **{name + version: 10 for name in ("FusedBatchNorm", "FusedBatchNormGrad")
       for version in ("", "V2", "V3")},
    **{name: 3 for name in ("AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad")},
    **{name + part: 60 for name in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
       for part in ("", "BackpropInput", "BackpropInputV2", "BackpropFilter", "BackpropFilterV2")},
    **{prefix + "FFT" + suffix: 1 for prefix in ("R", "IR") for suffix in ("", "2D", "3D")},
    **{prefix + name: 3 for prefix in ("Segment", "UnsortedSegment") for name in ("Sum", "Mean", "Prod")},
    "BlockLSTMGrad": 1e5, "BlockLSTMGradV2": 1e5,
    **{f"SparseSegment{kind}{suffix}": 3 for kind in ("Sum", "Mean", "SqrtN")
       for suffix in ("", "WithNumSegments", "Grad", "GradV2")},
}

# TensorFlow gives one or the other of two zeros as its vector instructions happen to; in the same array it depends on
# the position.
ANY_ZERO_SIGN = {"Maximum", "Minimum", "Max", "Min", "Relu", "Relu6", "ClipByValue",
                 "RsqrtGrad", "Xdivy", "Xlogy", "Xlog1py"}


def flat_gradient(case):
    shapes = {a.shape for a in case.arrays}
    return len(shapes) > 1 and len({int(np.prod(s)) for s in shapes}) == 1


def negative_zero_half(case):
    return str(case.arrays[0].dtype) in ("float16", "bfloat16") and case.label == "special"


def cast_out_of_range(case):
    source, to = case.attrs["SrcT"], case.attrs["DstT"]
    if not (source.is_floating or source.is_complex) or to.name in ("int32", "int64") or \
            not to.is_integer:
        return False
    values = np.real(case.arrays[0].astype(np.complex128))
    return not np.all((values > to.min - 1.0) & (values < to.max + 1.0))


def small_half(case):
    return str(case.arrays[0].dtype) == "float16" and case.label == "special"


def inference(case):
    return not case.attrs["is_training"]


def infinite(case):
    return any(np.any(np.isinf(a)) for a in case.arrays)


def of_half(case):
    return case.attrs["T"].name == "float16"


def short_axis(case):
    return str(case.arrays[1].dtype) == "int16"


def short_counter(case):
    return case.arrays[2].shape == (1,)


def values_only(case):
    return not (case.attrs["compute_uv"] if "compute_uv" in case.attrs else case.attrs["compute_v"])


def singular_complex(case):
    return case.arrays[0].dtype.kind == "c" and case.arrays[1].shape in ((2, 1), (1, 2))


def batches_without_images(case):
    return case.attrs["batch_dims"] > 1 and case.arrays[0].size == 0


# op -> [(which cases, TensorFlow's error code or None, reason)]
EXCEPTIONS = {
    **{name: [(flat_gradient, None, "TensorFlow reads operands of different shapes element by element "
               "when they happen to have the same size; here it is an error"),
              (small_half, None, "TensorFlow rounds to half between two products, here after both: "
               "1e-4 squared is 0 there")]
       for name in ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")},
    **{name: [(None, errors_impl.INTERNAL, "TensorFlow forgets this op where it words division by zero, "
               "and says INTERNAL, which is for its own bugs; here it is INVALID_ARGUMENT")]
       for name in ("TruncateDiv", "TruncateMod")},
    **{name: [(negative_zero_half, None, "TensorFlow hashes the bits of half floats, so that 0 and -0 "
               "may be told apart or not; here they are equal, as in float")]
       for name in ("Unique", "UniqueWithCounts")},
    "Cast": [(cast_out_of_range, None, "a float that the integer cannot hold is undefined in C++; in "
              "TensorFlow it wraps or saturates, as vector instructions happen to be used")],
    **{"FusedBatchNorm" + version: [(inference, None, "of inference TensorFlow leaves in the reserve "
                                     "spaces what was in memory; here they are mean and variance")]
       for version in ("", "V2", "V3")},
    **{name: [(infinite, None, "a limit in two arguments at once: 0 in newer versions of Eigen than the system's, "
               "NaN here")] for name in ("Polygamma", "Zeta")},
    **{name: [(of_half, None, "TensorFlow rounds each step of a cell to half, here the results")]
       for name in ("LSTMBlockCell", "LSTMBlockCellGrad", "BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad",
                    "BlockLSTMGradV2")},
    **{name: [(values_only, None, "TensorFlow gives for the vectors not asked for a scalar of what was in memory, "
               "where its shape function says [0]")] for name in ("SelfAdjointEigV2", "Svd")},
    "TridiagonalSolve": [(singular_complex, None, "TensorFlow fills the result for a singular matrix with C++'s "
                          "quiet_NaN of complex numbers, which is 0; here it is NaN")],
    "Conv": [(batches_without_images, None, "without images TensorFlow forgets all but the last of the batch dimensions")],
    "ToBool": [(None, errors_impl.INVALID_ARGUMENT, "TensorFlow has no truth value of a half, which has one here")],
    "ArgMax": [(short_axis, None, "TensorFlow reads an int16 axis as 32 bits, past its end")],
    **{"Stateless" + values + "V2": [(short_counter, None, "TensorFlow reads a counter of one element past its end")]
       for values in ("RandomUniform", "RandomNormal", "TruncatedNormal", "RandomUniformFullInt")},
}


def reason(case, wanted):
    """Why this case may differ, or None."""
    for applies, code, text in EXCEPTIONS.get(case.op.name, []):
        if applies is not None and not applies(case):
            continue
        if code is not None and getattr(wanted, "code", None) != code:
            continue
        return text
    return None
