// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::tools {

/// The arguments (argv without the program) as `app` is to parse them:
///   - flags with the spelling that they were declared with, where '-' and '_' are exchanged;
///   - a flag before each value of one that may be given several times: words that no positional
///     argument wants any more belong to the last such flag. A flag takes one value else, so that
///     it never swallows a positional argument;
///   - switches without values (see ResolveSwitches).
/// What follows "--" stays as it is. InvalidArgument for a flag whose value is missing, and for a
/// switch whose value is none.
StatusOr<std::vector<std::string>> NormaliseArguments(const CLI::App& app,
                                                      const std::vector<std::string>& arguments);

}  // namespace tenon::tools
