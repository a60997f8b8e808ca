// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon {
class BundleReader;
}

namespace tenon::tools {

/// The prefix of the checkpoint that a path means: a prefix itself, one of its .index and .data
/// files, or a folder: with a state file, whose latest one it is, or of a prefix that ends there.
/// Nothing when it means none.
std::optional<std::string> FindCheckpoint(const std::string& path);

/// NotFound for a path that means none, with what is there: checkpoints of the folder, the name
/// that was probably meant.
Status NoCheckpoint(const std::string& path);

/// The prefixes of the checkpoints in a folder, sorted by name and step.
std::vector<std::string> CheckpointsIn(const std::string& folder);

/// "a float[2,3], b int64[] and 5 more": what a checkpoint has, with at most so many names.
std::string DescribeKeys(const BundleReader& reader, size_t most = 8);

/// NotFound when the checkpoint lacks some of these, naming them, what it has and which of these
/// were probably meant.
Status CheckKeys(const BundleReader& reader, const std::vector<std::string>& wanted);

/// Prints the name, dtype, shape and size of every tensor, and a line that sums them up. DataLoss,
/// after that, when data files are not there or are too short.
Status PrintCheckpoint(const std::string& prefix);
/// Prints all elements of one tensor. NotFound, naming what the checkpoint has.
Status PrintTensor(const std::string& prefix, const std::string& name);
/// Prints what differs: tensors that one of them lacks, dtypes, shapes, and the largest difference
/// of the elements. Whether they are the same.
StatusOr<bool> CompareCheckpoints(const std::string& prefix, const std::string& other);

}  // namespace tenon::tools
