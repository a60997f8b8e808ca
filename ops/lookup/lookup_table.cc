// SPDX-License-Identifier: Apache-2.0
#include "ops/lookup/lookup_table.h"

namespace tenon {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TableOptions::TableOptions(KernelConstruction& c)
    : op(c.op()),
      key(c.Attr<DType>("key_dtype")),
      value(c.Attr<DType>("value_dtype")),
      value_shape(c.attrs().GetOr("value_shape", PartialShape(Shape()))),
      is_mutable(Contains(op, "Mutable")),
      is_dense(Contains(op, "Dense")) {
  if (!value_shape.IsFullyKnown()) {
    c.Fail(InvalidArgument("value_shape must be fully known, found ", value_shape));
  } else if (Contains(op, "OfTensors") && value_shape.rank() != 1) {
    c.Fail(InvalidArgument("Default value must be a vector, got shape ", value_shape));
  } else if (is_dense && value_shape.rank() > 1) {
    c.Fail(InvalidArgument("Empty value must be a scalar or a vector, got shape ", value_shape));
  }
  if (key == DType::kResource || key == DType::kVariant || value == DType::kResource ||
      value == DType::kVariant) {
    c.Fail(InvalidArgument("a table cannot have keys of ", key, " and values of ", value));
  }
}

Status LookupTable::CheckShared(const TableOptions& wanted) const {
  if (options_.is_mutable == wanted.is_mutable && options_.is_dense == wanted.is_dense &&
      options_.value_shape == wanted.value_shape) {
    return CheckTypes(wanted.key, wanted.value);
  }
  return InvalidArgument("Shared table '", name_, "' is a ", options_.op, " of values of shape ",
                         options_.value_shape, ", requested was a ", wanted.op, " of ",
                         wanted.value_shape);
}

Status LookupTable::Initialize(const Tensor&, const Tensor&) {
  return FailedPrecondition("table '", name_, "' is a ", options_.op,
                            ", which is not initialized but inserted into");
}

Status LookupTable::CheckTypes(DType key, DType value) const {
  if (key == options_.key && value == options_.value) return OkStatus();
  return InvalidArgument("Conflicting key/value dtypes ", key, "->", value, " with ", options_.key,
                         "->", options_.value, " for table ", name_);
}

StatusOr<Shape> LookupTable::ValuesShape(absl::Span<const int64_t> batch) const {
  return Shape::Create(Concat(batch, options_.value_shape.dims()));
}

Status LookupTable::CheckValues(absl::Span<const int64_t> batch, const Tensor& values) const {
  TENON_ASSIGN_OR_RETURN(const Shape wanted, ValuesShape(batch));
  if (wanted == values.shape()) return OkStatus();
  return InvalidArgument("Expected shape ", wanted, " for value, got ", values.shape());
}

StatusOr<Tensor*> LookupTable::FoundValues(KernelContext& ctx, absl::Span<const int64_t> batch,
                                           const Tensor& fallback) const {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ValuesShape(batch));
  if (fallback.shape() != shape && PartialShape(fallback.shape()) != options_.value_shape) {
    return InvalidArgument("Expected shape ", options_.value_shape, " or ", shape,
                           " for default value, got ", fallback.shape());
  }
  return ctx.AllocateOutput(0, shape);
}

}  // namespace tenon
