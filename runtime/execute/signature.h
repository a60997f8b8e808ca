// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What one kind of step is fed, returns and runs. Feeds and fetches are tensor names ("node" or
/// "node:index"), targets node names.
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  /// (from, to): whatever takes the tensor `to` gets `from` in its place.
  std::vector<std::pair<std::string, std::string>> connections = {};

  /// One text for equal signatures, for caches.
  std::string Key() const;
};

}  // namespace tenon
