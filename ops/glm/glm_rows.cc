// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_rows.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

/// Keeps the values of the rows in `kept`, which are in order.
template <typename T>
void Keep(const std::vector<int32_t>& kept, CountedVector<T>* values) {
  if (values->empty()) return;
  for (size_t i = 0; i < kept.size(); ++i) (*values)[i] = (*values)[kept[i]];
  values->resize(kept.size());
}

}  // namespace

void GlmRowReader::Evaluate(const GlmNumber& number, const TableBlock& block, double* out) {
  column_values_.resize(std::max(column_values_.size(), number.columns.size()));
  std::vector<const double*> values;
  for (size_t c = 0; c < number.columns.size(); ++c) {
    column_values_[c].resize(count_);
    block.columns[number.columns[c]].CopyNumbers(begin_, count_, column_values_[c].data());
    values.push_back(column_values_[c].data());
    // A power of a missing number may be none: NaN^0 is 1.
    for (int64_t i = 0; i < count_; ++i) {
      if (std::isnan(values[c][i])) Mark(i, RowState::kMissing);
    }
  }
  using Op = NumericExpression::Op;
  const auto& steps = number.expression.steps;
  if (steps.size() == 1 && steps[0].op == Op::kColumn) {
    std::copy_n(values[0], count_, out);
  } else {
    number.expression.Evaluate(values, count_, out);
  }
  for (int64_t i = 0; i < count_; ++i) {
    if (!std::isfinite(out[i])) Mark(i, RowState::kInfinite);
    out[i] = (out[i] - number.center) * number.scale;
  }
}

void GlmRowReader::ReadResponse(const TableBlock& block, GlmChunk* chunk) {
  const GlmResponse& response = design_.response;
  chunk->response.resize(count_);
  chunk->trials.clear();
  chunk->weight.assign(count_, 1);
  if (design_.weight_column >= 0) {
    block.columns[design_.weight_column].CopyNumbers(begin_, count_, chunk->weight.data());
    for (int64_t i = 0; i < count_; ++i) {
      if (std::isnan(chunk->weight[i])) Mark(i, RowState::kMissing);
    }
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

void GlmRowReader::ReadFactor(const GlmFactor& factor, const TableBlock& block,
                              CountedVector<int32_t>* out) {
  ReadCodes(factor, block, out);
  const auto& levels = factor.level_of_code;
  for (int64_t i = 0; i < count_; ++i) {
    int32_t& code = (*out)[i];
    if (code < 0) {
      Mark(i, RowState::kMissing);
      continue;
    }
    if (!levels.empty()) code = code < static_cast<int64_t>(levels.size()) ? levels[code] : -1;
    if (code < 0 || code >= factor.num_levels) Mark(i, RowState::kLeftOut);
  }
}

void GlmRowReader::ReadGroups(const TableBlock& block, GlmChunk* chunk) {
  factor_codes_.resize(design_.factors.size());
  for (size_t f = 0; f < design_.factors.size(); ++f) {
    ReadFactor(design_.factors[f], block, &factor_codes_[f]);
  }
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
          const bool by_weight = IsPossible(design_.family, chunk->response[i]);
          chunk->impossible = by_weight ? chunk->weight[i] : chunk->response[i];
        }
        break;
    }
  }
  chunk->count = static_cast<int64_t>(kept.size());
  if (chunk->count == count_) return;
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
  states_.assign(count, RowState::kUsed);
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
  for (int64_t i = 0; i < count; ++i) {
    const double w = chunk->weight[i];
    if (!IsPossible(design_.family, chunk->response[i]) || !(w >= 0)) {
      Mark(i, RowState::kImpossible);
    } else if (w == 0) {
      Mark(i, RowState::kWeightless);
    }
  }
  LeaveOut(chunk);
}

}  // namespace tenon
