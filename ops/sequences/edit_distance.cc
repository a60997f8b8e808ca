// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

/// How many elements must be inserted, deleted or replaced to make one sequence of the other.
template <typename T>
int64_t Levenshtein(absl::Span<const T> a, absl::Span<const T> b) {
  CountedVector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size() && !Interrupted(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// The sequences of a sparse tensor, along its last dimension, one after the other.
class Sequences {
 public:
  explicit Sequences(const SparseTensor& t) : t_(t) { Find(); }

  bool done() const { return begin_ == t_.size(); }
  int64_t begin() const { return begin_; }
  int64_t length() const { return end_ - begin_; }
  absl::Span<const int64_t> place() const { return PlaceOf(begin_); }
  void Next() {
    begin_ = end_;
    Find();
  }

 private:
  absl::Span<const int64_t> PlaceOf(int64_t i) const {
    return t_.index(i).subspan(0, t_.rank() - 1);
  }
  void Find() {
    end_ = begin_;
    while (end_ < t_.size() && PlaceOf(end_) == PlaceOf(begin_)) ++end_;
  }

  const SparseTensor& t_;
  int64_t begin_ = 0, end_ = 0;
};

/// InvalidArgument, with TensorFlow's text, for a sequence that lies outside the output.
Status CheckPlaces(const SparseTensor& t, const Tensor& out, absl::Span<const int64_t> strides) {
  for (int64_t i = 0; i < t.size() && !Interrupted(); ++i) {
    uint64_t place = 0;
    bool inside = true;
    for (int d = 0; d < out.rank(); ++d) {
      place += static_cast<uint64_t>(t.index(i)[d]) * static_cast<uint64_t>(strides[d]);
      inside &= t.index(i)[d] >= 0 && t.index(i)[d] < out.dim(d);
    }
    if (inside) continue;
    return InvalidArgument(
        "Got an inner product ", static_cast<int64_t>(place),
        " which would require writing to outside of the buffer for the output tensor "
        "(max elements ",
        out.num_elements(), ")");
  }
  return OkStatus();
}

Status EditDistanceKernel(KernelContext& ctx, const SparseTensor& hypothesis,
                          const SparseTensor& truth, bool normalize) {
  if (truth.rank() < 2 || truth.rank() != hypothesis.rank()) {
    return InvalidArgument("hypothesis and truth must be of the same rank, at least 2, found ",
                           hypothesis.rank(), " and ", truth.rank());
  }
  DimVector dims(truth.rank() - 1);
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(hypothesis.dims[d], truth.dims[d]);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  const DimVector strides = StridesOf(dims);
  for (const SparseTensor* t : {&hypothesis, &truth}) {
    TENON_RETURN_IF_ERROR(CheckPlaces(*t, *out, strides));
    TENON_RETURN_IF_ERROR(t->CheckSorted());
  }
  ZeroElements(out);
  const auto distance_at = [&](absl::Span<const int64_t> place) -> float& {
    return out->data<float>()[std::inner_product(place.begin(), place.end(), strides.begin(),
                                                 int64_t{0})];
  };
  using Types = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  return DispatchStatus(truth.values.dtype(), Types(), [&]<typename T>(T) {
    Sequences h(hypothesis), t(truth);
    while (!(h.done() && t.done()) && !Interrupted()) {
      const auto order = h.done()   ? std::strong_ordering::greater
                         : t.done() ? std::strong_ordering::less
                                    : CompareIndices(h.place(), t.place());
      if (order < 0) {  // there is no truth here
        distance_at(h.place()) =
            normalize ? std::numeric_limits<float>::infinity() : static_cast<float>(h.length());
      } else if (order > 0) {
        distance_at(t.place()) = normalize ? 1 : static_cast<float>(t.length());
      } else {
        const auto distance =
            Levenshtein(truth.values.flat<T>().subspan(t.begin(), t.length()),
                        hypothesis.values.flat<T>().subspan(h.begin(), h.length()));
        distance_at(t.place()) =
            static_cast<float>(distance) / static_cast<float>(normalize ? t.length() : 1);
      }
      if (order <= 0) h.Next();
      if (order >= 0) t.Next();
    }
  });
}

/// Known when both shapes are.
Status EditDistanceShape(ShapeContext& c) {
  for (const int i : {0, 3}) {
    TENON_RETURN_IF_ERROR(c.WithRank(i, 2));
    TENON_RETURN_IF_ERROR(c.WithRank(i + 1, 1));
    TENON_RETURN_IF_ERROR(c.WithRank(i + 2, 1));
  }
  TENON_ASSIGN_OR_RETURN(const PartialShape a, c.ConstantShape(2));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, c.ConstantShape(5));
  if (!a.IsFullyKnown() || !b.IsFullyKnown() || a.rank() != b.rank() || a.rank() < 2) {
    return OkStatus();
  }
  DimVector dims(a.rank() - 1);
  for (int i = 0; i + 1 < a.rank(); ++i) dims[i] = std::max(a.dim(i), b.dim(i));
  return c.Return(PartialShape(dims));
}

}  // namespace

void RegisterEditDistance(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0});
  const Tensor shape = Tensor::Vector<int64_t>({2, 2});
  ops.Add("EditDistance", EditDistanceShape, EditDistanceKernel, {.attrs = {"normalize"}})
      .Example({indices, Tensor::Vector<int32_t>({1, 2, 3}), shape, indices,
                Tensor::Vector<int32_t>({1, 3, 3}), shape});
}

}  // namespace tenon
