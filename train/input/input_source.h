// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// One element of a pipeline: the tensors that belong together, such as an image and its label.
using InputElement = std::vector<Tensor>;

/// Walks a pipeline once, from its beginning. Used by one thread at a time.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// The next element; false at the end. After an error there is nothing more.
  virtual StatusOr<bool> Next(InputElement* element) = 0;
};

}  // namespace tenon
