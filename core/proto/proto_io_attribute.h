// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/tensor/attribute.h"
#include "proto/attr_value.pb.h"

// Attributes to and from their message.

namespace tenon {

/// Strings inside tensors are written as string_val, which every reader of graphs understands.
/// Fails only for a tensor that has no message (see TensorToProto).
Status AttributeToProto(const Attribute& attribute, AttrValue* out);

/// A list without elements is an empty list(int) (see Attribute). InvalidArgument for a value that
/// is not set, a list of several kinds, an unreadable dtype, shape or tensor, functions nested too
/// deep, or a placeholder, which has a meaning only inside a function. `fill_budget` as in
/// TensorFromProto.
StatusOr<Attribute> AttributeFromProto(const AttrValue& proto, int64_t* fill_budget = nullptr);

}  // namespace tenon
