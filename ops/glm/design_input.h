// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_design.h"

namespace tenon {

/// The design that an input of a kernel is, as a message, after it was found to suit a shard, which
/// must have been read.
StatusOr<GlmDesign> DesignInput(const KernelContext& ctx, int input, const TableShard& shard);

}  // namespace tenon
