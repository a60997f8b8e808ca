// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

/// The values of codes that stand for no level.
constexpr int32_t kLeftOutLevel = -1, kMissingLevel = -2;

/// Whether no number is infinite or missing.
bool AreFinite(const double* numbers, int64_t count) {
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    finite += static_cast<int64_t>(std::abs(numbers[i]) <= std::numeric_limits<double>::max());
  }
  return finite == count;
}

void Scale(const GlmNumber& number, int64_t count, double* values) {
  if (number.center == 0 && number.scale == 1) return;
  const double center = number.center, scale = number.scale;
  for (int64_t i = 0; i < count; ++i) values[i] = (values[i] - center) * scale;
}

/// Keeps the values of the rows in `kept`, which are in order.
template <typename T>
void Keep(const std::vector<int32_t>& kept, CountedVector<T>* values) {
  if (values->empty()) return;
  for (size_t i = 0; i < kept.size(); ++i) (*values)[i] = (*values)[kept[i]];
  values->resize(kept.size());
}

}  // namespace

GlmRowReader::GlmRowReader(const GlmDesign& design)
    : design_(design),
      responses_(ResponsesOf(design.family)),
      states_(kChunkRows, RowState::kUsed),
      levels_(design.factors.size()),
      factor_codes_(design.factors.size()) {
  for (size_t f = 0; f < design.factors.size(); ++f) {
    const auto& of_code = design.factors[f].level_of_code;
    if (of_code.empty()) continue;
    levels_[f].push_back(kMissingLevel);
    levels_[f].insert(levels_[f].end(), of_code.begin(), of_code.end());
    levels_[f].push_back(kLeftOutLevel);
  }
}

void GlmRowReader::Evaluate(const GlmNumber& number, const TableBlock& block, double* out) {
  using Op = NumericExpression::Op;
  const auto& steps = number.expression.steps;
  if (steps.size() == 1 && steps[0].op == Op::kColumn) {
    block.columns[number.columns[steps[0].index]].CopyNumbers(begin_, count_, out);
    // Missing and infinite numbers stay so when they are scaled.
    Scale(number, count_, out);
    if (AreFinite(out, count_)) return;
    MarkMissing(out);
    MarkInfinite(out);
    return;
  }
  column_values_.resize(std::max(column_values_.size(), number.columns.size()));
  std::vector<const double*> values;
  for (size_t c = 0; c < number.columns.size(); ++c) {
    column_values_[c].resize(kChunkRows);
    block.columns[number.columns[c]].CopyNumbers(begin_, count_, column_values_[c].data());
    values.push_back(column_values_[c].data());
    // A power of a missing number may be none: NaN^0 is 1.
    if (!AreFinite(values[c], count_)) MarkMissing(values[c]);
  }
  number.expression.Evaluate(values, count_, out);
  if (!AreFinite(out, count_)) MarkInfinite(out);
  Scale(number, count_, out);
}

void GlmRowReader::MarkInfinite(const double* numbers) {
  for (int64_t i = 0; i < count_; ++i) {
    if (!std::isfinite(numbers[i])) Mark(i, RowState::kInfinite);
  }
}

void GlmRowReader::MarkMissing(const double* numbers) {
  for (int64_t i = 0; i < count_; ++i) {
    if (std::isnan(numbers[i])) Mark(i, RowState::kMissing);
  }
}

void GlmRowReader::ReadResponse(const TableBlock& block, GlmChunk* chunk) {
  const GlmResponse& response = design_.response;
  chunk->response.resize(count_);
  chunk->trials.clear();
  chunk->weight.assign(count_, 1);
  if (design_.weight_column >= 0) {
    block.columns[design_.weight_column].CopyNumbers(begin_, count_, chunk->weight.data());
    MarkMissing(chunk->weight.data());
  }
  if (response.column >= 0) {
    CountedVector<int32_t> codes(count_);
    block.columns[response.column].CopyCodes(begin_, count_, codes.data());
    for (int64_t i = 0; i < count_; ++i) {
      if (codes[i] < 0) Mark(i, RowState::kMissing);
      chunk->response[i] = codes[i] == response.code ? 1 : 0;
    }
    return;
  }
  Evaluate(response.number, block, chunk->response.data());
  if (response.failures.expression.steps.empty()) return;
  chunk->trials.resize(count_);
  Evaluate(response.failures, block, chunk->trials.data());
  for (int64_t i = 0; i < count_; ++i) {
    const double successes = chunk->response[i], trials = successes + chunk->trials[i];
    if (!(successes >= 0 && chunk->trials[i] >= 0)) {
      // A share outside of [0, 1] is impossible, as the counts are.
      chunk->response[i] = successes < 0 ? successes : 1 - chunk->trials[i];
      continue;
    }
    chunk->trials[i] = trials;
    chunk->response[i] = trials > 0 ? successes / trials : 0;
    chunk->weight[i] *= trials;
  }
}

void GlmRowReader::ReadCodes(const GlmFactor& factor, const TableBlock& block,
                             CountedVector<int32_t>* out) {
  out->resize(count_);
  if (factor.column >= 0) {
    block.columns[factor.column].CopyCodes(begin_, count_, out->data());
    return;
  }
  CountedVector<double> numbers(count_);
  Evaluate(factor.number, block, numbers.data());
  const auto& breaks = factor.breaks;
  for (int64_t i = 0; i < count_; ++i) {
    const auto above = std::lower_bound(breaks.begin(), breaks.end(), numbers[i]);
    const bool outside = above == breaks.begin() || above == breaks.end();
    (*out)[i] = outside ? -1 : static_cast<int32_t>(above - breaks.begin()) - 1;
  }
}

