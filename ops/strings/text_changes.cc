// SPDX-License-Identifier: Apache-2.0
#include <utf8proc.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/op/op_registry.h"
#include "ops/strings/map_elements.h"

namespace tenon {
namespace {

/// Characters of valid UTF-8: bytes that do not continue one.
int32_t CountCharacters(std::string_view text) {
  return static_cast<int32_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Status LengthKernel(KernelContext& ctx, const std::string& unit) {
  return MapElements<TString, int32_t>(ctx, [&](const TString& text) {
    return unit == "BYTE" ? static_cast<int32_t>(text.size()) : CountCharacters(text);
  });
}

/// The text with each character changed; U+FFFD where the bytes are none.
template <typename Change>
std::string ChangeCharacters(std::string_view text, Change change) {
  std::string changed;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t character;
    const auto rest = static_cast<utf8proc_ssize_t>(text.size() - i);
    const utf8proc_ssize_t size = utf8proc_iterate(bytes + i, rest, &character);
    i += size > 0 ? size : 1;
    utf8proc_uint8_t out[4];
    const auto n = utf8proc_encode_char(size > 0 ? change(character) : 0xFFFD, out);
    changed.append(reinterpret_cast<const char*>(out), n);
  }
  return changed;
}

template <bool kUpper>
Status CaseKernel(KernelContext& ctx, const std::string& encoding) {
  if (!encoding.empty() && encoding != "utf-8") {
    return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  return MapElements<TString, TString>(ctx, [&](const TString& text) {
    if (!encoding.empty()) {
      return TString(ChangeCharacters(text, kUpper ? utf8proc_toupper : utf8proc_tolower));
    }
    std::string changed(text);
    if (kUpper) absl::AsciiStrToUpper(&changed);
    if (!kUpper) absl::AsciiStrToLower(&changed);
    return TString(changed);
  });
}

Status StripKernel(KernelContext& ctx) {
  return MapElements<TString, TString>(ctx, [](const TString& text) {
    const auto stripped = absl::StripAsciiWhitespace(ToAbsl(text));
    return TString(std::string_view(stripped.data(), stripped.size()));
  });
}

Status EncodeKernel(KernelContext& ctx, bool pad) {
  return MapElements<TString, TString>(ctx, [&](const TString& text) {
    std::string encoded = absl::WebSafeBase64Escape(ToAbsl(text));
    if (pad) encoded.append((4 - encoded.size() % 4) % 4, '=');
    return TString(encoded);
  });
}

/// The 6 bits that a character of web-safe base64 stands for, or -1.
int Bits(char c) {
  if (absl::ascii_isupper(c)) return c - 'A';
  if (absl::ascii_islower(c)) return c - 'a' + 26;
  if (absl::ascii_isdigit(c)) return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

StatusOr<std::string> Decode(std::string_view text) {
  for (int pads = 0; pads < 2 && text.size() % 4 == (4 - pads) % 4 && text.ends_with('='); ++pads) {
    text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) {
    return InvalidArgument("Base64 string length cannot be 1 modulo 4, found ", text.size(),
                           " characters");
  }
  std::string decoded;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int six = Bits(c);
    if (six < 0) return InvalidArgument("Invalid character found in base64.");
    bits = bits << 6 | static_cast<uint32_t>(six);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>(bits >> count);
  }
  return decoded;
}

Status DecodeKernel(KernelContext& ctx) {
  Status status;
  TENON_RETURN_IF_ERROR((MapElements<TString, TString>(ctx, [&](const TString& text) {
    StatusOr<std::string> decoded = Decode(text);
    status.Update(decoded.status());
    return decoded.ok() ? TString(*decoded) : TString();
  })));
  return status;
}

}  // namespace

void RegisterTextChanges(OpRegistry& ops) {
  ops.Add("StringLength", UnchangedShape, LengthKernel, {.attrs = {"unit"}})
      .Example({Shape{2, 3}})
      .Example({Shape{2, 3}}, {{"unit", "UTF8_CHAR"}});
  ops.Add("StringLower", UnchangedShape, CaseKernel<false>, {.attrs = {"encoding"}})
      .Example({Shape{2, 3}});
  ops.Add("StringUpper", UnchangedShape, CaseKernel<true>, {.attrs = {"encoding"}})
      .Example({Shape{2, 3}}, {{"encoding", "utf-8"}});
  ops.Add("StringStrip", UnchangedShape, StripKernel).Example({Shape{2, 3}});
  ops.Add("EncodeBase64", UnchangedShape, EncodeKernel, {.attrs = {"pad"}})
      .Example({Shape{2, 3}})
      .Example({Shape{2, 3}}, {{"pad", true}});
  ops.Add("DecodeBase64", UnchangedShape, DecodeKernel).Example({Tensor::Vector({"YWI", "YQ=="})});
}

}  // namespace tenon
