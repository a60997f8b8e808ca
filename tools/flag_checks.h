// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/strings.h"

// What flags may be given, and how a mistake in them is told: by the command and by the examples
// alike, each of which is a program of its own. Hence all of it is here.

namespace tenon::tools {

namespace flag_checks_internal {

/// 1000000 rather than 1e+06.
inline std::string NumberText(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return whole ? StrCat(static_cast<int64_t>(value)) : StrCat(value);
}

/// What stands between `parts` in a text that begins with the first of them and ends with the last
/// one; nothing when it does not.
inline std::optional<std::vector<std::string>> TextBetween(
    std::string_view text, const std::vector<std::string_view>& parts) {
  if (!text.starts_with(parts.front()) || !text.ends_with(parts.back())) return std::nullopt;
  std::vector<std::string> found;
  size_t at = parts.front().size();
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const size_t next = last ? text.size() - parts[i].size() : text.find(parts[i], at);
    if (next == std::string_view::npos || next < at) return std::nullopt;
    found.emplace_back(text.substr(at, next - at));
    at = next + parts[i].size();
  }
  return found;
}

/// A validator of numbers; `accepts` is false for what is not a number too.
template <typename Accepts>
CLI::Validator Numbers(const std::string& wanted, Accepts accepts) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        if (is_number && accepts(value)) return "";
        return StrCat("found ", text, ", wanted ", is_number ? "" : "a number ", wanted);
      },
      wanted);
}

inline bool IsNumeric(const CLI::Option& option, const char* type) {
  return option.get_type_name().starts_with(type);
}

/// "0.000000" as people write it.
inline std::string Shortened(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  if (number.size() > 30) return StrCat(std::stod(number));
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number;
}

/// The command that was named last, of those that the parser has met.
inline const CLI::App& Innermost(const CLI::App& app) {
  const CLI::App* command = &app;
  while (true) {
    const auto parsed = command->get_subcommands();
    if (parsed.empty()) return *command;
    command = parsed[0];
  }
}

/// What values of a flag are, for who has given another one.
inline std::string KindOfValue(const CLI::App& command, const std::string& flag) {
  const CLI::Option* const option = command.get_option_no_throw(flag);
  if (option == nullptr) return "another value";
  if (IsNumeric(*option, "INT") || IsNumeric(*option, "UINT")) return "an integer that it can hold";
  return IsNumeric(*option, "FLOAT") ? "a number" : "another value";
}

