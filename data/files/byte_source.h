// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace tenon {

/// Bytes read from front to back. Used by one thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads `size` bytes into `out`; fewer only at the end. DataLoss when what is compressed is
  /// damaged or cut short.
  virtual StatusOr<size_t> Read(size_t size, char* out) = 0;
  /// No more bytes than this can come any more. What a length that was read promises must be
  /// compared with it before memory is taken.
  virtual int64_t Bound() const = 0;
};

}  // namespace tenon
