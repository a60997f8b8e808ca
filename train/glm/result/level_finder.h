// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "data/table/text_levels.h"
#include "train/glm/result/glm_equation.h"

namespace tenon {

/// Finds the levels of a factor of an equation. Any thread.
class LevelFinder {
 public:
  /// In the place of a level: the model does not know the text, or left its level out.
  static constexpr int32_t kUnseen = -2, kSeparated = -3;

  /// `equation` must outlive this. REQUIRES: the variable is a factor.
  LevelFinder(const GlmEquation& equation, int64_t variable);

  /// The level of a column's text.
  int32_t Of(std::string_view text) const;
  /// The level of a bucket of hash(), and of an interval of cut().
  int32_t OfBucket(uint64_t bucket) const;
  int32_t OfInterval(size_t interval) const;

 private:
  int32_t OfName(std::string_view name) const;

  const FormulaVariable& variable_;
  int32_t num_levels_;
  TextLevels names_;  // first the levels, then those that are separated
};

}  // namespace tenon
