// SPDX-License-Identifier: Apache-2.0
#include "distributed/resolver/environment.h"

#include <unistd.h>

#include <charconv>

namespace tenon {

Environment Environment::OfProcess() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.variables_.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

const std::string* Environment::Find(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() || found->second.empty() ? nullptr : &found->second;
}

std::optional<Environment::Number> Environment::FirstNumber(
    std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const std::string* const text = Find(name);
    if (text == nullptr) continue;
    Number number = {std::string(name)};
    const char* const end = text->data() + text->size();
    const auto [read, error] = std::from_chars(text->data(), end, number.value);
    if (error == std::errc() && read == end && number.value >= 0) return number;
  }
  return std::nullopt;
}

}  // namespace tenon
