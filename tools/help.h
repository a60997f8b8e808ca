// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace tenon::tools {

/// Gives `app`, before its subcommands are added, the form of the command's help: a flag on a line
/// with its kind of value; beside it, wrapped, what it does, what values it takes and which one it
/// has when it is not given.
void SetHelpFormat(CLI::App* app);

/// Lets the help name the default of every flag of `app` and its subcommands, unless its
/// description does ("default: "). -1 stands for none.
void ShowDefaults(CLI::App* app);

}  // namespace tenon::tools
