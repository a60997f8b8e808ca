// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/op/op_registry.h"

// Runs single ops on the CPU, without an executor.

namespace tenon::testing {

/// A CPU device that the tests of one process share.
Device& TestDevice();

/// What one run of an op gave: status first, then what was computed and what had been declared.
struct OpResult {
  Status status;
  std::vector<Tensor> outputs;
  std::vector<PartialShape> declared_shapes;
  DTypeVector declared_types;
};

/// Builds a node fed by constants, infers its shapes, makes its kernel and runs it once. Type and
/// length attributes that follow from the inputs need not be given. With `hide_inputs` shape
/// inference sees neither the values nor the shapes of the inputs.
OpResult RunOp(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs = {},
               bool hide_inputs = false);

/// The first output; a test failure when the run failed.
Tensor RunOpOrDie(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs = {});

/// Adds the type and length attributes that follow from the dtypes of `inputs`.
void InferAttributes(const OpSchema& schema, const std::vector<Tensor>& inputs,
                     AttributeMap* attrs);

/// Every choice of the type attributes of `op` that its CPU kernels do and the example leaves open,
/// one attribute varied at a time; each is the example's attributes and the choice.
std::vector<AttributeMap> TypeChoices(const OpRegistration& op, const OpExample& example);

/// The example's inputs: fixed values as they are, shapes filled with samples of the op's domain in
/// the dtypes that `attrs` choose.
std::vector<Tensor> SampleInputs(const OpRegistration& op, const OpExample& example,
                                 const AttributeMap& attrs, uint64_t seed);

/// A tensor of samples of [low, high]: numbers (whole ones for integers), truth values, or letters.
Tensor Sample(DType dtype, const Shape& shape, double low, double high, uint64_t seed);

}  // namespace tenon::testing
