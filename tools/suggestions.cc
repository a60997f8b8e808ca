// SPDX-License-Identifier: Apache-2.0
#include "tools/suggestions.h"

#include <algorithm>

#include "core/base/closest_name.h"
#include "core/base/strings.h"

namespace tenon::tools {
namespace {

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string ExplainArguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  bool has_words = false;  // such as launch's program
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--")) {
      const std::string name = argument.substr(0, argument.find('='));
      const std::vector<std::string> flags = FlagNames(*command);
      if (std::find(flags.begin(), flags.end(), name) == flags.end()) {
        return StrCat("there is no flag ", name,
                      has_words && command->get_name() == "launch" ? "; put -- before the program"
                                                                   : DidYouMean(name, flags));
      }
    } else if (const auto names = SubcommandNames(*command); !names.empty()) {
      if (std::find(names.begin(), names.end(), argument) == names.end()) {
        return StrCat("there is no subcommand ", argument, DidYouMean(argument, names));
      }
      command = command->get_subcommand(argument);
    } else {
      has_words = true;
    }
  }
  return "";
}

}  // namespace tenon::tools
