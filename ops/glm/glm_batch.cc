// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_batch.h"

#include <algorithm>
#include <utility>

#include "ops/glm/scattered_sums.h"

namespace tenon {
namespace {

constexpr int32_t kNoCoefficient = -1;

}  // namespace

GlmBatchMaker::GlmBatchMaker(const GlmDesign& design, const GlmCoefficientParts& parts,
                             int64_t rows)
    : parts_(parts), reader_(design) {
  int64_t columns = 0;
  std::vector<int64_t> without;
  for (size_t g = 0; g < design.groups.size(); ++g) {
    first_columns_.push_back(columns);
    columns += design.NumColumns(design.groups[g]);
    const auto group = static_cast<int64_t>(g);
    (design.groups[g].number >= 0 ? groups_ : without).push_back(group);
  }
  num_numbers_ = groups_.size();
  groups_.insert(groups_.end(), without.begin(), without.end());
  int32_t most = -1;
  for (int64_t c = 0; c < parts.num_columns(); ++c) most = std::max(most, parts.OfColumn(c));
  taken_.assign(most + 1, kNoCoefficient);
  batch_.columns.resize(parts.num_parts());
  batch_.places.resize(groups_.size());
  batch_.numbers.resize(num_numbers_);
  for (auto& places : batch_.places) places.reserve(rows);
  for (auto& numbers : batch_.numbers) numbers.reserve(rows);
}

void GlmBatchMaker::Begin() {
  for (const int32_t c : coefficients_) taken_[c] = kNoCoefficient;
  coefficients_.clear();
  batch_.num_read = batch_.count = 0;
  for (auto& columns : batch_.columns) columns.clear();
  for (auto& places : batch_.places) places.clear();
  for (auto& numbers : batch_.numbers) numbers.clear();
  batch_.response.clear();
  batch_.weight.clear();
  batch_.offset.clear();
}

int32_t GlmBatchMaker::Take(int32_t coefficient) {
  if (coefficient < 0) return kNoCoefficient;
  int32_t& place = taken_[coefficient];
  if (place < 0) {
    place = static_cast<int32_t>(coefficients_.size());
    coefficients_.push_back(coefficient);
  }
  return place;
}

void GlmBatchMaker::Add(const TableBlock& block, int64_t begin, int64_t count) {
  reader_.Read(block, begin, count, &chunk_);
  batch_.num_read += count;
  batch_.count += chunk_.count;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const CountedVector<int32_t>& codes = chunk_.codes[groups_[g]];
    const int64_t first = first_columns_[groups_[g]];
    CountedVector<int32_t>& places = batch_.places[g];
    if (codes.empty()) {
      places.resize(places.size() + chunk_.count, Take(parts_.OfColumn(first)));
    } else {
      for (int64_t i = 0; i < chunk_.count; ++i) {
        places.push_back(Take(parts_.OfColumn(first + codes[i])));
      }
    }
    if (g >= num_numbers_) continue;
    const CountedVector<double>& numbers = chunk_.numbers[groups_[g]];
    batch_.numbers[g].insert(batch_.numbers[g].end(), numbers.begin(),
                             numbers.begin() + chunk_.count);
  }
  const auto append = [&](const CountedVector<double>& from, CountedVector<double>* to) {
    to->insert(to->end(), from.begin(), from.begin() + chunk_.count);
  };
  append(chunk_.response, &batch_.response);
  append(chunk_.weight, &batch_.weight);
  append(chunk_.offset, &batch_.offset);
}

const GlmBatch& GlmBatchMaker::End(double start, double scale) {
  final_places_.resize(coefficients_.size());
  for (size_t i = 0; i < coefficients_.size(); ++i) {
    CountedVector<int64_t>& columns = batch_.columns[parts_.PartOf(coefficients_[i])];
    final_places_[i] = static_cast<int32_t>(columns.size());
    columns.push_back(parts_.PlaceOf(coefficients_[i]));
  }
  std::vector<int32_t> before;
  int32_t all = 0;
  for (const auto& columns : batch_.columns) {
    before.push_back(all);
    all += static_cast<int32_t>(columns.size());
  }
  for (size_t i = 0; i < coefficients_.size(); ++i) {
    final_places_[i] += before[parts_.PartOf(coefficients_[i])];
  }
  for (auto& places : batch_.places) {
    for (int32_t& place : places) place = place < 0 ? all : final_places_[place];
  }
  for (double& offset : batch_.offset) offset = (offset + start) / scale;
  for (double& response : batch_.response) response /= scale;
  return batch_;
}

double AddBatchGradient(const GlmBatchRows& rows, const double* weights, double* gradient) {
  const int64_t n = rows.count;
  CountedVector<double> predictor(rows.offset, rows.offset + n), information(n), scores(n);
  for (int64_t g = 0; g < rows.groups; ++g) {
    const int32_t* const places = rows.places + g * n;
    if (g < rows.num_numbers) {
      const double* const x = rows.numbers + g * n;
      for (int64_t i = 0; i < n; ++i) predictor[i] += weights[places[i]] * x[i];
    } else {
      for (int64_t i = 0; i < n; ++i) predictor[i] += weights[places[i]];
    }
  }
  const double deviance =
      FisherScoring(rows.family, rows.link, {n, rows.response, rows.weight, predictor.data()},
                    information.data(), scores.data());
  for (double& score : scores) score = -score;
  std::fill_n(gradient, rows.columns + 1, 0);
  std::vector<CountedVector<double>> products(rows.num_numbers);
  std::vector<NumberTarget> targets;
  for (int64_t g = 0; g < rows.groups; ++g) {
    const double* numbers = scores.data();
    if (g < rows.num_numbers) {
      products[g].resize(n);
      for (int64_t i = 0; i < n; ++i) products[g][i] = scores[i] * rows.numbers[g * n + i];
      numbers = products[g].data();
    }
    targets.push_back({gradient, rows.places + g * n, numbers});
  }
  AddNumbersTo(targets, n);
  gradient[rows.columns] = 0;
  return deviance;
}

}  // namespace tenon
