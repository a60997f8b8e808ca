// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

// Hash maps keyed by text that can be searched with any kind of text without making a string.

namespace tenon {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
struct StringEq {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};

template <typename V>
using StringMap = absl::flat_hash_map<std::string, V, StringHash, StringEq>;
using StringSet = absl::flat_hash_set<std::string, StringHash, StringEq>;

/// Keys that the caller keeps alive.
template <typename V>
using StringViewMap = absl::flat_hash_map<std::string_view, V, StringHash, StringEq>;

using absl::flat_hash_map;
using absl::flat_hash_set;

}  // namespace tenon
