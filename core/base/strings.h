// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

// Joining text. Debian's Abseil has a string_view of its own that does not convert from the
// standard one; these wrappers are the one place where the two meet, so that every interface of
// Tenon can use std::string_view.

namespace tenon {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

namespace strings_internal {
inline absl::string_view Piece(std::string_view s) { return ToAbsl(s); }
inline absl::string_view Piece(const std::string& s) { return s; }
inline absl::string_view Piece(const char* s) { return s; }
template <typename T>
const T& Piece(const T& value) {
  return value;
}
template <typename T>
requires requires(const T& value) { value.ToString(); }
std::string Piece(const T& value) { return value.ToString(); }
template <typename T>
requires std::is_enum_v<T> && requires(const T& value) { ToString(value); }
std::string Piece(const T& value) { return std::string(ToString(value)); }
}  // namespace strings_internal

/// The concatenation of its arguments: text of any kind, numbers, absl::Hex and the like, and what
/// has a ToString(), such as shapes and dtypes.
template <typename... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(strings_internal::Piece(args)...);
}

/// Appends StrCat(args...) to `*out`.
template <typename... Args>
void StrAppend(std::string* out, const Args&... args) {
  absl::StrAppend(out, strings_internal::Piece(args)...);
}

/// The elements of `range`, each made text by StrCat, with `separator` between them.
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out.append(separator);
    first = false;
    StrAppend(&out, element);
  }
  return out;
}

}  // namespace tenon
