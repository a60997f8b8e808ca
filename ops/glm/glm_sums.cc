// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_sums.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/glm/glm_rows.h"

namespace tenon {
namespace {

// A guess: a row of 8 numbers and 5 factors.
constexpr double kNsOfRow = 60;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The totals in the order in which sums have them.
std::array<double*, GlmTotals::kNumbers> FieldsOf(GlmTotals* t) {
  return {&t->num_rows,     &t->num_missing,    &t->num_weightless,
          &t->num_left_out, &t->num_infinite,   &t->num_impossible,
          &t->deviance,     &t->weight,         &t->weighted_response,
          &t->likelihood_constant, &t->response_square};
}

/// Adds up rows on one thread.
class Adder {
 public:
  Adder(const GlmSumsLayout& layout, absl::Span<const double> coefficients,
        CountedVector<double>* sums)
      : layout_(layout),
        coefficients_(coefficients),
        sums_(*sums),
        reader_(layout.design()),
        plain_(GlmRowReader::kChunkRows, layout.num_plain()),
        weighted_(GlmRowReader::kChunkRows, layout.num_plain() + 1) {}

  void Add(const TableBlock& block, int64_t begin, int64_t count) {
    reader_.Read(block, begin, count, &chunk_);
    AddTotals();
    if (chunk_.count == 0) return;
    const int64_t n = chunk_.count;
    information_.resize(n);
    scores_.resize(n);
    if (layout_.pass() == GlmPass::kRows) {
      AddConstants();
      information_.assign(n, 1);
      std::copy_n(chunk_.response.begin(), n, scores_.begin());
    } else {
      Predict();
      const bool wants = layout_.pass() != GlmPass::kDeviance;
      const GlmRows rows = {n, chunk_.response.data(), chunk_.weight.data(), predictor_.data()};
      totals_.deviance +=
          FisherScoring(layout_.design().family, layout_.design().link, rows,
                        wants ? information_.data() : nullptr, wants ? scores_.data() : nullptr);
    }
    if (layout_.pass() == GlmPass::kSquares) {
      for (int64_t i = 0; i < n; ++i) information_[i] = scores_[i] * scores_[i];
    }
    if (layout_.pass() == GlmPass::kGradient) AddGradient();
    if (layout_.has_products()) AddProducts();
  }

  /// Writes the totals.
  void End() {
    const auto fields = FieldsOf(&totals_);
    for (size_t i = 0; i < fields.size(); ++i) sums_[i] = *fields[i];
  }
  double impossible() const { return impossible_; }

 private:
  void AddTotals() {
    totals_.num_rows += static_cast<double>(chunk_.count);
    totals_.num_missing += static_cast<double>(chunk_.num_missing);
    totals_.num_weightless += static_cast<double>(chunk_.num_weightless);
    totals_.num_left_out += static_cast<double>(chunk_.num_left_out);
    totals_.num_infinite += static_cast<double>(chunk_.num_infinite);
    if (chunk_.num_impossible > 0 && totals_.num_impossible == 0) impossible_ = chunk_.impossible;
    totals_.num_impossible += static_cast<double>(chunk_.num_impossible);
  }
  void AddConstants() {
    for (int64_t i = 0; i < chunk_.count; ++i) {
      const double y = chunk_.response[i], w = chunk_.weight[i];
      totals_.weight += w;
      totals_.weighted_response += w * y;
      totals_.response_square += w * y * y;
    }
    totals_.likelihood_constant += LikelihoodConstant(
        layout_.design().family, chunk_.count, chunk_.response.data(), chunk_.weight.data(),
        chunk_.trials.empty() ? nullptr : chunk_.trials.data());
  }

  /// The number of a group in each row; null for 1.
  const double* NumbersOf(int64_t group) const {
    return chunk_.numbers[group].empty() ? nullptr : chunk_.numbers[group].data();
  }

  void Predict() {
    const int64_t n = chunk_.count;
    predictor_.assign(chunk_.offset.begin(), chunk_.offset.begin() + n);
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    for (int64_t g = 0; g < num_groups; ++g) {
      const double* const own = coefficients_.data() + layout_.first_column(g);
      const double* const x = NumbersOf(g);
      const int32_t* const codes = chunk_.codes[g].empty() ? nullptr : chunk_.codes[g].data();
      for (int64_t i = 0; i < n; ++i) {
        predictor_[i] += own[codes == nullptr ? 0 : codes[i]] * (x == nullptr ? 1 : x[i]);
      }
    }
  }

