// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/build/building.h"

// The nodes by which a graph saves and restores its variables: those that tf.train.Saver adds,
// under the same names, so that either library can use what the other one built.

namespace tenon {

/// A variable, or a part of one, and where a checkpoint has it.
struct SavedVariable {
  std::string name;   // in the checkpoint
  std::string slice;  // the part, as SaveV2 has it: "4 2 0,2:0,2"; empty for all of it
  VariableEntry nodes;
};

/// Names of nodes and tensors; a SaverDef has the first three.
struct SaverNodes {
  std::string filename_tensor;  // feed the prefix here
  std::string save_tensor;      // fetch this to save: the prefix again
  std::string restore_op;       // run this to restore
  /// The requested devices of the variables, each once and sorted. With sharding, a shard each.
  std::vector<std::string> devices;
};

/// The name of `part` in SaveV2's shape_and_slices.
std::string SliceSpec(const VariablePart& part);

/// Adds them to the graph that is being built, in the scope `name`. Unless `sharded`, one SaveV2
/// writes all, wherever the contexts that are entered or the placer put it. Sharded, each device of
/// variables has a SaveV2 of its own on its task's processor, and the last one merges the files.
SaverNodes AddSaverNodes(const std::string& name, const std::vector<SavedVariable>& variables,
                         bool sharded);

}  // namespace tenon
