// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "data/random_sequence.h"
#include "train/input/input_pipeline.h"

namespace tenon {

/// See InputPipeline::Shuffle.
class ShuffleSource final : public InputSource {
 public:
  ShuffleSource(std::unique_ptr<InputSource> from, int64_t buffer_size, uint64_t seed,
                uint64_t repetition)
      : from_(std::move(from)), buffer_size_(buffer_size), random_(seed) {
    // Another sequence for each repetition, far from those of seeds nearby.
    for (int i = 0; i < 2; ++i) random_ = RandomSequence(random_.Next() ^ repetition);
  }

  StatusOr<bool> Next(InputElement* element) override {
    while (!ended_ && static_cast<int64_t>(held_.size()) < buffer_size_) {
      InputElement next;
      TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(&next));
      ended_ = !found;
      if (found) held_.push_back(std::move(next));
    }
    if (held_.empty()) return false;
    std::swap(held_[random_.Below(held_.size())], held_.back());
    *element = std::move(held_.back());
    held_.pop_back();
    return true;
  }

 private:
  const std::unique_ptr<InputSource> from_;
  const int64_t buffer_size_;
  RandomSequence random_;
  std::vector<InputElement> held_;
  bool ended_ = false;
};

}  // namespace tenon
