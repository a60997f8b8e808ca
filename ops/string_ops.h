// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for ops on text.

namespace tenon {

/// Element by element; scalars are repeated.
Output StringJoin(const Scope& s, const std::vector<Output>& inputs,
                  std::string_view separator = "");
struct AsStringOptions {
  int64_t precision = -1;   // digits after the point; -1: as printf
  bool scientific = false;  // 1.5e+00
  bool shortest = false;    // whichever of both is shorter
  int64_t width = -1;       // at least that many characters
  std::string_view fill;    // "0", " ", "-" or "+", as printf's flags
};
Output AsString(const Scope& s, Output input, const AsStringOptions& options = {});
/// Numbers from text; `out_type` is float, double, int32 or int64.
Output StringToNumber(const Scope& s, Output text, DType out_type = DType::kFloat);
/// Whether the whole of each text matches an RE2 pattern.
Output RegexFullMatch(const Scope& s, Output input, Output pattern);
Output StaticRegexFullMatch(const Scope& s, Output input, std::string_view pattern);
/// "<basename>-00001-of-00004" and "<basename>-?????-of-00004".
Output ShardedFilename(const Scope& s, Output basename, Output shard, Output num_shards);
Output ShardedFilespec(const Scope& s, Output basename, Output num_shards);

}  // namespace tenon
