// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/parallel.h"

namespace tenon {

/// How many of `inner` neighbouring columns are worked on side by side, `most` or fewer, where
/// there are `outer` groups of them: so few that every thread has some, as long as vectors are
/// filled. For what is computed of each column by itself.
inline int64_t ColumnsOfItem(int64_t outer, int64_t inner, int64_t most) {
  constexpr int64_t kFewest = 32;
  int64_t width = std::min(inner, most);
  while (width >= 2 * kFewest && outer * ((inner + width - 1) / width) < ThreadBudget()) width /= 2;
  return width;
}

}  // namespace tenon
