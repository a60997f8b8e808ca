// SPDX-License-Identifier: Apache-2.0
#include "data/csv/read_number.h"

#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"

namespace tenon {
namespace {

constexpr size_t kMaxCharacters = 31;

template <typename T>
bool ReadHexadecimal(absl::string_view digits, T* value) {
  for (const char c : digits) {
    if (!absl::ascii_isxdigit(c)) return false;
  }
  const char* const end = digits.data() + digits.size();
  const auto read = absl::from_chars(digits.data(), end, *value, absl::chars_format::hex);
  return read.ec != std::errc::invalid_argument && read.ptr == end;
}
bool ReadDecimal(absl::string_view text, float* value) { return absl::SimpleAtof(text, value); }
bool ReadDecimal(absl::string_view text, double* value) { return absl::SimpleAtod(text, value); }

/// A number in digits alone, which is most of them: false also for others that are numbers.
template <typename T>
bool ReadDigits(std::string_view text, T* value) {
  const size_t digits = text.starts_with('-') ? 1 : 0;
  if (text.size() <= digits) return false;
  const char first = text[digits];
  if (!absl::ascii_isdigit(first) && first != '.') return false;
  T read;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, read);
  if (error != std::errc() || stopped != end) return false;
  *value = read;
  return true;
}

template <typename T>
bool ReadFloating(std::string_view text, T* value) {
  if (text.size() > kMaxCharacters) return false;
  if (ReadDigits(text, value)) return true;
  const absl::string_view all = absl::StripAsciiWhitespace(ToAbsl(text));
  if (all.empty()) {
    *value = 0;
    return !text.empty();
  }
  const bool is_signed = all[0] == '-' || all[0] == '+';
  const absl::string_view digits = all.substr(is_signed ? 1 : 0);
  if (absl::StartsWithIgnoreCase(digits, "0x")) {
    if (!ReadHexadecimal(digits.substr(2), value)) return false;
    if (all[0] == '-') *value = -*value;
    return true;
  }
  // Numbers only: not the longer names that the library knows.
  const bool is_named = !digits.empty() && absl::ascii_isalpha(digits[0]);
  return (!is_named || digits.size() == 3) && ReadDecimal(all, value);
}

template <typename T>
bool ReadFieldFloating(std::string_view text, T* value) {
  if (ReadDigits(text, value)) return true;
  const absl::string_view number = absl::StripAsciiWhitespace(ToAbsl(text));
  const bool is_hexadecimal = number.find_first_of("xX") != absl::string_view::npos;
  return !number.empty() && !is_hexadecimal && ReadDecimal(number, value);
}

template <typename T>
bool ReadFieldInteger(std::string_view text, T* value) {
  const absl::string_view number = absl::StripAsciiWhitespace(ToAbsl(text));
  return absl::SimpleAtoi(number, value);
}

}  // namespace

bool ReadFieldNumber(std::string_view text, float* value) { return ReadFieldFloating(text, value); }
bool ReadFieldNumber(std::string_view text, double* value) {
  return ReadFieldFloating(text, value);
}
bool ReadFieldNumber(std::string_view text, int32_t* value) {
  return ReadDigits(text, value) || ReadFieldInteger(text, value);
}
bool ReadFieldNumber(std::string_view text, int64_t* value) {
  return ReadDigits(text, value) || ReadFieldInteger(text, value);
}

bool ReadNumber(std::string_view text, float* value) { return ReadFloating(text, value); }
bool ReadNumber(std::string_view text, double* value) { return ReadFloating(text, value); }

}  // namespace tenon