  void AddGradient() {
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    for (int64_t g = 0; g < num_groups; ++g) {
      double* const own = sums_.data() + GlmTotals::kNumbers + layout_.first_column(g);
      const double* const x = NumbersOf(g);
      const int32_t* const codes = chunk_.codes[g].empty() ? nullptr : chunk_.codes[g].data();
      for (int64_t i = 0; i < chunk_.count; ++i) {
        own[codes == nullptr ? 0 : codes[i]] += scores_[i] * (x == nullptr ? 1 : x[i]);
      }
    }
  }

  void AddProducts() {
    const int64_t n = chunk_.count, k = layout_.num_plain();
    for (int64_t p = 0; p < k; ++p) {
      const double* const x = NumbersOf(layout_.plain_groups()[p]);
      for (int64_t i = 0; i < n; ++i) {
        plain_(i, p) = x == nullptr ? 1 : x[i];
        weighted_(i, p) = information_[i] * plain_(i, p);
      }
    }
    for (int64_t i = 0; i < n; ++i) weighted_(i, k) = scores_[i];
    product_.noalias() = plain_.topRows(n).transpose() * weighted_.topRows(n);
    Eigen::Map<RowMajor>(sums_.data() + layout_.PlainRow(0), k, k + 1) += product_;
    const auto num_coded = static_cast<int64_t>(layout_.coded_groups().size());
    for (int64_t j = 0; j < num_coded; ++j) {
      AddRows(j);
      for (int64_t i = 0; i <= j && layout_.has_pairs(); ++i) AddPair(i, j);
    }
  }

  /// Adds the weighted numbers of each row to those of its level.
  void AddRows(int64_t coded) {
    const int64_t group = layout_.coded_groups()[coded], width = layout_.num_plain() + 1;
    const int32_t* const codes = chunk_.codes[group].data();
    const double* const x = NumbersOf(group);
    double* const own = sums_.data() + layout_.CodedRow(coded, 0);
    for (int64_t i = 0; i < chunk_.count; ++i) {
      double* const to = own + codes[i] * width;
      const double* const from = weighted_.data() + i * width;
      const double factor = x == nullptr ? 1 : x[i];
      for (int64_t p = 0; p < width; ++p) to[p] += factor * from[p];
    }
  }

  void AddPair(int64_t i, int64_t j) {
    const int64_t group_i = layout_.coded_groups()[i], group_j = layout_.coded_groups()[j];
    const int32_t* const codes_i = chunk_.codes[group_i].data();
    const int32_t* const codes_j = chunk_.codes[group_j].data();
    const double* weights = information_.data();
    const double* const x = NumbersOf(group_i);
    const double* const z = NumbersOf(group_j);
    if (x != nullptr || z != nullptr) {
      products_.assign(information_.begin(), information_.end());
      for (int64_t r = 0; r < chunk_.count; ++r) {
        products_[r] *= (x == nullptr ? 1 : x[r]) * (z == nullptr ? 1 : z[r]);
      }
      weights = products_.data();
    }
    double* const own = sums_.data() + layout_.Pair(i, j);
    if (layout_.SameFactors(i, j)) {
      for (int64_t r = 0; r < chunk_.count; ++r) own[codes_i[r]] += weights[r];
      return;
    }
    const int64_t width = layout_.NumLevels(j);
    for (int64_t r = 0; r < chunk_.count; ++r) own[codes_i[r] * width + codes_j[r]] += weights[r];
  }

