// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_scores.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "ops/glm/glm_rows.h"
#include "ops/glm/row_shares.h"

namespace tenon {
namespace {

// A guess: a row of 8 numbers and 5 factors.
constexpr double kNsOfScoredRow = 30;

/// The scores in the order in which they are numbers.
std::array<double*, GlmScores::kNumbers> FieldsOfScores(GlmScores* s) {
  return {&s->num_rows,     &s->num_missing,    &s->num_weightless, &s->num_left_out,
          &s->num_infinite, &s->num_impossible, &s->weight,         &s->log_loss,
          &s->square,       &s->absolute};
}

/// Scores rows on one thread.
class Scorer {
 public:
  Scorer(const GlmDesign& design, absl::Span<const double> coefficients, double* numbers)
      : design_(design),
        reader_(design),
        positives_(numbers + GlmScores::kNumbers),
        negatives_(positives_ + LogitBins::kCount),
        numbers_(numbers) {
    int64_t column = 0;
    for (const GlmGroup& group : design.groups) {
      coefficients_.push_back(coefficients.data() + column);
      column += design.NumColumns(group);
    }
  }

  void Add(const TableBlock& block, int64_t begin, int64_t count) {
    reader_.Read(block, begin, count, &chunk_);
    scores_.num_rows += static_cast<double>(chunk_.count);
    scores_.num_missing += static_cast<double>(chunk_.num_missing);
    scores_.num_weightless += static_cast<double>(chunk_.num_weightless);
    scores_.num_left_out += static_cast<double>(chunk_.num_left_out);
    scores_.num_infinite += static_cast<double>(chunk_.num_infinite);
    scores_.num_impossible += static_cast<double>(chunk_.num_impossible);
    if (chunk_.num_impossible > 0) impossible_ = chunk_.impossible;
    if (chunk_.count == 0) return;
    Predict();
    if (design_.family == GlmFamily::kBinomial) {
      ScoreBinary();
    } else {
      ScoreNumbers();
    }
  }

  /// Writes the scores.
  void End() {
    const auto fields = FieldsOfScores(&scores_);
    for (size_t i = 0; i < fields.size(); ++i) numbers_[i] = *fields[i];
  }
  double num_impossible() const { return scores_.num_impossible; }
  double impossible() const { return impossible_; }

 private:
  void Predict() {
    const int64_t n = chunk_.count;
    predictor_.assign(chunk_.offset.begin(), chunk_.offset.begin() + n);
    for (size_t g = 0; g < design_.groups.size(); ++g) {
      const double* const own = coefficients_[g];
      const bool has_codes = !chunk_.codes[g].empty(), has_numbers = !chunk_.numbers[g].empty();
      const int32_t* const codes = chunk_.codes[g].data();
      const double* const x = chunk_.numbers[g].data();
      for (int64_t i = 0; i < n; ++i) {
        predictor_[i] += own[has_codes ? codes[i] : 0] * (has_numbers ? x[i] : 1);
      }
    }
    if (design_.link == GlmLink::kLogit) return;
    MeansOf(design_.link, n, predictor_.data(), predictor_.data());
  }

  void ScoreNumbers() {
    for (int64_t i = 0; i < chunk_.count; ++i) {
      const double rest = chunk_.response[i] - predictor_[i], w = chunk_.weight[i];
      scores_.weight += w;
      scores_.square += w * rest * rest;
      scores_.absolute += w * std::abs(rest);
    }
  }

  void ScoreBinary() {
    const int64_t n = chunk_.count;
    Eigen::Map<Eigen::ArrayXd> logits(predictor_.data(), n);
    if (design_.link != GlmLink::kLogit) {
      constexpr double kLeast = std::numeric_limits<double>::epsilon();
      const Eigen::ArrayXd means = logits.max(kLeast).min(1 - kLeast);
      logits = (means / (1 - means)).log();
    }
    // log(1 + exp(-|x|)) is what both labels have in common.
    small_ = (-logits.abs()).exp();
    parts_ = (1 + small_).log();
    constexpr double kPerLogit = LogitBins::kCount / (2 * LogitBins::kLimit);
    bins_ = ((logits + LogitBins::kLimit) * kPerLogit)
                .max(0)
                .min(static_cast<double>(LogitBins::kCount - 1));
    for (int64_t i = 0; i < n; ++i) {
      const double x = predictor_[i], y = chunk_.response[i], w = chunk_.weight[i], e = small_[i];
      const double larger = 1 / (1 + e), smaller = e * larger;
      const double p = x > 0 ? larger : smaller, q = x > 0 ? smaller : larger;
      scores_.weight += w;
      scores_.log_loss += w * (parts_[i] + (x > 0 ? (1 - y) * x : -y * x));
      scores_.square += w * (y * q * q + (1 - y) * p * p);
      const auto bin = static_cast<int64_t>(bins_[i]);
      positives_[bin] += w * y;
      negatives_[bin] += w * (1 - y);
    }
  }

  const GlmDesign& design_;
  std::vector<const double*> coefficients_;  // by group
  GlmRowReader reader_;
  GlmChunk chunk_;
  GlmScores scores_;
  double impossible_ = 0;
  double* const positives_;
  double* const negatives_;
  double* const numbers_;
  CountedVector<double> predictor_;
  Eigen::ArrayXd small_, parts_, bins_;
};

}  // namespace

int64_t NumScores(GlmFamily family) {
  return GlmScores::kNumbers + (family == GlmFamily::kBinomial ? 2 * LogitBins::kCount : 0);
}

StatusOr<CountedVector<double>> AddGlmScores(const GlmDesign& design, const TableShard& shard,
                                             absl::Span<const double> coefficients,
                                             const FileContext& context) {
  if (static_cast<int64_t>(coefficients.size()) != design.num_columns()) {
    return InvalidArgument("a design of ", design.num_columns(), " columns wants as many ",
                           "coefficients, found ", coefficients.size());
  }
  const RowShares shares(shard);
  std::vector<CountedVector<double>> numbers(shares.count());
  std::vector<std::unique_ptr<Scorer>> scorers;
  for (auto& own : numbers) {
    own.assign(NumScores(design.family), 0);
    scorers.push_back(std::make_unique<Scorer>(design, coefficients, own.data()));
  }
  TENON_RETURN_IF_ERROR(shares.ForEachChunk(
      kNsOfScoredRow,
      [&](int64_t share, const TableBlock& block, int64_t begin, int64_t num_rows) {
        scorers[share]->Add(block, begin, num_rows);
      },
      context));
  for (const auto& scorer : scorers) {
    scorer->End();
    if (scorer->num_impossible() == 0) continue;
    return InvalidArgument("family ", NameOf(design.family),
                           " cannot have a response or weight of ", scorer->impossible());
  }
  for (size_t share = 1; share < numbers.size(); ++share) {
    std::transform(numbers[0].begin(), numbers[0].end(), numbers[share].begin(), numbers[0].begin(),
                   std::plus<>());
  }
  return std::move(numbers[0]);
}

GlmScores ScoresOf(absl::Span<const double> numbers) {
  GlmScores scores;
  const auto fields = FieldsOfScores(&scores);
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = numbers[i];
  return scores;
}

}  // namespace tenon
