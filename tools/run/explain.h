// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "tools/graph_ends.h"

namespace tenon::tools {

/// The error of a step with what to do about it, in the command's words: how variables get values,
/// how a placeholder is fed. Without the lines that only TensorFlow's client reads.
Status ExplainStepError(const Status& status, const GraphEnds& ends);

/// WrongUsage for a run that asks for nothing: what the graph is fed, where it ends, and a command
/// that would run it.
Status NothingToRun(const std::string& path, const GraphEnds& ends, const MetaGraphDef& meta);

}  // namespace tenon::tools
