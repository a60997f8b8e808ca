// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "core/base/status.h"

namespace tenon {

/// Short texts that the ranks of a job leave for each other, kept as long as its first rank runs.
/// Thread-safe.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  /// AlreadyExists for a key that has another value; Unavailable where the store does not answer
  /// within `limit`.
  virtual Status Put(const std::string& key, const std::string& value,
                     std::chrono::milliseconds limit) = 0;
  /// The same, and what the key had is forgotten.
  virtual Status Replace(const std::string& key, const std::string& value,
                         std::chrono::milliseconds limit) = 0;
  /// Waits until the key is there; DeadlineExceeded when it is not within `limit`, Unavailable when
  /// nothing answered for so long.
  virtual StatusOr<std::string> Get(const std::string& key, std::chrono::milliseconds limit) = 0;
};

}  // namespace tenon
