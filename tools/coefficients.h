// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/op_registry.h"

namespace tenon::tools {

struct CoefficientFlags {
  std::string path;               // as the user gave it
  std::vector<std::string> tags;  // of a SavedModel's graph
  std::string output;             // CSV, "-" for the standard output; empty for a table
};

/// Prints or writes the coefficients of the linear model in a checkpoint, with what they are for.
/// The graph is that of the SavedModel at `path`, the checkpoint's .meta file, or graph.pbtxt
/// beside it.
Status WriteCoefficients(const CoefficientFlags& flags, const std::string& prefix,
                         const OpRegistry& ops);

/// Prints the first of them below a list of tensors, when there are any.
Status PrintFirstCoefficients(const CoefficientFlags& flags, const std::string& prefix,
                              const OpRegistry& ops);

}  // namespace tenon::tools