/// What the value of a switch says, in any case; nothing for what is none.
inline std::optional<bool> SwitchValue(std::string_view value) {
  const std::string word = CLI::detail::to_lower(std::string(value));
  for (const std::string_view yes : {"true", "1", "yes", "on", "t", "y"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"false", "0", "no", "off", "f", "n"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

inline bool IsSwitch(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() == 0;
}

inline std::string MissingSubcommand(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return StrCat("a subcommand is missing: ", Join(names, ", "));
}

}  // namespace flag_checks_internal

/// Accepts numbers that are `minimum` or more.
inline CLI::Validator AtLeast(double minimum) {
  return flag_checks_internal::Numbers(
      StrCat("at least ", flag_checks_internal::NumberText(minimum)),
      [=](double value) { return value >= minimum; });
}
/// Accepts numbers that are more than `bound`.
inline CLI::Validator Above(double bound) {
  return flag_checks_internal::Numbers(StrCat("above ", flag_checks_internal::NumberText(bound)),
                                       [=](double value) { return value > bound; });
}
/// Accepts numbers that are `maximum` or less.
inline CLI::Validator AtMost(double maximum) {
  return flag_checks_internal::Numbers(
      StrCat("at most ", flag_checks_internal::NumberText(maximum)),
      [=](double value) { return value <= maximum; });
}
/// Accepts numbers from `minimum` to `maximum`, those two too.
inline CLI::Validator Between(double minimum, double maximum) {
  return flag_checks_internal::Numbers(
      StrCat(flag_checks_internal::NumberText(minimum), " to ",
             flag_checks_internal::NumberText(maximum)),
      [=](double value) { return value >= minimum && value <= maximum; });
}

/// Takes the values of switches ("--sync=False", "--sync=1") out of the arguments of `command`: one
/// that is true stands alone, and one that is false is not given, so that it neither needs nor
/// excludes another flag. The last one of several counts. What is wrong with a value, or "".
inline std::string ResolveSwitches(const CLI::App& command, std::vector<std::string>* arguments) {
  std::vector<std::string> resolved;
  const auto end = std::find(arguments->begin(), arguments->end(), "--");
  for (auto word = arguments->begin(); word != end; ++word) {
    const size_t equals = word->find('=');
    const std::string name = word->substr(0, equals);
    const bool has_value = name.starts_with("--") && equals != std::string::npos;
    if (!has_value || !flag_checks_internal::IsSwitch(command.get_option_no_throw(name))) {
      resolved.push_back(*word);
      continue;
    }
    const std::string value = word->substr(equals + 1);
    const std::optional<bool> is_on = flag_checks_internal::SwitchValue(value);
    if (!is_on) {
      return StrCat(name, ": found ", value.empty() ? "nothing after '='" : value,
                    ", wanted true or false");
    }
    std::erase(resolved, name);
    if (*is_on) resolved.push_back(name);
  }
  resolved.insert(resolved.end(), end, arguments->end());
  *arguments = std::move(resolved);
  return "";
}

/// Throws a ValidationError for a flag of a number that was given what is none: nan, or infinity.
/// To be called after `app` has parsed, for flags whose validators are others than those above.
inline void CheckNumbersAreFinite(const CLI::App& app) {
  for (const CLI::Option* option : flag_checks_internal::Innermost(app).get_options()) {
    if (!flag_checks_internal::IsNumeric(*option, "FLOAT")) continue;
    for (const std::string& text : option->results()) {
      double value = 0;
      if (CLI::detail::lexical_cast(text, value) && !std::isfinite(value)) {
        throw CLI::ValidationError(option->get_name(), StrCat("found ", text, ", wanted a number"));
      }
    }
  }
}

/// What is wrong with the arguments, as one line: what was found and what was wanted.
inline std::string DescribeMistake(const CLI::App& app, const CLI::ParseError& error) {
  using flag_checks_internal::Shortened;
  const CLI::App& command = flag_checks_internal::Innermost(app);
  const std::string text = error.what();
  std::optional<std::vector<std::string>> m;
  const auto is = [&](const std::vector<std::string_view>& parts) {
    m = flag_checks_internal::TextBetween(text, parts);
    return m.has_value();
  };
  if (is({"", ": Value ", " not in range ", " to ", ""})) {
    return StrCat((*m)[0], ": found ", (*m)[1], ", wanted ", Shortened((*m)[2]), " to ",
                  Shortened((*m)[3]));
  }
  if (is({"", ": ", " not in {", "}"})) {
    std::string choices = (*m)[2];
    for (size_t i = 0; (i = choices.find(',', i)) != std::string::npos; i += 2) {
      choices.insert(i + 1, " ");
    }
    return StrCat((*m)[0], ": found ", (*m)[1], ", wanted one of ", choices);
  }
  if (is({"Could not convert: ", " = ", ""})) {
    return StrCat((*m)[0], ": found ", (*m)[1], ", wanted ",
                  flag_checks_internal::KindOfValue(command, (*m)[0]));
  }
  if (text == "A subcommand is required") return flag_checks_internal::MissingSubcommand(command);
  if (is({"", " is required"})) return StrCat((*m)[0], " is missing");
  if (is({"", " requires ", ""})) return StrCat((*m)[0], " needs ", (*m)[1]);
  if (is({"", " excludes ", ""})) return StrCat((*m)[0], " and ", (*m)[1], " exclude each other");
  if (is({"", ": 1 required ", " missing"})) return StrCat((*m)[0], ": a value is missing");
  if (is({"", ": At Most 1 required but received ", ""})) {
    return StrCat((*m)[0], ": found ", (*m)[1], " values, wanted one");
  }
  if (is({"The following argument was not expected: ", ""}) ||
      is({"The following arguments were not expected: ", ""})) {
    // The parser has them in any order.
    const std::string words = " " + (*m)[0];
    const size_t flag = words.find(" --");
    if (flag != std::string::npos) {
      return StrCat("there is no flag ",
                    words.substr(flag + 1, words.find(' ', flag + 1) - flag - 1));
    }
    return StrCat("found '", (*m)[0], "', which belongs to no flag");
  }
  return text;
}

}  // namespace tenon::tools
