// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/scope.h"

// Graph-building functions for ops that hold, name, rearrange and select values. Arguments and
// attributes come in TensorFlow's order. A shape or an axis is an Output, usually a Const:
//
//   Output flat = Reshape(root, images, Const(root, {-1, 784}));

namespace tenon {

// --- Values ---

/// A constant.
Output Const(const Scope& s, Tensor value);
/// A scalar constant of the C++ type's dtype.
template <typename T>
  requires(kDTypeOf<T> != DType::kInvalid)
Output Const(const Scope& s, T value) {
  return Const(s, Tensor::Scalar<T>(std::move(value)));
}
inline Output Const(const Scope& s, const char* text) { return Const(s, Tensor::Scalar(text)); }
/// A vector constant.
template <typename T>
Output Const(const Scope& s, const std::vector<T>& values) {
  return Const(s, Tensor::Vector<T>(values));
}
template <typename T>
Output Const(const Scope& s, std::initializer_list<T> values) {
  return Const(s, Tensor::Vector<T>(values));
}
/// A value that the caller feeds in every step.
Output Placeholder(const Scope& s, DType dtype, PartialShape shape = {});
/// `value`, unless the caller feeds another one of `shape`.
Output PlaceholderWithDefault(const Scope& s, Output value, PartialShape shape);
Output Identity(const Scope& s, Output input);
std::vector<Output> IdentityN(const Scope& s, const std::vector<Output>& input);
/// `input`, through which no gradient flows back.
Output StopGradient(const Scope& s, Output input);
/// `input`, whose gradient is an error that says `message`.
Output PreventGradient(const Scope& s, Output input, std::string_view message = "");
/// Does nothing; for control dependencies (Scope::WithControlDependencies).
Node* NoOp(const Scope& s);
Node* ControlTrigger(const Scope& s);

// --- Shapes ---

/// The shape of `input` as a vector (the op Shape).
Output ShapeOf(const Scope& s, Output input, DType out_type = DType::kInt32);
std::vector<Output> ShapeN(const Scope& s, const std::vector<Output>& input,
                           DType out_type = DType::kInt32);
/// The number of elements, and of dimensions.
Output Size(const Scope& s, Output input, DType out_type = DType::kInt32);
Output Rank(const Scope& s, Output input);
/// The same elements under `shape`, one dimension of which may be -1: whatever is left.
Output Reshape(const Scope& s, Output tensor, Output shape);
Output ExpandDims(const Scope& s, Output input, Output dim);
/// Without the dimensions of size 1: those of `dims`, or all of them when it is empty.
Output Squeeze(const Scope& s, Output input, const std::vector<int64_t>& dims = {});

// --- Making ---

Output Fill(const Scope& s, Output dims, Output value);
/// start, start + delta, ... up to but not including limit.
Output Range(const Scope& s, Output start, Output limit, Output delta);
/// `num` evenly spaced values from start to stop, both included.
Output LinSpace(const Scope& s, Output start, Output stop, Output num);
/// `on_value` where the index equals the place along `axis`, else `off_value`.
Output OneHot(const Scope& s, Output indices, Output depth, Output on_value, Output off_value,
              int64_t axis = -1);

// --- Taking apart and putting together ---

Output Slice(const Scope& s, Output input, Output begin, Output size);
/// The bit masks of the strided slice ops: bit i is about entry i of begin, end and strides.
struct StridedSliceMasks {
  int64_t begin = 0;        // ignore begin[i]: from the edge
  int64_t end = 0;          // ignore end[i]: to the edge
  int64_t ellipsis = 0;     // entry i stands for all dimensions not named
  int64_t new_axis = 0;     // entry i inserts a dimension of size 1
  int64_t shrink_axis = 0;  // entry i takes one element and drops the dimension
};
/// input[begin:end:strides] with Python's meaning.
Output StridedSlice(const Scope& s, Output input, Output begin, Output end, Output strides,
                    const StridedSliceMasks& masks = {});
/// Zeros of `shape` with `dy` where StridedSlice takes from.
Output StridedSliceGrad(const Scope& s, Output shape, Output begin, Output end, Output strides,
                        Output dy, const StridedSliceMasks& masks = {});
/// Writes `value` into that part of a ref variable, and gives the variable.
Output StridedSliceAssign(const Scope& s, Output ref, Output begin, Output end, Output strides,
                          Output value, const StridedSliceMasks& masks = {});
/// Values of equal shape along a new axis, and the reverse.
Output Pack(const Scope& s, const std::vector<Output>& values, int64_t axis = 0);
std::vector<Output> Unpack(const Scope& s, Output value, int64_t num, int64_t axis = 0);
Output ConcatV2(const Scope& s, const std::vector<Output>& values, Output axis);
std::vector<Output> ConcatOffset(const Scope& s, Output concat_dim,
                                 const std::vector<Output>& shapes);
std::vector<Output> Split(const Scope& s, Output split_dim, Output value, int64_t num_split);
std::vector<Output> SplitV(const Scope& s, Output value, Output size_splits, Output split_dim,
                           int64_t num_split);

// --- Rearranging ---

Output Tile(const Scope& s, Output input, Output multiples);
Output Transpose(const Scope& s, Output x, Output perm);
Output InvertPermutation(const Scope& s, Output x);
/// Zeros around `input`: paddings is [rank, 2], before and after each dimension.
Output Pad(const Scope& s, Output input, Output paddings);
Output PadV2(const Scope& s, Output input, Output paddings, Output constant_values);
Output ReverseV2(const Scope& s, Output tensor, Output axis);
/// The same bytes as another dtype; see TensorFlow's Bitcast for dtypes of different sizes.
Output Bitcast(const Scope& s, Output input, DType type);
Output Cumsum(const Scope& s, Output x, Output axis, bool exclusive = false, bool reverse = false);

// --- Selecting ---

Output Gather(const Scope& s, Output params, Output indices);
/// Slices of `params` along `axis`, for each index.
Output GatherV2(const Scope& s, Output params, Output indices, Output axis, int64_t batch_dims = 0);
Output GatherNd(const Scope& s, Output params, Output indices);
/// Zeros of `shape` to which `updates` are added at `indices`.
Output ScatterNd(const Scope& s, Output indices, Output updates, Output shape);
/// The coordinates of the elements that are not zero, as int64 [n, rank].
Output Where(const Scope& s, Output input);
/// merged[indices[m][i]] = data[m][i]; later inputs win.
Output DynamicStitch(const Scope& s, const std::vector<Output>& indices,
                     const std::vector<Output>& data);
std::vector<Output> DynamicPartition(const Scope& s, Output data, Output partitions,
                                     int64_t num_partitions);
/// Distinct elements in order of appearance, and for each element of x its index among them.
std::vector<Output> Unique(const Scope& s, Output x, DType out_idx = DType::kInt32);

}  // namespace tenon
