// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/scope.h"

// Graph-building functions for arrays of tensors. An array lives as long as the step. The flow, a
// float that is always 0, orders the ops on one array: each takes the flow of the one before.

namespace tenon {

struct TensorArrayOutputs {
  Output handle;
  Output flow;
};
struct TensorArrayOptions {
  PartialShape element_shape = {};
  bool dynamic_size = false;
  bool clear_after_read = true;
  bool identical_element_shapes = false;
};
TensorArrayOutputs TensorArrayV3(const Scope& s, Output size, DType dtype,
                                 const TensorArrayOptions& options = {});
/// These give the flow after the write.
Output TensorArrayWriteV3(const Scope& s, Output handle, Output index, Output value, Output flow);
/// value[i, ...] becomes element indices[i].
Output TensorArrayScatterV3(const Scope& s, Output handle, Output indices, Output value,
                            Output flow);
/// The first lengths[0] rows of value become element 0, and so on.
Output TensorArraySplitV3(const Scope& s, Output handle, Output value, Output lengths, Output flow);
Output TensorArrayReadV3(const Scope& s, Output handle, Output index, Output flow, DType dtype);
/// The elements along a new first dimension.
Output TensorArrayGatherV3(const Scope& s, Output handle, Output indices, Output flow, DType dtype,
                           PartialShape element_shape = {});
struct TensorArrayConcatOutputs {
  Output value;
  Output lengths;  // int64: the rows of each element
};
/// The elements one after the other along their first dimension.
TensorArrayConcatOutputs TensorArrayConcatV3(const Scope& s, Output handle, Output flow,
                                             DType dtype);
Output TensorArraySizeV3(const Scope& s, Output handle, Output flow);
/// The array that adds up the gradients of this one for the gradient computation `source`.
TensorArrayOutputs TensorArrayGradV3(const Scope& s, Output handle, Output flow,
                                     std::string_view source);
Node* TensorArrayCloseV3(const Scope& s, Output handle);

}  // namespace tenon
