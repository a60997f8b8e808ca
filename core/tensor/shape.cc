// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <algorithm>
#include <limits>

namespace tenon {
namespace {

/// The product, or nullopt when it overflows. A zero anywhere makes it zero, but the other
/// dimensions are still multiplied, so that no intermediate shape of a kernel can overflow.
std::optional<int64_t> CheckedProduct(absl::Span<const int64_t> dims) {
  int64_t nonzero = 1;
  bool zero = false;
  for (const int64_t d : dims) {
    if (d == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(nonzero, d, &nonzero)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : nonzero;
}

std::string DimsToString(absl::Span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ",";
    if (dims[i] < 0) {
      out += "?";
    } else {
      StrAppend(&out, dims[i]);
    }
  }
  return out + "]";
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const int64_t> dims) : rank_(static_cast<int32_t>(dims.size())) {
  if (is_inline()) {
    std::copy(dims.begin(), dims.end(), dims_.own);
  } else {
    CopyLarge(dims.data());
  }
  bool overflows = false;
  for (const int64_t d : dims) {
    overflows |= __builtin_mul_overflow(num_elements_, d, &num_elements_);
  }
  if (overflows) {
    num_elements_ = CheckedProduct(dims).value_or(std::numeric_limits<int64_t>::max());
  }
}

void Shape::CopyLarge(const int64_t* dims) {
  int64_t* const copy = TalliedAllocator<int64_t>().allocate(rank_);
  std::copy_n(dims, rank_, copy);
  dims_.large = copy;
}

void Shape::FreeLarge() { TalliedAllocator<int64_t>().deallocate(dims_.large, rank_); }

StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("a shape has at most ", kMaxRank, " dimensions, found ", dims.size());
  }
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument("negative dimension in shape ", DimsToString(dims), ": ", d);
  }
  if (!CheckedProduct(dims)) {
    return InvalidArgument("shape ", DimsToString(dims),
                           " has too many elements: Encountered overflow when multiplying them");
  }
  return Shape(dims);
}

Shape Shape::WithDim(int i, int64_t size) const {
  DimVector dims(this->dims().begin(), this->dims().end());
  dims[i] = size;
  return Shape(dims);
}

Shape Shape::WithoutDim(int i) const {
  DimVector dims(this->dims().begin(), this->dims().end());
  dims.erase(dims.begin() + i);
  return Shape(dims);
}

Shape Shape::WithInsertedDim(int i, int64_t size) const {
  DimVector dims(this->dims().begin(), this->dims().end());
  dims.insert(dims.begin() + i, size);
  return Shape(dims);
}

std::string Shape::ToString() const { return DimsToString(dims()); }

StatusOr<int64_t> AddSizes(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return InvalidArgument("the sum of the sizes ", a, " and ", b, " does not fit in 64 bits");
}

StatusOr<int64_t> MultiplySizes(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return InvalidArgument("the product of the sizes ", a, " and ", b, " does not fit in 64 bits");
}

DimVector Concat(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  DimVector all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

StatusOr<PartialShape> PartialShape::Create(absl::Span<const int64_t> dims) {
  if (dims.size() > Shape::kMaxRank) {
    return InvalidArgument("a shape has at most ", Shape::kMaxRank, " dimensions, found ",
                           dims.size());
  }
  DimVector known;
  for (const int64_t d : dims) {
    if (d < kUnknownDim) {
      return InvalidArgument("a dimension must be >= -1, found ", d, " in ", DimsToString(dims));
    }
    if (d >= 0) known.push_back(d);
  }
  if (!CheckedProduct(known)) {
    return InvalidArgument("shape ", DimsToString(dims),
                           " has too many elements: Encountered overflow when multiplying them");
  }
  return PartialShape(dims);
}

PartialShape PartialShape::OfRank(int rank) {
  if (rank < 0) return PartialShape();
  return PartialShape(absl::Span<const int64_t>(DimVector(rank, kUnknownDim)));
}

PartialShape PartialShape::WithDim(std::optional<int> i, int64_t size) const {
  if (!dims_) return PartialShape();
  if (!i) return OfRank(rank());
  PartialShape changed = *this;
  (*changed.dims_)[*i] = size;
  return changed;
}

PartialShape PartialShape::WithoutDim(std::optional<int> i) const {
  if (!dims_) return PartialShape();
  if (!i) return OfRank(rank() - 1);
  PartialShape changed = *this;
  changed.dims_->erase(changed.dims_->begin() + *i);
  return changed;
}

PartialShape PartialShape::WithInsertedDim(std::optional<int> i, int64_t size) const {
  if (!dims_) return PartialShape();
  if (!i) return OfRank(rank() + 1);
  PartialShape changed = *this;
  changed.dims_->insert(changed.dims_->begin() + *i, size);
  return changed;
}

PartialShape PartialShape::Part(int begin, std::optional<int> end) const {
  if (!dims_) return PartialShape();
  return PartialShape(dims().subspan(begin, end.value_or(rank()) - begin));
}

PartialShape PartialShape::ConcatWith(const PartialShape& other) const {
  if (!dims_ || !other.dims_) return PartialShape();
  return PartialShape(absl::Span<const int64_t>(Concat(*dims_, *other.dims_)));
}

bool PartialShape::IsFullyKnown() const {
  return dims_ && std::all_of(dims_->begin(), dims_->end(), [](int64_t d) { return d >= 0; });
}

std::optional<int64_t> PartialShape::num_elements() const {
  if (!IsFullyKnown()) return std::nullopt;
  return ToShape().num_elements();
}

bool PartialShape::IsCompatibleWith(const PartialShape& other) const {
  if (!dims_ || !other.dims_) return true;
  if (dims_->size() != other.dims_->size()) return false;
  for (size_t i = 0; i < dims_->size(); ++i) {
    const int64_t a = (*dims_)[i], b = (*other.dims_)[i];
    if (a >= 0 && b >= 0 && a != b) return false;
  }
  return true;
}

StatusOr<PartialShape> PartialShape::MergeWith(const PartialShape& other) const {
  if (!IsCompatibleWith(other)) {
    std::string why;
    if (rank() != other.rank()) {
      why = StrCat("Shapes must be equal rank, but are ", rank(), " and ", other.rank());
    }
    for (int i = 0; i < rank() && why.empty(); ++i) {
      const int64_t a = dim(i), b = other.dim(i);
      if (a < 0 || b < 0 || a == b) continue;
      why = StrCat("Dimension ", i, " in both shapes must be equal, but are ", a, " and ", b);
    }
    return InvalidArgument(why, ". Shapes ", ToString(), " and ", other.ToString(),
                           " are incompatible");
  }
  if (!dims_) return other;
  if (!other.dims_) return *this;
  PartialShape merged = *this;
  for (size_t i = 0; i < dims_->size(); ++i) {
    if ((*merged.dims_)[i] < 0) (*merged.dims_)[i] = (*other.dims_)[i];
  }
  return Create(*merged.dims_);  // together they may have too many elements
}

PartialShape PartialShape::RelaxedWith(const PartialShape& other) const {
  if (rank() != other.rank() || !dims_) return PartialShape();
  PartialShape relaxed = *this;
  for (size_t i = 0; i < dims_->size(); ++i) {
    if ((*dims_)[i] != (*other.dims_)[i]) (*relaxed.dims_)[i] = kUnknownDim;
  }
  return relaxed;
}

std::string PartialShape::ToString() const {
  return dims_ ? DimsToString(*dims_) : std::string("<unknown>");
}

}  // namespace tenon
