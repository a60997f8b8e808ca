// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/status.h"

namespace tenon::tools {

/// The prefix of the checkpoint that a path means: a prefix itself, an .index file, or a folder
/// with a state file, whose latest one it is. Nothing when it means none.
std::optional<std::string> FindCheckpoint(const std::string& path);

/// Prints the name, dtype, shape and size of every tensor, and a line that sums them up.
Status PrintCheckpoint(const std::string& prefix);
/// Prints all elements of one tensor. NotFound, naming it.
Status PrintTensor(const std::string& prefix, const std::string& name);
/// Prints what differs: tensors that one of them lacks, dtypes, shapes, and the largest difference
/// of the elements. Whether they are the same.
StatusOr<bool> CompareCheckpoints(const std::string& prefix, const std::string& other);

}  // namespace tenon::tools
