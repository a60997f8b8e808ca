// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "data/checkpoint/v1_checkpoint.h"

namespace tenon {

/// The checkpoint of the first format in the files that match `pattern`. NotFound when there are
/// none.
StatusOr<V1Checkpoint> OpenOldCheckpoint(const std::string& pattern, const FileContext& files);

}  // namespace tenon
