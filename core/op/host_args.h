// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/op/op_schema.h"
#include "core/tensor/attribute.h"

namespace tenon {

/// Whether each input (or output) tensor of a node with these attributes is in host memory, on a
/// device that has memory of its own: those declared so, and all of dtypes that only the host
/// understands (strings, resources, variants). References are: what they refer to need not be. The
/// attributes must have passed ApplySchema.
StatusOr<std::vector<bool>> HostArgs(const std::vector<ArgSchema>& args, const AttributeMap& attrs);

}  // namespace tenon