void GlmRowReader::ReadFactor(size_t f, const TableBlock& block, CountedVector<int32_t>* out) {
  const GlmFactor& factor = design_.factors[f];
  ReadCodes(factor, block, out);
  int32_t* const codes = out->data();
  const auto& levels = levels_[f];
  if (levels.empty()) {
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t level = codes[i] < factor.num_levels ? codes[i] : kLeftOutLevel;
      codes[i] = codes[i] < 0 ? kMissingLevel : level;
    }
  } else {
    const auto last = static_cast<uint32_t>(levels.size() - 1);
    for (int64_t i = 0; i < count_; ++i) {
      codes[i] = levels[std::min(static_cast<uint32_t>(codes[i] + 1), last)];
    }
  }
  int32_t least = 0;
  for (int64_t i = 0; i < count_; ++i) least = std::min(least, codes[i]);
  for (int64_t i = 0; least < 0 && i < count_; ++i) {
    if (codes[i] >= 0) continue;
    Mark(i, codes[i] == kMissingLevel ? RowState::kMissing : RowState::kLeftOut);
  }
}

void GlmRowReader::ReadGroups(const TableBlock& block, GlmChunk* chunk) {
  for (size_t f = 0; f < design_.factors.size(); ++f) ReadFactor(f, block, &factor_codes_[f]);
  const size_t num_groups = design_.groups.size();
  chunk->numbers.resize(num_groups);
  chunk->codes.resize(num_groups);
  for (size_t g = 0; g < num_groups; ++g) {
    const GlmGroup& group = design_.groups[g];
    if (group.number >= 0) {
      chunk->numbers[g].resize(count_);
      Evaluate(design_.numbers[group.number], block, chunk->numbers[g].data());
    }
    if (group.factors.empty()) continue;
    CountedVector<int32_t>& codes = chunk->codes[g];
    codes = factor_codes_[group.factors[0]];
    int64_t size = design_.factors[group.factors[0]].num_levels;
    for (size_t f = 1; f < group.factors.size(); ++f) {
      const CountedVector<int32_t>& more = factor_codes_[group.factors[f]];
      for (int64_t i = 0; i < count_; ++i) codes[i] += static_cast<int32_t>(size) * more[i];
      size *= design_.factors[group.factors[f]].num_levels;
    }
  }
}

void GlmRowReader::LeaveOut(GlmChunk* chunk) {
  chunk->count = count_;
  if (!any_marked_) return;
  std::vector<int32_t> kept;
  for (int64_t i = 0; i < count_; ++i) {
    switch (states_[i]) {
      case RowState::kUsed:
        kept.push_back(static_cast<int32_t>(i));
        break;
      case RowState::kMissing:
        ++chunk->num_missing;
        break;
      case RowState::kLeftOut:
        ++chunk->num_left_out;
        break;
      case RowState::kInfinite:
        ++chunk->num_infinite;
        break;
      case RowState::kWeightless:
        ++chunk->num_weightless;
        break;
      case RowState::kImpossible:
        if (chunk->num_impossible++ == 0) {
          const double y = chunk->response[i];
          const bool by_weight = y >= responses_.lowest && y <= responses_.highest;
          chunk->impossible = by_weight ? chunk->weight[i] : chunk->response[i];
        }
        break;
    }
  }
  chunk->count = static_cast<int64_t>(kept.size());
  Keep(kept, &chunk->response);
  Keep(kept, &chunk->weight);
  Keep(kept, &chunk->offset);
  Keep(kept, &chunk->trials);
  for (auto& numbers : chunk->numbers) Keep(kept, &numbers);
  for (auto& codes : chunk->codes) Keep(kept, &codes);
}

void GlmRowReader::Read(const TableBlock& block, int64_t begin, int64_t count, GlmChunk* chunk) {
  begin_ = begin;
  count_ = count;
  if (any_marked_) states_.assign(kChunkRows, RowState::kUsed);
  any_marked_ = false;
  chunk->num_missing = chunk->num_left_out = chunk->num_infinite = 0;
  chunk->num_impossible = chunk->num_weightless = 0;
  ReadResponse(block, chunk);
  ReadGroups(block, chunk);
  chunk->offset.assign(count, 0);
  CountedVector<double> offset(design_.offsets.empty() ? 0 : count);
  for (const GlmNumber& number : design_.offsets) {
    Evaluate(number, block, offset.data());
    for (int64_t i = 0; i < count; ++i) chunk->offset[i] += offset[i];
  }
  MarkImpossible(*chunk);
  LeaveOut(chunk);
}

void GlmRowReader::MarkImpossible(const GlmChunk& chunk) {
  const double *const y = chunk.response.data(), *const w = chunk.weight.data();
  const auto [lowest, highest] = responses_;
  int64_t usual = 0;
  for (int64_t i = 0; i < count_; ++i) {
    usual += static_cast<int64_t>((y[i] >= lowest) & (y[i] <= highest) & (w[i] > 0));
  }
  if (usual == count_) return;
  for (int64_t i = 0; i < count_; ++i) {
    if (!(y[i] >= lowest && y[i] <= highest) || !(w[i] >= 0)) {
      Mark(i, RowState::kImpossible);
    } else if (w[i] == 0) {
      Mark(i, RowState::kWeightless);
    }
  }
}

}  // namespace tenon
