// SPDX-License-Identifier: Apache-2.0
#include "ops/strings/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace tenon {
namespace {

uint32_t Byte(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

/// A number of `width` bytes.
uint32_t Unit(std::string_view text, size_t width, bool big_endian) {
  uint32_t unit = 0;
  for (size_t i = 0; i < width; ++i) {
    unit = unit << 8 | Byte(text, big_endian ? i : width - 1 - i);
  }
  return unit;
}

void AppendUnit(uint32_t unit, int width, bool big_endian, std::string* out) {
  for (int i = 0; i < width; ++i) {
    *out += static_cast<char>(unit >> 8 * (big_endian ? width - 1 - i : i));
  }
}

/// Bytes at the front that begin a character of UTF-8 but do not end it; 1 when none do.
size_t BadPrefix(std::string_view text) {
  const uint32_t first = Byte(text, 0);
  const size_t wanted = first >= 0xF0 && first <= 0xF4   ? 4
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xC2 && first <= 0xDF ? 2
                                                         : 1;
  // The second byte alone rules out surrogates, what has a shorter form, and what is too large.
  const uint32_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  size_t n = 1;
  while (n < wanted && n < text.size() && Byte(text, n) >= (n == 1 ? low : 0x80) &&
         Byte(text, n) <= (n == 1 ? high : 0xBF)) {
    ++n;
  }
  return n;
}

int32_t TakeUtf8(std::string_view* text) {
  utf8proc_int32_t c;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text->data()),
                       static_cast<utf8proc_ssize_t>(text->size()), &c);
  text->remove_prefix(size > 0 ? size : BadPrefix(*text));
  return size > 0 ? c : kNoCharacter;
}

int32_t TakeUtf16(std::string_view* text, bool big_endian) {
  const auto is_low = [](uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; };
  if (text->size() < 2) {
    text->remove_prefix(text->size());
    return kNoCharacter;
  }
  const uint32_t first = Unit(*text, 2, big_endian);
  text->remove_prefix(2);
  if (first < 0xD800 || first >= 0xE000) return static_cast<int32_t>(first);
  if (is_low(first)) return kNoCharacter;
  if (text->size() < 2) {
    text->remove_prefix(text->size());
    return kNoCharacter;
  }
  const uint32_t second = Unit(*text, 2, big_endian);
  if (!is_low(second)) return kNoCharacter;
  text->remove_prefix(2);
  return static_cast<int32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
}

int32_t TakeUtf32(std::string_view* text, bool big_endian) {
  if (text->size() < 4) {
    text->remove_prefix(text->size());
    return kNoCharacter;
  }
  const uint32_t c = Unit(*text, 4, big_endian);
  text->remove_prefix(4);
  return c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? kNoCharacter : static_cast<int32_t>(c);
}

}  // namespace

StatusOr<Encoding> ParseEncoding(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-' && c != '_') plain += absl::ascii_toupper(c);
  }
  static constexpr std::pair<std::string_view, Encoding> kNames[] = {
      {"UTF8", Encoding::kUtf8},       {"UTF16BE", Encoding::kUtf16Be},
      {"UTF16LE", Encoding::kUtf16Le}, {"UTF32BE", Encoding::kUtf32Be},
      {"UTF32LE", Encoding::kUtf32Le}, {"USASCII", Encoding::kAscii},
      {"ASCII", Encoding::kAscii},     {"ISO88591", Encoding::kLatin1},
      {"LATIN1", Encoding::kLatin1}};
  for (const auto& [known, encoding] : kNames) {
    if (plain == known) return encoding;
  }
  return InvalidArgument("Could not create converter for input encoding: ", name,
                         ", wanted UTF-8, UTF-16-BE, UTF-32-BE (or LE), US-ASCII or ISO-8859-1");
}

int32_t TakeCodePoint(Encoding encoding, std::string_view* text) {
  switch (encoding) {
    case Encoding::kUtf8:
      return TakeUtf8(text);
    case Encoding::kUtf16Be:
    case Encoding::kUtf16Le:
      return TakeUtf16(text, encoding == Encoding::kUtf16Be);
    case Encoding::kUtf32Be:
    case Encoding::kUtf32Le:
      return TakeUtf32(text, encoding == Encoding::kUtf32Be);
    default:
      break;
  }
  const auto c = static_cast<int32_t>(Byte(*text, 0));
  text->remove_prefix(1);
  return encoding == Encoding::kAscii && c >= 0x80 ? kNoCharacter : c;
}

bool IsCharacter(int32_t c) {
  const bool reserved = (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
  return c >= 0 && c <= 0x10FFFF && !(c >= 0xD800 && c < 0xE000) && !reserved;
}

void AppendCodePoint(Encoding encoding, int32_t c, std::string* out) {
  const auto u = static_cast<uint32_t>(c);
  const bool big_endian = encoding == Encoding::kUtf16Be || encoding == Encoding::kUtf32Be;
  if (encoding == Encoding::kUtf8) {
    utf8proc_uint8_t bytes[4];
    out->append(reinterpret_cast<const char*>(bytes), utf8proc_encode_char(c, bytes));
  } else if (encoding == Encoding::kUtf32Be || encoding == Encoding::kUtf32Le) {
    AppendUnit(u, 4, big_endian, out);
  } else if (u < 0x10000) {
    AppendUnit(u, 2, big_endian, out);
  } else {
    AppendUnit(0xD800 + ((u - 0x10000) >> 10), 2, big_endian, out);
    AppendUnit(0xDC00 + ((u - 0x10000) & 0x3FF), 2, big_endian, out);
  }
}

}  // namespace tenon
