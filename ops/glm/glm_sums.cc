// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_sums.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "ops/glm/glm_rows.h"
#include "ops/glm/row_shares.h"

namespace tenon {
namespace {

// A guess: a row of 8 numbers and 5 factors.
constexpr double kNsOfRow = 40;
constexpr int64_t kChunk = GlmRowReader::kChunkRows;

/// The totals in the order in which sums have them.
std::array<double*, GlmTotals::kNumbers> FieldsOf(GlmTotals* t) {
  return {&t->num_rows,          &t->num_missing,         &t->num_weightless, &t->num_left_out,
          &t->num_infinite,      &t->num_impossible,      &t->deviance,       &t->weight,
          &t->weighted_response, &t->likelihood_constant, &t->response_square};
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
        zeros_(kChunk),
        ones_(kChunk, 1),
        places_(layout.coded_groups().size()) {}

  void Add(const TableBlock& block, int64_t begin, int64_t count) {
    reader_.Read(block, begin, count, &chunk_);
    AddTotals();
    if (chunk_.count == 0) return;
    if (layout_.pass() == GlmPass::kRows) {
      AddConstants();
      AddRows();
      return;
    }
    const int64_t n = chunk_.count;
    information_.resize(n);
    scores_.resize(n);
    Predict();
    const bool wants = layout_.pass() != GlmPass::kDeviance;
    const GlmRows rows = {n, chunk_.response.data(), chunk_.weight.data(), predictor_.data()};
    totals_.deviance +=
        FisherScoring(layout_.design().family, layout_.design().link, rows,
                      wants ? information_.data() : nullptr, wants ? scores_.data() : nullptr);
    if (layout_.pass() == GlmPass::kSquares) {
      for (int64_t i = 0; i < n; ++i) information_[i] = scores_[i] * scores_[i];
    }
    if (layout_.pass() == GlmPass::kGradient) AddByColumn(0, scores_);
    if (layout_.pass() == GlmPass::kResidual) AddResiduals();
    if (layout_.pass() == GlmPass::kDiagonal) AddDiagonal();
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

  /// The number of a group in each row.
  const double* NumbersOf(int64_t group) const {
    return chunk_.numbers[group].empty() ? ones_.data() : chunk_.numbers[group].data();
  }
  const int32_t* CodesOf(int64_t group) const {
    return chunk_.codes[group].empty() ? zeros_.data() : chunk_.codes[group].data();
  }
  int64_t num_coded() const { return static_cast<int64_t>(layout_.coded_groups().size()); }

  /// The places of a coded group's columns in the sums, in each row.
  void SetPlaces() {
    const auto width = static_cast<int32_t>(layout_.coded_width());
    for (int64_t c = 0; c < num_coded(); ++c) {
      places_[c].resize(chunk_.count);
      const int32_t* const codes = chunk_.codes[layout_.coded_groups()[c]].data();
      for (int64_t i = 0; i < chunk_.count; ++i) places_[c][i] = codes[i] * width;
    }
  }

  void AddRows() {
    const int64_t n = chunk_.count;
    for (int64_t p = 0; p < layout_.num_plain(); ++p) {
      const double* const x = NumbersOf(layout_.plain_groups()[p]);
      double sum = 0, squares = 0, with_response = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += x[i];
        squares += x[i] * x[i];
        with_response += x[i] * chunk_.response[i];
      }
      double* const own = sums_.data() + layout_.PlainRow(p);
      own[0] += sum;
      own[1] += squares;
      own[2] += with_response;
    }
    SetPlaces();
    number_targets_.clear();
    products_.resize(num_coded());
    for (int64_t c = 0; c < num_coded(); ++c) {
      const double* const x = NumbersOf(layout_.coded_groups()[c]);
      products_[c].resize(n);
      for (int64_t i = 0; i < n; ++i) products_[c][i] = x[i] * chunk_.response[i];
      double* const own = sums_.data() + layout_.CodedRow(c, 0);
      number_targets_.push_back({own, places_[c].data(), x});
      number_targets_.push_back({own + 1, places_[c].data(), products_[c].data()});
    }
    AddNumbersTo(number_targets_, n);
  }

  void Predict() {
    const int64_t n = chunk_.count;
    predictor_.assign(chunk_.offset.begin(), chunk_.offset.begin() + n);
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    PredictPlain();
    for (int64_t g = 0; g < num_groups; ++g) {
      const double* const own = coefficients_.data() + layout_.first_column(g);
      const double* const x = NumbersOf(g);
      const int32_t* const codes = chunk_.codes[g].data();
      if (chunk_.codes[g].empty()) continue;
      if (chunk_.numbers[g].empty()) {
        for (int64_t i = 0; i < n; ++i) predictor_[i] += own[codes[i]];
      } else {
        for (int64_t i = 0; i < n; ++i) predictor_[i] += own[codes[i]] * x[i];
      }
    }
  }

  /// The part of columns without factors: four at a time, so that the predictors are read and
  /// written less often.
  void PredictPlain() {
    const int64_t n = chunk_.count, size = layout_.num_plain();
    const auto coefficient = [&](int64_t p) {
      return p < size ? coefficients_[layout_.first_column(layout_.plain_groups()[p])] : 0;
    };
    const auto numbers = [&](int64_t p) {
      return p < size ? NumbersOf(layout_.plain_groups()[p]) : ones_.data();
    };
    double* const to = predictor_.data();
    for (int64_t p = 0; p < size; p += 4) {
      const double a = coefficient(p), b = coefficient(p + 1), c = coefficient(p + 2),
                   d = coefficient(p + 3);
      const double *const u = numbers(p), *const v = numbers(p + 1), *const w = numbers(p + 2),
                          *const x = numbers(p + 3);
      for (int64_t i = 0; i < n; ++i) to[i] += (a * u[i] + b * v[i]) + (c * w[i] + d * x[i]);
    }
  }

  /// Adds the products of columns with a number of each row; `part` of the numbers by column have
  /// gone before.
  void AddByColumn(int64_t part, const CountedVector<double>& with) {
    const int64_t n = chunk_.count;
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    double* const sums = sums_.data() + GlmTotals::kNumbers + part * layout_.num_columns();
    const Eigen::Map<const Eigen::ArrayXd> factors(with.data(), n);
    number_targets_.clear();
    products_.resize(num_groups);
    for (int64_t g = 0; g < num_groups; ++g) {
      double* const own = sums + layout_.first_column(g);
      const bool has_codes = !chunk_.codes[g].empty(), has_numbers = !chunk_.numbers[g].empty();
      const Eigen::Map<const Eigen::ArrayXd> x(NumbersOf(g), n);
      if (!has_codes && layout_.pass() == GlmPass::kResidual) {
        long double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += residuals_[i] * x[i];
        own[0] += static_cast<double>(sum);
        continue;
      }
      if (!has_codes) {
        // The sum of an array as it is begins where its memory is aligned, which is not always the
        // same place; that of products begins with the first.
        own[0] += (factors * x).sum();
        continue;
      }
      const double* numbers = with.data();
      if (has_numbers) {
        products_[g].resize(n);
        numbers = products_[g].data();
        Eigen::Map<Eigen::ArrayXd>(products_[g].data(), n) = factors * x;
      }
      number_targets_.push_back({own, chunk_.codes[g].data(), numbers});
    }
    AddNumbersTo(number_targets_, n);
  }

  /// The gradient of a linear model. Its columns of numbers may be nearly collinear (powers of one
  /// number), and then its rounding is what an estimate's digits depend on.
  void AddResiduals() {
    const int64_t n = chunk_.count;
    residuals_.resize(n);
    for (int64_t i = 0; i < n; ++i) {
      residuals_[i] = static_cast<long double>(chunk_.response[i]) - chunk_.offset[i];
    }
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    for (int64_t g = 0; g < num_groups; ++g) {
      const double* const own = coefficients_.data() + layout_.first_column(g);
      const double* const x = NumbersOf(g);
      const int32_t* const codes = CodesOf(g);
      for (int64_t i = 0; i < n; ++i) {
        residuals_[i] -= static_cast<long double>(own[codes[i]]) * x[i];
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      residuals_[i] *= chunk_.weight[i];
      scores_[i] = static_cast<double>(residuals_[i]);
    }
    AddByColumn(0, scores_);
  }

  void AddDiagonal() {
    AddByColumn(0, scores_);
    AddByColumn(1, information_);
    const int64_t n = chunk_.count;
    const auto num_groups = static_cast<int64_t>(layout_.design().groups.size());
    double* const sums = sums_.data() + GlmTotals::kNumbers + 2 * layout_.num_columns();
    for (int64_t g = 0; g < num_groups; ++g) {
      double* const own = sums + layout_.first_column(g);
      const double* const x = NumbersOf(g);
      const int32_t* const codes = CodesOf(g);
      for (int64_t i = 0; i < n; ++i) own[codes[i]] += information_[i] * x[i] * x[i];
    }
  }

  void AddProducts() {
    const int64_t n = chunk_.count, k = layout_.num_plain(), width = layout_.coded_width();
    weighted_.resize(kChunk * width);
    plain_.clear();
    for (int64_t p = 0; p < k; ++p) {
      const double* const x = NumbersOf(layout_.plain_groups()[p]);
      for (int64_t i = 0; i < n; ++i) weighted_[i * width + p] = information_[i] * x[i];
      plain_.push_back(x);
    }
    for (int64_t i = 0; i < n; ++i) weighted_[i * width + k] = scores_[i];
    AddProductsTo(sums_.data() + layout_.PlainRow(0), n, width, plain_, weighted_.data());
    SetPlaces();
    row_targets_.clear();
    for (int64_t c = 0; c < num_coded(); ++c) {
      row_targets_.push_back({sums_.data() + layout_.CodedRow(c, 0), places_[c].data(),
                              NumbersOf(layout_.coded_groups()[c])});
    }
    AddRowsTo(row_targets_, n, width, weighted_.data());
    AddPairs();
  }

  void AddPairs() {
    const int64_t n = chunk_.count;
    const auto num_pairs = static_cast<size_t>(num_coded() * (num_coded() + 1) / 2);
    pair_places_.resize(num_pairs);
    products_.resize(num_pairs);
    number_targets_.clear();
    size_t pair = 0;
    for (int64_t j = 0; j < num_coded(); ++j) {
      for (int64_t i = 0; i <= j; ++i, ++pair) {
        const int64_t group_i = layout_.coded_groups()[i], group_j = layout_.coded_groups()[j];
        const int32_t *codes_i = CodesOf(group_i), *const codes_j = CodesOf(group_j);
        if (!layout_.SameFactors(i, j)) {
          const auto levels = static_cast<int32_t>(layout_.NumLevels(j));
          pair_places_[pair].resize(n);
          int32_t* const places = pair_places_[pair].data();
          for (int64_t r = 0; r < n; ++r) places[r] = codes_i[r] * levels + codes_j[r];
          codes_i = places;
        }
        const double* weights = information_.data();
        if (!chunk_.numbers[group_i].empty() || !chunk_.numbers[group_j].empty()) {
          const double *const x = NumbersOf(group_i), *const z = NumbersOf(group_j);
          products_[pair].resize(n);
          for (int64_t r = 0; r < n; ++r) products_[pair][r] = information_[r] * x[r] * z[r];
          weights = products_[pair].data();
        }
        number_targets_.push_back({sums_.data() + layout_.Pair(i, j), codes_i, weights});
      }
    }
    AddNumbersTo(number_targets_, n);
  }

  const GlmSumsLayout& layout_;
  const absl::Span<const double> coefficients_;
  CountedVector<double>& sums_;
  GlmRowReader reader_;
  GlmChunk chunk_;
  GlmTotals totals_;
  double impossible_ = 0;
  const CountedVector<int32_t> zeros_;
  const CountedVector<double> ones_;
  CountedVector<double> predictor_, information_, scores_, weighted_;
  CountedVector<long double> residuals_;
  std::vector<CountedVector<int32_t>> places_, pair_places_;  // by coded group, by pair of these
  std::vector<CountedVector<double>> products_;
  std::vector<const double*> plain_;
  std::vector<RowTarget> row_targets_;
  std::vector<NumberTarget> number_targets_;
};

}  // namespace

GlmSumsLayout::GlmSumsLayout(const GlmDesign& design, GlmPass pass) : design_(design), pass_(pass) {
  for (size_t g = 0; g < design.groups.size(); ++g) {
    first_columns_.push_back(num_columns_);
    num_columns_ += design.NumColumns(design.groups[g]);
    std::vector<int64_t>& alike = design.groups[g].factors.empty() ? plain_ : coded_;
    places_.push_back(static_cast<int64_t>(alike.size()));
    alike.push_back(static_cast<int64_t>(g));
  }
  for (const int64_t g : coded_) levels_.push_back(design.NumColumns(design.groups[g]));
  if (pass == GlmPass::kGradient || pass == GlmPass::kResidual) size_ += num_columns_;
  if (pass == GlmPass::kDiagonal) size_ += 3 * num_columns_;
  if (pass < GlmPass::kRows) return;
  size_ += num_plain() * plain_width();
  for (const int64_t levels : levels_) {
    coded_rows_.push_back(size_);
    size_ += levels * coded_width();
  }
  if (!has_products()) return;
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

StatusOr<CountedVector<double>> AddGlmSums(const GlmSumsLayout& layout, const TableShard& shard,
                                           absl::Span<const double> coefficients,
                                           const FileContext& context, int64_t max_bytes) {
  const int64_t num_columns = layout.design().num_columns();
  if (static_cast<int64_t>(coefficients.size()) != num_columns) {
    return InvalidArgument("a design of ", num_columns, " columns wants as many coefficients, ",
                           "found ", coefficients.size());
  }
  const RowShares shares(shard);
  if (layout.size() > std::min<int64_t>(max_bytes / 8 / shares.count(), INT32_MAX)) {
    return ResourceExhausted("a pass needs ", layout.size(), " sums for each of ", shares.count(),
                             " threads, more than ", max_bytes, " bytes");
  }
  std::vector<CountedVector<double>> sums(shares.count());
  std::vector<std::unique_ptr<Adder>> adders;
  for (auto& own : sums) {
    own.assign(layout.size(), 0);
    adders.push_back(std::make_unique<Adder>(layout, coefficients, &own));
  }
  TENON_RETURN_IF_ERROR(shares.ForEachChunk(
      kNsOfRow,
      [&](int64_t share, const TableBlock& block, int64_t begin, int64_t num_rows) {
        adders[share]->Add(block, begin, num_rows);
      },
      context));
  for (const auto& adder : adders) adder->End();
  for (size_t share = 0; share < sums.size(); ++share) {
    if (TotalsOf(sums[share]).num_impossible == 0) continue;
    return InvalidArgument("family ", NameOf(layout.design().family),
                           " cannot have a response or weight of ", adders[share]->impossible());
  }
  for (size_t share = 1; share < sums.size(); ++share) {
    std::transform(sums[0].begin(), sums[0].end(), sums[share].begin(), sums[0].begin(),
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

int64_t GlmSums::RowOf(Column column) const {
  const int64_t place = layout_.place(column.group);
  return layout_.is_coded(column.group) ? layout_.CodedRow(place, column.level)
                                        : layout_.PlainRow(place);
}

double GlmSums::Gradient(Column column) const {
  if (!layout_.has_products()) return sums_[PlaceOf(column)];
  return sums_[RowOf(column) + layout_.num_plain()];
}

double GlmSums::WithResponse(Column column) const {
  return sums_[RowOf(column) + (layout_.is_coded(column.group) ? 1 : 2)];
}

double GlmSums::Squares(int64_t group) const { return sums_[RowOf({group}) + 1]; }

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

GlmSums::Products GlmSums::ProductsWith(Column column, int64_t group) const {
  const int64_t i = layout_.place(column.group), j = layout_.place(group);
  if (!layout_.is_coded(column.group)) {
    return {sums_.data() + layout_.CodedRow(j, 0) + i, layout_.coded_width()};
  }
  if (i < j) return {sums_.data() + layout_.Pair(i, j) + column.level * layout_.NumLevels(j), 1};
  return {sums_.data() + layout_.Pair(j, i) + column.level, layout_.NumLevels(i)};
}

}  // namespace tenon
