// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace tenon {
class MetaGraphDef;
}

namespace tenon::tools {

/// Names of a signature's inputs and outputs in place of those of tensors.
struct SignatureNames {
  /// "NAME=VALUE" each: the tensor's name in the place of the input's.
  std::vector<std::string> feeds;
  /// Tensors, and what to call them.
  std::vector<std::string> fetches, labels;
};

/// What `feeds` and `fetches` mean, which name inputs and outputs of the signature `name`; without
/// fetches all of its outputs. NotFound, with the names that there are, for one that it does not
/// have, and for a signature that the graph does not have.
StatusOr<SignatureNames> ResolveSignature(const MetaGraphDef& meta, const std::string& name,
                                          const std::vector<std::string>& feeds,
                                          const std::vector<std::string>& fetches);

}  // namespace tenon::tools
