// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "data/slice_table.h"

namespace tenon {

/// The checkpoint of the first format in the files that match `pattern`. NotFound when there are
/// none.
StatusOr<SliceTables> OpenOldCheckpoint(const std::string& pattern, const FileContext& files);

}  // namespace tenon
