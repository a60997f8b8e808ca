// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::tools {

/// Whether a file can be written at `path`, which `flag` names: asked before work that takes long.
/// The error says why not. Leaves no file.
Status CheckWritable(const std::string& path, std::string_view flag);

}  // namespace tenon::tools
