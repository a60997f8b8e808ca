// SPDX-License-Identifier: Apache-2.0
#include "tools/arguments.h"

#include <algorithm>
#include <cctype>

#include "tools/flag_checks.h"

namespace tenon::tools {
namespace {

std::string WithUnderscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The flag that `argument` ("--name" or "--name=value") names, and how it is declared.
const CLI::Option* FindFlag(const CLI::App& command, const std::string& argument,
                            std::string* declared) {
  const std::string name = WithUnderscores(argument.substr(2, argument.find('=') - 2));
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& long_name : option->get_lnames()) {
      if (WithUnderscores(long_name) != name) continue;
      *declared = "--" + long_name;
      return option;
    }
  }
  return nullptr;
}

bool IsFlag(const CLI::App& command, const std::string& word) {
  std::string declared;
  return word == "--" || (word.starts_with("--") && FindFlag(command, word, &declared) != nullptr);
}

/// "-h", but neither "-" nor "-1.5".
bool IsShortFlag(const std::string& word) {
  return word.size() == 2 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1]));
}

bool TakesMany(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

/// How many words the command takes that belong to no flag.
size_t NumPositionals(const CLI::App& command) {
  size_t count = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    if (TakesMany(*option)) return SIZE_MAX;
    ++count;
  }
  return count;
}

const CLI::App* FindSubcommand(const CLI::App& command, const std::string& name) {
  for (const CLI::App* sub : command.get_subcommands(nullptr)) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

}  // namespace

StatusOr<std::vector<std::string>> NormaliseArguments(const CLI::App& app,
                                                      const std::vector<std::string>& arguments) {
  std::vector<std::string> normal;
  const CLI::App* command = &app;
  size_t positionals = 0;
  std::string list;  // the last flag that takes several values
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      normal.insert(normal.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
      break;
    }
    if (word.starts_with("--")) {
      std::string declared;
      const CLI::Option* const option = FindFlag(*command, word, &declared);
      if (option == nullptr) {
        normal.push_back(word);
        continue;
      }
      const size_t equals = word.find('=');
      normal.push_back(declared + (equals == std::string::npos ? "" : word.substr(equals)));
      list = TakesMany(*option) ? declared : "";
      if (option->get_items_expected_max() == 0) continue;
      if (equals + 1 < word.size() && equals != std::string::npos) continue;
      if (equals != std::string::npos || i + 1 == arguments.size() ||
          IsFlag(*command, arguments[i + 1])) {
        return InvalidArgument(declared, ": a value is missing");
      }
      normal.push_back(arguments[++i]);
      continue;
    }
    if (const CLI::App* const sub = FindSubcommand(*command, word)) {
      command = sub;
      positionals = 0;
      list.clear();
    } else if (positionals < NumPositionals(*command)) {
      ++positionals;
    } else if (!list.empty() && !IsShortFlag(word)) {
      normal.push_back(list);
    }
    normal.push_back(word);
  }
  const std::string mistake = ResolveSwitches(*command, &normal);
  if (!mistake.empty()) return InvalidArgument(mistake);
  return normal;
}

}  // namespace tenon::tools
