// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

// Text in several encodings to code points and back.

namespace tenon {

/// What stands for bytes that are no character.
inline constexpr int32_t kNoCharacter = -1;

enum class Encoding { kUtf8, kUtf16Be, kUtf16Le, kUtf32Be, kUtf32Le, kAscii, kLatin1 };

/// By name, in any case and with or without hyphens; InvalidArgument for others.
StatusOr<Encoding> ParseEncoding(std::string_view name);

/// Takes the first code point off `*text`, which is not empty: kNoCharacter, and the bytes of the
/// longest beginning of a character, or one byte or unit, where none is.
int32_t TakeCodePoint(Encoding encoding, std::string_view* text);

/// Whether `c` is a character of Unicode: no surrogate, nothing reserved for other ends.
bool IsCharacter(int32_t c);

/// Appends a code point, which is none of the surrogates; only UTF.
void AppendCodePoint(Encoding encoding, int32_t c, std::string* out);

}  // namespace tenon
