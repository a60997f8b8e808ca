// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace tenon {

/// The value of an environment variable; empty where there is none.
using Environment = std::function<std::string(const std::string& name)>;

}  // namespace tenon
