// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/input/input_pipeline.h"

namespace tenon {

/// See InputPipeline::Batch.
class BatchSource final : public InputSource {
 public:
  BatchSource(std::unique_ptr<InputSource> from, int64_t size, bool drop_remainder)
      : from_(std::move(from)), size_(size), drop_remainder_(drop_remainder) {}
  StatusOr<bool> Next(InputElement* element) override;

 private:
  const std::unique_ptr<InputSource> from_;
  const int64_t size_;
  const bool drop_remainder_;
};

}  // namespace tenon
