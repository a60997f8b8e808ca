// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

namespace tenon::testing {
namespace {

using Names = std::set<std::string_view>;

/// Ops whose results are elements of their inputs, whole numbers, or made by the same steps.
const Names& Moves() {
  static const Names names = {"Abs",
                              "BatchMatrixBandPart",
                              "BatchMatrixDiag",
                              "BatchMatrixDiagPart",
                              "BatchMatrixSetDiag",
                              "BroadcastTo",
                              "Cast",
                              "ClipByValue",
                              "Concat",
                              "ConcatV2",
                              "ConjugateTranspose",
                              "DepthToSpace",
                              "Diag",
                              "DiagPart",
                              "DynamicPartition",
                              "DynamicStitch",
                              "Fill",
                              "Gather",
                              "GatherNd",
                              "GatherV2",
                              "InvertPermutation",
                              "MatrixBandPart",
                              "MatrixDiag",
                              "MatrixDiagPart",
                              "MatrixDiagPartV2",
                              "MatrixDiagPartV3",
                              "MatrixDiagV2",
                              "MatrixDiagV3",
                              "MatrixSetDiag",
                              "MatrixSetDiagV2",
                              "MatrixSetDiagV3",
                              "Max",
                              "MaxPool",
                              "MaxPool3D",
                              "MaxPoolV2",
                              "MaxPoolWithArgmax",
                              "Maximum",
                              "Min",
                              "Minimum",
                              "MirrorPad",
                              "Neg",
                              "OneHot",
                              "OnesLike",
                              "Pack",
                              "Pad",
                              "PadV2",
                              "ParallelDynamicStitch",
                              "RandomUniform",
                              "Relu",
                              "Relu6",
                              "ReluGrad",
                              "ResourceGather",
                              "ResourceGatherNd",
                              "Reverse",
                              "ReverseSequence",
                              "ReverseV2",
                              "Roll",
                              "SegmentMax",
                              "SegmentMin",
                              "Select",
                              "SelectV2",
                              "Sign",
                              "Slice",
                              "SpaceToBatch",
                              "SpaceToBatchND",
                              "SpaceToDepth",
                              "BatchToSpace",
                              "BatchToSpaceND",
                              "Split",
                              "SplitV",
                              "StatelessRandomUniform",
                              "StatelessRandomUniformV2",
                              "StridedSlice",
                              "StridedSliceGrad",
                              "TensorScatterMax",
                              "TensorScatterMin",
                              "TensorScatterUpdate",
                              "Tile",
                              "TopK",
                              "TopKV2",
                              "Transpose",
                              "Unpack",
                              "UnsortedSegmentMax",
                              "UnsortedSegmentMin",
                              "Where",
                              "ZerosLike"};
  return names;
}

/// Draws that are the CPU's bit for bit but for double, whose logarithm and sine are the device's.
const Names& NormalDraws() {
  static const Names names = {"ParameterizedTruncatedNormal", "RandomStandardNormal",
                              "StatefulStandardNormal",       "StatefulStandardNormalV2",
                              "StatefulTruncatedNormal",      "StatelessRandomNormal",
                              "StatelessRandomNormalV2",      "StatelessTruncatedNormal",
                              "StatelessTruncatedNormalV2",   "TruncatedNormal"};
  return names;
}

/// Ops that add or multiply many terms, and those with cancellation among a few of them.
const Names& Sums() {
  static const Names names = {
      "AddN", "AccumulateNV2", "_FusedMatMul", "ApplyAdaMax", "AvgPool", "AvgPool3D",
      "AvgPool3DGrad", "AvgPoolGrad", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
      "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad", "BiasAddGrad",
      "BlockLSTM", "BlockLSTMGrad", "BlockLSTMGradV2", "BlockLSTMV2", "Conv2D",
      "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2",
      "Conv3DBackpropInputV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
      "DepthwiseConv2dNativeBackpropInput", "Cross", "Cumprod", "Cumsum", "CumulativeLogsumexp",
      "Einsum", "EluGrad", "EuclideanNorm", "FusedBatchNorm", "FusedBatchNormGrad",
      "FusedBatchNormGradV2", "FusedBatchNormGradV3", "FusedBatchNormV2", "FusedBatchNormV3",
      "GRUBlockCell", "GRUBlockCellGrad", "L2Loss", "LRN", "LRNGrad", "LSTMBlockCell",
      "LSTMBlockCellGrad", "LogSoftmax", "MatMul", "MaxPool3DGrad", "MaxPool3DGradGrad",
      "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradGradWithArgmax",
      "MaxPoolGradV2", "MaxPoolGradWithArgmax", "Mean", "MirrorPadGrad", "Prod",
      "ResizeBicubicGrad", "ResizeBilinearGrad", "ResizeNearestNeighborGrad", "ScatterNd",
      "ScatterNdNonAliasingAdd", "SegmentMean", "SegmentProd", "SegmentSum", "Softmax",
      "SoftmaxCrossEntropyWithLogits", "SparseMatMul", "SparseSegmentMean", "SparseSegmentMeanGrad",
      "SparseSegmentSqrtN", "SparseSegmentSqrtNGrad", "SparseSegmentSum", "SparseSegmentSumGrad",
      "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseMatMul", "SquaredDifference", "Sum",
      "TensorScatterAdd", "TensorScatterSub", "UnsortedSegmentProd", "UnsortedSegmentSum",
      // Series and continued fractions: the C library and CUDA take different ones, or round them
      // elsewhere.
      "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0",
      "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Betainc", "Digamma", "Erfinv",
      "Igamma", "IgammaGradA", "Igammac", "Lgamma", "Ndtri", "Polygamma", "RandomGammaGrad",
      "Zeta"};
  return names;
}

/// How far apart two values may be: relative to the value, and to the largest of the tensor.
struct Tolerance {
  double of_value = 0, of_largest = 0;
};

Tolerance ToleranceOf(Closeness closeness, DType dtype) {
  const bool sums = closeness == Closeness::kSums;
  if (closeness == Closeness::kSame) return {};
  // Kernels compute in float what they keep in 16 bits, so that these differ by one rounding.
  if (dtype == DType::kHalf) return {std::ldexp(2, -10), sums ? 4e-3 : std::ldexp(1, -10)};
  if (dtype == DType::kBFloat16) return {std::ldexp(2, -7), sums ? 3e-2 : std::ldexp(1, -7)};
  if (dtype == DType::kDouble || dtype == DType::kComplex128) {
    return {std::ldexp(8, -52), sums ? 1e-13 : std::ldexp(4, -52)};
  }
  return {std::ldexp(8, -23), sums ? 1e-5 : std::ldexp(4, -23)};
}

/// Elements of a tensor as doubles; complex ones as two.
std::vector<double> DoublesOf(const Tensor& t) {
  std::vector<double> values;
  Dispatch(t.dtype(), decltype(ConcatTypes(FloatTypes(), ComplexTypes()))(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      if constexpr (requires(T x) { x.real(); }) {
        values.push_back(t.data<T>()[i].real());
        values.push_back(t.data<T>()[i].imag());
      } else {
        values.push_back(static_cast<double>(t.data<T>()[i]));
      }
    }
  });
  return values;
}

/// The same of floats bit by bit, but that any NaN is another's equal.
bool SameBits(const Tensor& found, const Tensor& wanted) {
  return found.num_bytes() == wanted.num_bytes() &&
         (found.num_bytes() == 0 ||
          std::memcmp(found.raw_data(), wanted.raw_data(), found.num_bytes()) == 0);
}

std::string Short(const Tensor& t) {
  std::string text = t.ToString();
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  return text;
}

void CompareFloats(const Tensor& found, const Tensor& wanted, Closeness closeness,
                   Comparison* result) {
  const std::vector<double> a = DoublesOf(found), b = DoublesOf(wanted);
  // Denormal numbers are zeros in kernels of the CPU, and need not be on a GPU.
  const bool wide = wanted.dtype() == DType::kDouble || wanted.dtype() == DType::kComplex128;
  const double least = wide                             ? std::numeric_limits<double>::min()
                       : wanted.dtype() == DType::kHalf ? std::ldexp(1, -14)
                                                        : std::numeric_limits<float>::min();
  double largest = 0;
  for (const double x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  }
  const Tolerance tolerance = ToleranceOf(closeness, wanted.dtype());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double difference = std::fabs(a[i] - b[i]);
    const bool finite = std::isfinite(a[i]) && std::isfinite(b[i]);
    if (finite) result->error = std::max(result->error, difference / std::max(largest, least));
    const double allowed = tolerance.of_value * std::fabs(b[i]) + tolerance.of_largest * largest +
                           (closeness == Closeness::kSame ? 0 : least);
    if (finite && difference <= allowed) continue;
    if (!result->difference.empty()) continue;
    result->difference =
        StrCat("element ", i, " of ", wanted.dtype(), wanted.shape().ToString(), ": found ", a[i],
               ", wanted ", b[i], ", which may differ by ", finite ? allowed : 0);
  }
}

}  // namespace

