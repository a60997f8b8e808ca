// SPDX-License-Identifier: Apache-2.0
#include "core/op/shape_pattern.h"

#include "core/base/strings.h"

namespace tenon {
namespace {

std::string DimText(const DimPattern& dim) {
  if (dim.kind == DimPattern::Kind::kAny) return "?";
  if (dim.kind == DimPattern::Kind::kNumber) return StrCat(dim.number);
  if (dim.element >= 0) return StrCat(dim.name, "[", dim.element, "]");
  if (dim.number == 0) return dim.name;
  return StrCat(dim.name, dim.number < 0 ? " - " : " + ", std::abs(dim.number));
}

}  // namespace

std::string ShapePattern::ToString() const {
  std::string text = open ? "[..." : "[";
  for (const DimPattern& dim : dims) StrAppend(&text, text.size() == 1 ? "" : ", ", DimText(dim));
  return text + "]";
}

ShapePattern ShapePattern::Resolved(const AttributeMap& attrs) const {
  ShapePattern resolved = *this;
  for (DimPattern& dim : resolved.dims) {
    if (dim.kind != DimPattern::Kind::kAttr) continue;
    const int64_t value = attrs.GetOr<int64_t>(dim.name, -1);
    dim.kind = value < 0 ? DimPattern::Kind::kAny : DimPattern::Kind::kNumber;
    dim.number += value;
  }
  return resolved;
}

bool DimNames::MatchOpen(const ShapePattern& pattern, absl::Span<const int64_t> dims) {
  if (dims.size() < pattern.dims.size()) return false;
  const size_t before = dims.size() - pattern.dims.size();
  if (!open_known_) {
    open_.assign(dims.begin(), dims.begin() + before);
    open_known_ = true;
  } else if (open_.size() != before) {
    return false;
  }
  for (size_t i = 0; i < before; ++i) {
    if (open_[i] < 0) open_[i] = dims[i];
    if (dims[i] >= 0 && dims[i] != open_[i]) return false;
  }
  for (size_t i = 0; i < pattern.dims.size(); ++i) {
    if (!Fits(pattern.dims[i], dims[before + i])) return false;
  }
  return true;
}

StatusOr<bool> DimNames::Dims(const ShapePattern& pattern, DimVector* dims) const {
  if (pattern.open && !open_known_) return false;
  dims->clear();
  if (pattern.open) *dims = open_;
  for (const DimPattern& dim : pattern.dims) {
    int64_t size = -1;
    if (dim.kind == DimPattern::Kind::kNumber) size = dim.number;
    if (dim.kind == DimPattern::Kind::kSymbol && sizes_[dim.index] >= 0) {
      size = sizes_[dim.index] + dim.number;
      if (dim.number > 0) {
        TENON_ASSIGN_OR_RETURN(size, AddSizes(sizes_[dim.index], dim.number));
      } else if (size < 0) {
        return InvalidArgument(dim.name, " = ", sizes_[dim.index], " is below ", -dim.number);
      }
    }
    dims->push_back(size);
  }
  return true;
}

Status DimNames::Contradiction(const ShapePattern& pattern, absl::Span<const int64_t> dims,
                               std::string_view name) const {
  std::string known;
  for (const DimPattern& dim : pattern.dims) {
    if (dim.kind != DimPattern::Kind::kSymbol || sizes_[dim.index] < 0) continue;
    StrAppend(&known, known.empty() ? ", where " : ", ", dim.name, " = ", sizes_[dim.index]);
  }
  if (pattern.open && open_known_) {
    StrAppend(&known,
              known.empty() ? ", where ... = " : ", ... = ", PartialShape(open_).ToString());
  }
  return InvalidArgument(name, " must have shape ", pattern.ToString(), known, ", found shape ",
                         PartialShape(dims).ToString());
}

}  // namespace tenon
