// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/scope.h"

// Graph-building functions for ops on files. Paths are those of the task where the op runs, which
// may confine them to a folder or refuse all (Device::files).

namespace tenon {

/// The whole content of a file.
Output ReadFile(const Scope& s, Output filename);
/// Writes a file, and makes its folder when it is not there.
Node* WriteFile(const Scope& s, Output filename, Output contents);

/// Writes a checkpoint in TensorFlow's format (data/tensor_bundle.h). Each entry of
/// shape_and_slices is "" or the part of a larger tensor that is saved, as "20 10 0,5:-".
Node* SaveV2(const Scope& s, Output prefix, Output tensor_names, Output shape_and_slices,
             const std::vector<Output>& tensors);
std::vector<Output> RestoreV2(const Scope& s, Output prefix, Output tensor_names,
                              Output shape_and_slices, const DTypeVector& dtypes);
/// Makes one checkpoint of several and removes those.
Node* MergeV2Checkpoints(const Scope& s, Output checkpoint_prefixes, Output destination_prefix,
                         bool delete_old_dirs = true, bool allow_missing_files = false);

}  // namespace tenon
