// SPDX-License-Identifier: Apache-2.0
#include "core/op/bound_arguments.h"

#include <algorithm>

#include "core/tensor/dtype.h"

namespace tenon {
namespace {

/// The value, or after an error an empty T; the run keeps the error.
template <typename T>
T ValueOrNone(StatusOr<T> value, BindingRun& run) {
  if (value.ok()) return *std::move(value);
  run.status = value.status();
  return T();
}

}  // namespace

Status WidenIntegers(const Tensor& t, std::string_view what, int64_t* values) {
  const bool known =
      Dispatch(t.dtype(), TypeList<int32_t, int64_t, int16_t, int8_t, uint16_t, uint8_t>(),
               [&]<typename T>(T) { std::copy_n(t.data<T>(), t.num_elements(), values); });
  return known ? OkStatus() : InvalidArgument(what, " must be integers, found ", t.dtype());
}

StatusOr<DimVector> ReadIntegers(const Tensor& t, std::string_view what) {
  DimVector values(t.num_elements());
  TENON_RETURN_IF_ERROR(WidenIntegers(t, what, values.data()));
  return values;
}

StatusOr<DimVector> ReadIntegerVector(const Tensor& t, std::string_view what, int64_t size) {
  TENON_RETURN_IF_ERROR(CheckRank(t, 1, what));
  if (size < 0 || t.dim(0) == size) return ReadIntegers(t, what);
  return InvalidArgument(what, " must have ", size, " elements, found ", t.dim(0));
}

StatusOr<int64_t> ReadInteger(const Tensor& t, std::string_view what) {
  TENON_RETURN_IF_ERROR(CheckRank(t, 0, what));
  return ReadOnlyInteger(t, what);
}

StatusOr<int64_t> ReadOnlyInteger(const Tensor& t, std::string_view what) {
  if (t.num_elements() != 1) {
    return InvalidArgument(what, " must be a tensor with a single value, found shape ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(t, what));
  return values[0];
}

StatusOr<Shape> ReadShape(const Tensor& t, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(t, what));
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return Annotate(shape.status(), what);
  return shape;
}

Status CheckRank(const Tensor& t, int rank, std::string_view what) {
  if (t.rank() == rank) return OkStatus();
  constexpr const char* kKinds[] = {"scalar", "vector", "matrix"};
  return InvalidArgument(what, " must be a ", kKinds[rank], ", found shape ", t.shape());
}

std::unique_ptr<const DeclaredShapes> DeclaredShapes::Of(const OpSchema& schema,
                                                         KernelConstruction& c) {
  if (!schema.has_shapes()) return nullptr;
  auto shapes = std::make_unique<DeclaredShapes>();
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const ArgSchema& arg = schema.inputs[i];
    if (!arg.shape || arg.is_ref) continue;  // what a reference refers to may be uninitialised
    const ArgumentPlace place = PlaceOfInput(schema, c, static_cast<int>(i));
    for (int k = 0; k < place.count; ++k) {
      shapes->inputs_.push_back({place.first + k, arg.shape->Resolved(c.attrs()),
                                 place.count == 1 ? arg.name : StrCat(arg.name, "[", k, "]")});
    }
  }
  for (const ArgSchema& arg : schema.outputs) {
    const auto length = ArgLength(arg, c.attrs());
    const ShapePattern pattern = arg.shape ? arg.shape->Resolved(c.attrs()) : ShapePattern();
    shapes->outputs_.insert(shapes->outputs_.end(), std::max<int64_t>(length.value_or(0), 0),
                            pattern);
  }
  return shapes;
}

Status DeclaredShapes::Match(const KernelContext& ctx, DimNames* names) const {
  for (const Input& input : inputs_) {
    if (!ctx.input(input.index).valid()) continue;
    TENON_RETURN_IF_ERROR(
        names->Match(input.pattern, ctx.input(input.index).shape().dims(), input.name));
  }
  return OkStatus();
}

Status DeclaredShapes::Match(const KernelContext& ctx) const {
  DimNames names;
  return Match(ctx, &names);
}

StatusOr<Tensor*> DeclaredShapes::Allocate(KernelContext& ctx, const DimNames& names, int i) const {
  DimVector dims;
  TENON_ASSIGN_OR_RETURN(const bool known, names.Dims(outputs_[i], &dims));
  if (!known) return Internal("the declared shape of output ", i, " does not follow from inputs");
  return ctx.CreateOutput(i, dims);
}

ArgumentPlace PlaceOfInput(const OpSchema& schema, KernelConstruction& c, int i) {
  ArgumentPlace place;
  for (int k = 0; k <= i; ++k) {
    place.first += k == 0 ? 0 : place.count;
    const auto length = ArgLength(schema.inputs[k], c.attrs());
    if (!length.ok()) c.Fail(length.status());
    place.count = static_cast<int>(length.value_or(0));
  }
  place.name = schema.inputs[i].name;
  return place;
}

Integer InputReader<Integer>::Read(BindingRun& run, const ArgumentPlace& place) {
  if (!run.status.ok()) return Integer{0};
  return Integer{ValueOrNone(ReadInteger(run.ctx.input(place.first), place.name), run)};
}

DimVector InputReader<DimVector>::Read(BindingRun& run, const ArgumentPlace& place) {
  if (!run.status.ok()) return {};
  return ValueOrNone(ReadIntegerVector(run.ctx.input(place.first), place.name), run);
}

Shape InputReader<Shape>::Read(BindingRun& run, const ArgumentPlace& place) {
  if (!run.status.ok()) return {};
  return ValueOrNone(ReadShape(run.ctx.input(place.first), place.name), run);
}

Tensor* BindOutput(BindingRun& run, int i) {
  if (!run.status.ok()) return nullptr;
  if (run.shapes == nullptr) {
    run.status = Internal("the op declares no shapes");
    return nullptr;
  }
  const StatusOr<Tensor*> output = run.shapes->Allocate(run.ctx, run.names, i);
  if (!output.ok()) run.status = output.status();
  return output.ok() ? *output : nullptr;
}

}  // namespace tenon