  const GlmSumsLayout& layout_;
  const absl::Span<const double> coefficients_;
  CountedVector<double>& sums_;
  GlmRowReader reader_;
  GlmChunk chunk_;
  GlmTotals totals_;
  double impossible_ = 0;
  CountedVector<double> predictor_, information_, scores_, products_;
  RowMajor plain_, weighted_, product_;
};

/// Chunks of a block's rows.
struct ChunkRange {
  const TableBlock* block;
  int64_t begin, count;
};

}  // namespace

GlmSumsLayout::GlmSumsLayout(const GlmDesign& design, GlmPass pass) : design_(design), pass_(pass) {
  int64_t column = 0;
  for (size_t g = 0; g < design.groups.size(); ++g) {
    first_columns_.push_back(column);
    column += design.NumColumns(design.groups[g]);
    std::vector<int64_t>& alike = design.groups[g].factors.empty() ? plain_ : coded_;
    places_.push_back(static_cast<int64_t>(alike.size()));
    alike.push_back(static_cast<int64_t>(g));
  }
  for (const int64_t g : coded_) levels_.push_back(design.NumColumns(design.groups[g]));
  if (pass == GlmPass::kGradient) size_ += column;
  if (!has_products()) return;
  size_ += num_plain() * (num_plain() + 1);
  for (const int64_t levels : levels_) {
    coded_rows_.push_back(size_);
    size_ += levels * (num_plain() + 1);
  }
  if (!has_pairs()) return;
  const auto num_coded = static_cast<int64_t>(coded_.size());
  pairs_.resize(num_coded * num_coded);
  for (int64_t i = 0; i < num_coded; ++i) {
    for (int64_t j = i; j < num_coded; ++j) {
      pairs_[i * num_coded + j] = size_;
      size_ += SameFactors(i, j) ? levels_[i] : levels_[i] * levels_[j];
    }
  }
}

bool GlmSumsLayout::SameFactors(int64_t i, int64_t j) const {
  return design_.groups[coded_[i]].factors == design_.groups[coded_[j]].factors;
}

StatusOr<CountedVector<double>> AddGlmSums(const GlmSumsLayout& layout,
                                           absl::Span<const TableBlock* const> blocks,
                                           absl::Span<const double> coefficients,
                                           int64_t max_bytes) {
  const int64_t num_columns = layout.design().num_columns();
  if (static_cast<int64_t>(coefficients.size()) != num_columns) {
    return InvalidArgument("a design of ", num_columns, " columns wants as many coefficients, ",
                           "found ", coefficients.size());
  }
  std::vector<ChunkRange> chunks;
  for (const TableBlock* block : blocks) {
    for (int64_t row = 0; row < block->num_rows; row += GlmRowReader::kChunkRows) {
      chunks.push_back({block, row, std::min(GlmRowReader::kChunkRows, block->num_rows - row)});
    }
  }
  const auto num_chunks = static_cast<int64_t>(chunks.size());
  const int64_t num_lanes = std::max<int64_t>(1, std::min<int64_t>(ThreadBudget(), num_chunks));
  if (layout.size() > max_bytes / 8 / num_lanes) {
    return ResourceExhausted("a pass needs ", layout.size(), " sums for each of ", num_lanes,
                             " threads, more than ", max_bytes, " bytes");
  }
  // Each thread adds up a share of its own, in order, so that the sum does not depend on time.
  std::vector<CountedVector<double>> sums(num_lanes);
  std::vector<double> impossible(num_lanes);
  const double cost = kNsOfRow * GlmRowReader::kChunkRows * static_cast<double>(num_chunks) /
                      static_cast<double>(num_lanes);
  ParallelFor(num_lanes, cost, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      sums[lane].assign(layout.size(), 0);
      Adder adder(layout, coefficients, &sums[lane]);
      for (int64_t c = lane * num_chunks / num_lanes; c < (lane + 1) * num_chunks / num_lanes;
           ++c) {
        if (Interrupted()) return;
        adder.Add(*chunks[c].block, chunks[c].begin, chunks[c].count);
      }
      adder.End();
      impossible[lane] = adder.impossible();
    }
  });
  if (Interrupted()) return Cancelled("a pass over a table was interrupted");
  for (int64_t lane = 0; lane < num_lanes; ++lane) {
    if (TotalsOf(sums[lane]).num_impossible == 0) continue;
    return InvalidArgument("family ", NameOf(layout.design().family),
                           " cannot have a response or weight of ", impossible[lane]);
  }
  for (int64_t lane = 1; lane < num_lanes; ++lane) {
    std::transform(sums[0].begin(), sums[0].end(), sums[lane].begin(), sums[0].begin(),
                   std::plus<>());
  }
  return std::move(sums[0]);
}

GlmTotals TotalsOf(absl::Span<const double> sums) {
  GlmTotals totals;
  const auto fields = FieldsOf(&totals);
  for (size_t i = 0; i < fields.size(); ++i) *fields[i] = sums[i];
  return totals;
}

double GlmSums::Gradient(Column column) const {
  const int64_t place = layout_.place(column.group);
  if (!layout_.has_products()) {
    return sums_[GlmTotals::kNumbers + layout_.first_column(column.group) + column.level];
  }
  const int64_t row = layout_.is_coded(column.group) ? layout_.CodedRow(place, column.level)
                                                     : layout_.PlainRow(place);
  return sums_[row + layout_.num_plain()];
}

double GlmSums::Product(Column a, Column b) const {
  if (!layout_.is_coded(a.group)) std::swap(a, b);
  const int64_t i = layout_.place(a.group), j = layout_.place(b.group);
  if (!layout_.is_coded(a.group)) return sums_[layout_.PlainRow(i) + j];
  if (!layout_.is_coded(b.group)) return sums_[layout_.CodedRow(i, a.level) + j];
  if (i > j) return Product(b, a);
  const int64_t first = layout_.Pair(i, j);
  if (!layout_.SameFactors(i, j)) return sums_[first + a.level * layout_.NumLevels(j) + b.level];
  return a.level == b.level ? sums_[first + a.level] : 0;
}

}  // namespace tenon
