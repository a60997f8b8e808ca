// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tenon::tools {

/// What is wrong with the subcommands and flags among the arguments (argv without the program), one
/// sentence; "" when all of them exist.
std::string ExplainArguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace tenon::tools
