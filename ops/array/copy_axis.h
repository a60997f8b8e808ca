// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon {

/// One axis of a box that is copied: how many elements, and how far apart neighbours are where they
/// are read and where they are written.
struct CopyAxis {
  int64_t size, from, to;
};

}  // namespace tenon
