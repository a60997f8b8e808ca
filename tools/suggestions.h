// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::tools {

/// The one of `names` that `word` was probably meant to be, "" when none is near. Case does not
/// count, nor whether words are joined by '-' or '_'.
std::string ClosestName(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean X?" for that name, or "".
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

/// What is wrong with the subcommands and flags among the arguments (argv without the program), one
/// sentence; "" when all of them exist.
std::string ExplainArguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace tenon::tools
