// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/resource.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "proto/resource_handle.pb.h"
#include "proto/tensor.pb.h"
#include "proto/tensor_shape.pb.h"
#include "proto/types.pb.h"

// Shapes, tensors and resource handles to and from their messages. The readers take every encoding
// that TensorFlow writes and refuse, with InvalidArgument, whatever else a file or a peer may send.

namespace tenon {

inline DataType DTypeToProto(DType type) { return static_cast<DataType>(type); }
/// InvalidArgument for a number that is no dtype, and for DT_INVALID.
StatusOr<DType> DTypeFromProto(DataType type);

void ShapeToProto(const Shape& shape, TensorShapeProto* out);
void ShapeToProto(const PartialShape& shape, TensorShapeProto* out);
/// A shape known in full; InvalidArgument for one that is not, or that no tensor can have.
StatusOr<Shape> ShapeFromProto(const TensorShapeProto& proto);
StatusOr<PartialShape> PartialShapeFromProto(const TensorShapeProto& proto);

void ResourceHandleToProto(const ResourceHandle& handle, ResourceHandleProto* out);
StatusOr<ResourceHandle> ResourceHandleFromProto(const ResourceHandleProto& proto);

/// Where the elements go.
enum class TensorEncoding {
  /// tensor_content, for strings too: what travels between processes.
  kContent,
  /// The list of the dtype (float_val, string_val, ...): what a reader of graphs in any language
  /// understands for strings.
  kTyped,
};

/// Writes dtype, shape and elements; resource handles always go to resource_handle_val. The tensor
/// must be in host memory. InvalidArgument for an invalid tensor, Unimplemented for variants that
/// are empty or have no form outside a process.
Status TensorToProto(const Tensor& tensor, TensorProto* out,
                     TensorEncoding encoding = TensorEncoding::kContent);

/// How many bytes of elements may be made from a message that does not hold them, because a list
/// shorter than the shape is filled with its last value: a message of a few bytes must not be able
/// to take all memory.
inline constexpr int64_t kMaxFillBytes = int64_t{2} << 30;

/// The tensor a message describes: from tensor_content, whose size must be right to the byte, or
/// from the list of its dtype, where the last value (zero without one) fills what is missing and
/// extra values are ignored. InvalidArgument for anything else, and when more than `*fill_budget`
/// bytes would be filled; the budget (kMaxFillBytes when null) shrinks by what was filled. A plain
/// tensor goes into `memory`, which is the host's.
StatusOr<Tensor> TensorFromProto(const TensorProto& proto, int64_t* fill_budget = nullptr,
                                 Allocator& memory = CpuAllocator());

}  // namespace tenon
