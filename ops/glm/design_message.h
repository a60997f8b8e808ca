// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "ops/glm/glm_design.h"

namespace tenon {

/// A design as a message Design of proto/table.proto.
std::string SerializeDesign(const GlmDesign& design);
/// InvalidArgument for what is no such message. The design is not checked.
StatusOr<GlmDesign> ParseDesign(std::string_view message);

}  // namespace tenon
