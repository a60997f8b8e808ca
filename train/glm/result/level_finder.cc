// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/level_finder.h"

#include "core/base/strings.h"
#include "ops/fingerprint.h"
#include "train/glm/model/glm_model.h"

namespace tenon {

LevelFinder::LevelFinder(const GlmEquation& equation, int64_t variable)
    : variable_(equation.formula.variables[variable]) {
  for (const std::string& level : equation.variables[variable].levels) names_.Code(level);
  num_levels_ = names_.size();
  for (const std::string& level : equation.separated[variable]) names_.Code(level);
}

int32_t LevelFinder::OfName(std::string_view name) const {
  const int32_t code = names_.Find(name);
  if (code < 0) return kUnseen;
  return code < num_levels_ ? code : kSeparated;
}

int32_t LevelFinder::Of(std::string_view text) const {
  if (variable_.kind != FormulaVariable::Kind::kHash) return OfName(text);
  return OfBucket(Fingerprint64(text) % static_cast<uint64_t>(variable_.num_buckets));
}

int32_t LevelFinder::OfBucket(uint64_t bucket) const { return OfName(StrCat(bucket)); }

int32_t LevelFinder::OfInterval(size_t interval) const {
  return OfName(IntervalName(variable_.breaks[interval], variable_.breaks[interval + 1]));
}

}  // namespace tenon
