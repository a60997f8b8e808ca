// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/checkpoint/meta_graph_file.h"

namespace tenon::tools {

/// LoadMetaGraphDef, whose errors for a path that is no graph also say what is there, and with
/// which command to go on: for a checkpoint, and for a folder. `command` is "run" or "inspect".
StatusOr<MetaGraphDef> LoadGraphAt(const std::string& path, const std::vector<std::string>& tags,
                                   const std::string& command);

}  // namespace tenon::tools
