// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/strings/numbers.h"
#include "core/base/strings.h"

// The numbers that texts hold, with white space around: as TensorFlow's ops take them, and as files
// of tables have them.

namespace tenon {

/// The number of a table's field: a decimal one, perhaps with an exponent, "inf", "infinity" or
/// "nan" in any case, each perhaps signed; a whole one for integers. What is too large for a
/// floating type is an infinity, and no integer.
bool ReadFieldNumber(std::string_view text, float* value);
bool ReadFieldNumber(std::string_view text, double* value);
bool ReadFieldNumber(std::string_view text, int32_t* value);
bool ReadFieldNumber(std::string_view text, int64_t* value);

/// A number as the ops StringToNumber and DecodeCSV take it: a decimal one, perhaps with an
/// exponent, a whole number in hexadecimal digits after 0x, "inf" or "nan" in any case, each
/// perhaps signed; 0 where there is only white space. What is too large is an infinity. None of
/// more than 31 characters, as in TensorFlow.
bool ReadNumber(std::string_view text, float* value);
bool ReadNumber(std::string_view text, double* value);
/// An integer with perhaps a minus, but no plus.
template <typename T>
bool ReadNumber(std::string_view text, T* value) {
  const size_t first = text.find_first_not_of(" \t\n\v\f\r");
  if (first != std::string_view::npos && text[first] == '+') return false;
  return absl::SimpleAtoi(ToAbsl(text), value);
}

}  // namespace tenon
