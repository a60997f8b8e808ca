// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/files/file.h"

namespace tenon {

/// The paths that match a pattern, sorted: `*`, `?` and `[abc]` stand for characters of one name
/// (POSIX fnmatch), a backslash makes the next character plain. A folder that cannot be there adds
/// none; one that cannot be listed is an error.
StatusOr<std::vector<std::string>> MatchFiles(std::string_view pattern,
                                              const FileContext& context = {});

/// Whether the text has characters that MatchFiles takes for a pattern.
bool IsFilePattern(std::string_view text);

}  // namespace tenon
