// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/tensor_slice.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tenon {
namespace {

bool ParseNumber(std::string_view text, int64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= 0;
}

/// Cuts the text before the next `separator` off the front.
std::string_view TakePart(std::string_view* rest, char separator) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return part;
}

}  // namespace

StatusOr<TensorSlice> TensorSlice::Parse(std::string_view text) {
  std::vector<Extent> extents;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view part = TakePart(&rest, ':');
    Extent extent;
    if (part != "-") {
      const std::string_view start = TakePart(&part, ',');
      if (!ParseNumber(start, &extent.start) || !ParseNumber(part, &extent.length)) {
        return InvalidArgument("'", text,
                               "' is not a slice; wanted 'start,length' or '-' for each dimension, "
                               "joined with ':'");
      }
    }
    extents.push_back(extent);
  }
  return TensorSlice(std::move(extents));
}

bool TensorSlice::IsFull(const Shape& shape) const {
  for (int i = 0; i < rank(); ++i) {
    const Extent& e = extents_[i];
    if (e.length != kFull && (e.start != 0 || e.length != shape.dim(i))) return false;
  }
  return true;
}

StatusOr<TensorSlice> TensorSlice::Resolve(const Shape& shape) const {
  if (rank() != shape.rank()) {
    return InvalidArgument("slice ", ToString(), " has ", rank(), " dimensions, the shape ",
                           shape.ToString(), " has ", shape.rank());
  }
  TensorSlice resolved = *this;
  for (int i = 0; i < rank(); ++i) {
    Extent& e = resolved.extents_[i];
    if (e.length == kFull) {
      e = {0, shape.dim(i)};
    } else if (e.start < 0 || e.length < 0 || e.length > shape.dim(i) ||
               e.start > shape.dim(i) - e.length) {
      return InvalidArgument("slice ", ToString(), " is not inside the shape ", shape.ToString());
    }
  }
  return resolved;
}

Shape TensorSlice::shape() const {
  DimVector dims;
  for (const Extent& e : extents_) dims.push_back(e.length);
  return Shape(absl::Span<const int64_t>(dims));
}

std::optional<TensorSlice> TensorSlice::Intersect(const TensorSlice& other) const {
  if (rank() != other.rank()) return std::nullopt;
  TensorSlice common = *this;
  for (int i = 0; i < rank(); ++i) {
    const Extent &a = extents_[i], &b = other.extents_[i];
    const int64_t start = std::max(a.start, b.start);
    const int64_t end = std::min(a.start + a.length, b.start + b.length);
    if (start >= end) return std::nullopt;
    common.extents_[i] = {start, end - start};
  }
  return common;
}

std::string TensorSlice::ToString() const {
  std::string out;
  for (const Extent& e : extents_) {
    if (!out.empty()) out += ':';
    if (e.length == kFull) {
      out += '-';
    } else {
      StrAppend(&out, e.start, ",", e.length);
    }
  }
  return out;
}

StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text) {
  const size_t last = text.rfind(' ');
  DimVector dims;
  std::string_view rest = text.substr(0, last == std::string_view::npos ? 0 : last);
  while (!rest.empty()) {
    int64_t dim = 0;
    if (!ParseNumber(TakePart(&rest, ' '), &dim)) {
      return InvalidArgument("'", text, "' is not a shape and a slice; wanted '20 10 0,5:-'");
    }
    dims.push_back(dim);
  }
  ShapeAndSlice result;
  TENON_ASSIGN_OR_RETURN(result.full_shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(
      result.slice, TensorSlice::Parse(text.substr(last == std::string_view::npos ? 0 : last + 1)));
  TENON_RETURN_IF_ERROR(result.slice.Resolve(result.full_shape).status());
  return result;
}

void CopySlice(const TensorSlice& part, const Tensor& from, const TensorSlice& from_slice,
               Tensor* to, const TensorSlice& to_slice) {
  const int rank = part.rank();
  const bool text = from.dtype() == DType::kString;
  const int64_t size = static_cast<int64_t>(SizeOf(from.dtype()));
  // Rows along the last dimension are contiguous in both.
  const int64_t row = rank == 0 ? 1 : part.extent(rank - 1).length;
  std::vector<int64_t> at(rank, 0);
  while (true) {
    int64_t source = 0, target = 0;
    for (int i = 0; i < rank; ++i) {
      const int64_t x = part.extent(i).start + at[i];
      source = source * from_slice.extent(i).length + x - from_slice.extent(i).start;
      target = target * to_slice.extent(i).length + x - to_slice.extent(i).start;
    }
    if (text) {
      std::copy_n(from.data<TString>() + source, row, to->data<TString>() + target);
    } else {
      std::memcpy(static_cast<char*>(to->raw_data()) + target * size,
                  static_cast<const char*>(from.raw_data()) + source * size, row * size);
    }
    int i = rank - 2;
    while (i >= 0 && ++at[i] == part.extent(i).length) at[i--] = 0;
    if (i < 0) return;
  }
}

}  // namespace tenon