Closeness ClosenessOf(std::string_view op, DType dtype) {
  if (NormalDraws().contains(op)) {
    return dtype == DType::kDouble ? Closeness::kSums : Closeness::kSame;
  }
  if (Moves().contains(op)) return Closeness::kSame;
  return Sums().contains(op) ? Closeness::kSums : Closeness::kPlaces;
}

std::string_view WhyNotRepeatable(std::string_view op) {
  // Kernels of this project add in a fixed order, so an op comes here with a library's reason only.
  static const std::map<std::string_view, std::string_view> reasons = {};
  const auto found = reasons.find(op);
  return found == reasons.end() ? "" : found->second;
}

Comparison Compare(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                   Closeness closeness) {
  Comparison result;
  if (found.size() != wanted.size()) {
    result.difference = StrCat("found ", found.size(), " outputs, wanted ", wanted.size());
  }
  for (size_t i = 0; i < wanted.size() && result.difference.empty(); ++i) {
    const Tensor &a = found[i], &b = wanted[i];
    if (a.valid() != b.valid() || (b.valid() && a.dtype() != b.dtype()) ||
        (b.valid() && !(a.shape() == b.shape()))) {
      result.difference = StrCat("found ", Short(a), ", wanted ", Short(b));
    } else if (!b.valid() || b.dtype() == DType::kResource || b.dtype() == DType::kVariant) {
      continue;
    } else if (IsFloating(b.dtype()) || IsComplex(b.dtype())) {
      if (!SameBits(a, b)) CompareFloats(a, b, closeness, &result);
    } else if (!a.Equals(b)) {
      result.difference = StrCat("found ", Short(a), ", wanted ", Short(b));
    }
    if (!result.difference.empty())
      result.difference = StrCat("output ", i, ": ", result.difference);
  }
  return result;
}

}  // namespace tenon::testing
