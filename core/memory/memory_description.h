// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon {

/// What an allocator may be besides, if it can say more than that it has no memory. Thread-safe.
class MemoryDescription {
 public:
  /// For people, after ": ": what there is and who holds it.
  virtual std::string DescribeMemory() const = 0;

 protected:
  ~MemoryDescription() = default;
};

}  // namespace tenon
