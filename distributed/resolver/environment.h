// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// The environment variables of a process, or what stands for them.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables)
      : variables_(std::move(variables)) {}
  /// The variables of this process, as they are now.
  static Environment OfProcess();

  /// All of them, by name.
  const std::map<std::string, std::string, std::less<>>& variables() const { return variables_; }
  /// The value; null for a variable that is not there or is empty.
  const std::string* Find(std::string_view name) const;
  /// The first of these that is a whole number of at least 0, with its name.
  struct Number {
    std::string name;
    int value = 0;
  };
  std::optional<Number> FirstNumber(std::initializer_list<std::string_view> names) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace tenon
