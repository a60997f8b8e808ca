// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "core/memory/counted_memory.h"

namespace tenon {

/// The element type of a string tensor: text whose memory counts as tensors' does, and which throws
/// std::bad_alloc at the limit (see counted_memory.h), so that no op can make more text than there
/// is memory. Otherwise std::string; made from text of any kind, and read as a std::string_view.
class TString : public std::basic_string<char, std::char_traits<char>, CountedAllocator<char>> {
 public:
  using Base = std::basic_string<char, std::char_traits<char>, CountedAllocator<char>>;
  using Base::Base;

  TString() = default;
  TString(Base text) noexcept : Base(std::move(text)) {}                 // NOLINT: is the same
  TString(std::string_view text) : Base(text) {}                         // NOLINT
  TString(const std::string& text) : TString(std::string_view(text)) {}  // NOLINT

  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const TString& a, const Text& b) {
    return std::string_view(a) == std::string_view(b);
  }
  template <std::convertible_to<std::string_view> Text>
  friend std::strong_ordering operator<=>(const TString& a, const Text& b) {
    return std::string_view(a) <=> std::string_view(b);
  }
};

}  // namespace tenon
