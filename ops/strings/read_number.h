// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/strings/numbers.h"
#include "core/strings.h"

// The numbers that texts hold, as StringToNumber and DecodeCSV take them, with white space around.

namespace tenon {

inline bool ReadNumber(std::string_view text, float* value) {
  return absl::SimpleAtof(ToAbsl(text), value);
}
inline bool ReadNumber(std::string_view text, double* value) {
  return absl::SimpleAtod(ToAbsl(text), value);
}
/// An integer with perhaps a minus, but no plus.
template <typename T>
bool ReadNumber(std::string_view text, T* value) {
  const size_t first = text.find_first_not_of(" \t\n\v\f\r");
  if (first != std::string_view::npos && text[first] == '+') return false;
  return absl::SimpleAtoi(ToAbsl(text), value);
}

}  // namespace tenon
