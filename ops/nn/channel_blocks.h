// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

// Channels in blocks, so that what is computed for each of a block stays in registers.

namespace tenon {

/// fn(first, count) for blocks of channels; `count` is a constant for all but the last.
template <int64_t kBlock, typename Fn>
void InBlocks(int64_t channels, Fn fn) {
  int64_t first = 0;
  for (; first + kBlock <= channels; first += kBlock) {
    fn(first, std::integral_constant<int64_t, kBlock>());
  }
  if (first < channels) fn(first, channels - first);
}

}  // namespace tenon
