// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

// Elements of which only the size matters, on all devices: an op that rearranges is compiled once
// per size and not once per dtype.

namespace tenon {

/// An element of 16 bytes (complex128).
struct alignas(16) Bytes16 {
  uint64_t words[2];
};

/// Calls `fn(T())` with a type of the size of `type`'s elements, which are plain.
template <typename Fn>
void DispatchBytes(DType type, Fn&& fn) {
  switch (SizeOf(type)) {
    case 1:
      return fn(uint8_t());
    case 2:
      return fn(uint16_t());
    case 4:
      return fn(uint32_t());
    case 8:
      return fn(uint64_t());
    case 16:
      return fn(Bytes16());
  }
}

}  // namespace tenon
