// SPDX-License-Identifier: Apache-2.0
#include "core/build/slicing.h"

#include <limits>
#include <optional>

#include "core/build/building.h"

namespace tenon {
namespace {

/// What StridedSlice takes for a list of indices: an entry each, and masks with a bit for each.
class Entries {
 public:
  explicit Entries(const std::vector<SliceIndex>& indices) {
    for (const SliceIndex& index : indices) status_.Update(Add(index));
    if (indices.size() > 32) status_.Update(InvalidArgument("a slice has at most 32 indices"));
    if (large_ && tensors_ == DType::kInt32) {
      status_.Update(InvalidArgument("a number beyond 32 bits stands beside scalars of int32"));
    }
    dtype_ = tensors_.value_or(large_ ? DType::kInt64 : DType::kInt32);
  }

  const Status& status() const { return status_; }

  Output Slice(const Output& of) const {
    NodeBuilder node("StridedSlice", "strided_slice");
    node.Input(of).Input(Vector(begin_)).Input(Vector(end_)).Input(Vector(strides_));
    return node.Attr("begin_mask", begin_mask_)
        .Attr("end_mask", end_mask_)
        .Attr("ellipsis_mask", ellipsis_mask_)
        .Attr("new_axis_mask", new_axis_mask_)
        .Attr("shrink_axis_mask", shrink_axis_mask_)
        .Output();
  }

 private:
  Status Add(const SliceIndex& index) {
    const int64_t bit = int64_t{1} << (begin_.size() % 32);
    const std::vector<Input>& numbers = index.numbers();
    switch (index.kind()) {
      case SliceIndex::Kind::kElement: {
        shrink_axis_mask_ |= bit;
        // The end does not count, but shows what is meant.
        const StatusOr<int64_t> element = Number(numbers[0]);
        const bool has_next = element.ok() && *element < std::numeric_limits<int32_t>::max();
        return Push(numbers[0], has_next ? Input(*element + 1) : numbers[0], 1);
      }
      case SliceIndex::Kind::kRange:
        if (numbers.size() != 2 && numbers.size() != 3) {
          return InvalidArgument("a range has a begin, an end and perhaps a step, found ",
                                 numbers.size(), " numbers");
        }
        if (numbers[0].left_out()) begin_mask_ |= bit;
        if (numbers[1].left_out()) end_mask_ |= bit;
        return Push(numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : Input(1));
      case SliceIndex::Kind::kEllipsis:
        if (ellipsis_mask_ != 0) return InvalidArgument("a slice has one kEllipsis at most");
        ellipsis_mask_ = bit;
        return Push(0, 0, 1);
      case SliceIndex::Kind::kNewAxis:
        new_axis_mask_ |= bit;
        return Push(0, 1, 1);
    }
    return OkStatus();
  }

  Status Push(const Input& begin, const Input& end, const Input& stride) {
    begin_.push_back(begin.left_out() ? Input(0) : begin);
    end_.push_back(end.left_out() ? Input(0) : end);
    strides_.push_back(stride.left_out() ? Input(1) : stride);
    for (const Input* in : {&begin_.back(), &end_.back(), &strides_.back()}) {
      if (in->output() != nullptr) {
        TENON_RETURN_IF_ERROR(AddTensor(in->output()->dtype()));
      } else {
        TENON_ASSIGN_OR_RETURN(const int64_t value, Number(*in));
        large_ |= value != static_cast<int32_t>(value);
      }
    }
    return OkStatus();
  }

  Status AddTensor(DType dtype) {
    if (dtype == DType::kInvalid) return OkStatus();  // was not built, which its use says
    if (dtype != DType::kInt32 && dtype != DType::kInt64) {
      return InvalidArgument("an index is a scalar of int32 or int64, found one of ", dtype);
    }
    if (tensors_.value_or(dtype) != dtype) {
      return InvalidArgument("indices of int32 and of int64 stand together");
    }
    tensors_ = dtype;
    return OkStatus();
  }

  static StatusOr<int64_t> Number(const Input& in) {
    if (in.literal() == nullptr) return InvalidArgument("an index is an integer or a scalar");
    TENON_ASSIGN_OR_RETURN(const Tensor value, in.literal()->ToTensor(DType::kInt64));
    if (value.rank() != 0) return InvalidArgument("an index is one integer");
    return value.scalar<int64_t>();
  }

  /// One vector of the numbers: a tensor where they are known.
  Input Vector(const std::vector<Input>& numbers) const {
    Tensor known(dtype_, {static_cast<int64_t>(numbers.size())});
    for (size_t i = 0; i < numbers.size(); ++i) {
      const StatusOr<int64_t> value = Number(numbers[i]);
      if (!value.ok()) return NodeBuilder("Pack").Attr("T", dtype_).Inputs(numbers).Output();
      if (dtype_ == DType::kInt64) known.data<int64_t>()[i] = *value;
      if (dtype_ == DType::kInt32) known.data<int32_t>()[i] = static_cast<int32_t>(*value);
    }
    return known;
  }

  std::vector<Input> begin_, end_, strides_;
  int64_t begin_mask_ = 0, end_mask_ = 0, ellipsis_mask_ = 0, new_axis_mask_ = 0,
          shrink_axis_mask_ = 0;
  bool large_ = false;  // a number needs 64 bits
  std::optional<DType> tensors_;
  DType dtype_;
  Status status_;
};

}  // namespace

Output Output::operator[](const SliceIndices& indices) const {
  const CalledFrom caller(indices.location());
  const BuildContext& context = CurrentBuilding();
  const Entries entries(indices.indices());
  if (!entries.status().ok()) {
    context.Fail(Annotate(entries.status(), StrCat("a slice of '", this->name(), "'")),
                 indices.location());
    return Output();
  }
  return entries.Slice(*this);
}

}  // namespace tenon
