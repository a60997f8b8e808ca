// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/flag_checks.h"

// The command lines of the examples: mistakes are told as those of the command `tenon` are, and end
// the program with exit code 2.

namespace tenon {

using tools::Above;
using tools::AtLeast;
using tools::Between;

/// Reads the flags of `app`. The exit code when the program is to end: 0 after --help, 2 after a
/// mistake, of which a line says what was found and what was wanted.
///
///   if (const auto code = ParseFlags(app, argc, argv)) return *code;
inline std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    option->capture_default_str();
  }
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string mistake = tools::ResolveSwitches(app, &arguments);
  try {
    app.name(argv[0]);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    if (mistake.empty()) app.parse(std::move(arguments));
    tools::CheckNumbersAreFinite(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    mistake = tools::DescribeMistake(app, error);
  }
  if (mistake.empty()) return std::nullopt;
  const std::string path = argv[0], program = path.substr(path.rfind('/') + 1);
  std::cerr << program << ": " << mistake << " (see " << program << " --help)\n";
  return 2;
}

}  // namespace tenon
