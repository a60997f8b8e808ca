// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tenon::tools {

/// What help says of a flag or a positional argument.
struct OptionHelp {
  std::vector<std::string> names;    // "-h", "--help"; one of those that differ in '-' and '_' only
  std::string kind;                  // of its value: "INT"; empty where it takes none
  std::vector<std::string> choices;  // of its value, where only these are taken
  bool is_repeated = false;          // "...": it takes all values that follow
  std::string text;                  // what it does and (what values it takes; its default)
};

OptionHelp DescribeOption(const CLI::Option& option);

/// The subcommands of `app`, in the order in which help lists them.
std::vector<const CLI::App*> Subcommands(const CLI::App& app);

/// Gives `app`, before its subcommands are added, the form of the command's help: a flag on a line
/// with its kind of value; beside it, wrapped, what it does, what values it takes and which one it
/// has when it is not given.
void SetHelpFormat(CLI::App* app);

/// Lets the help name the default of every flag of `app` and its subcommands, unless its
/// description does ("default: "). -1 stands for none.
void ShowDefaults(CLI::App* app);

}  // namespace tenon::tools
