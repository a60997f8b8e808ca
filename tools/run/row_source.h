// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon::tools {

/// Where the rows of a feed come from, some after others. Used by one thread at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// How many there are; -1 when only their end tells.
  virtual int64_t num_rows() const = 0;
  /// The next rows, at most `most`; fewer at the end, and none after it.
  virtual StatusOr<Tensor> Next(int64_t most) = 0;
  /// The files, of several, that the last rows came from, each with how many; empty for one source.
  virtual std::vector<std::pair<std::string, int64_t>> LastFiles() const { return {}; }
};

}  // namespace tenon::tools
