// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_attribute.h"

#include <algorithm>

#include "core/proto/proto_io_tensor.h"

namespace tenon {
namespace {

/// Attributes of functions hold attributes in turn; no real graph goes deeper.
constexpr int kMaxFunctionDepth = 16;

Status FunctionToProto(const FunctionName& function, NameAttrList* out) {
  out->set_name(function.name);
  for (const auto& [name, value] : function.attrs) {
    TENON_RETURN_IF_ERROR(AttributeToProto(value, &(*out->mutable_attr())[name]));
  }
  return OkStatus();
}

Status ConstantToProto(const Tensor& tensor, TensorProto* out) {
  const bool text = tensor.dtype() == DType::kString;
  return TensorToProto(tensor, out, text ? TensorEncoding::kTyped : TensorEncoding::kContent);
}

struct Writer {
  AttrValue* out;

  Status operator()(std::monostate) const { return InvalidArgument("an attribute has no value"); }
  Status operator()(const std::string& v) const { return out->set_s(v), OkStatus(); }
  Status operator()(int64_t v) const { return out->set_i(v), OkStatus(); }
  Status operator()(float v) const { return out->set_f(v), OkStatus(); }
  Status operator()(bool v) const { return out->set_b(v), OkStatus(); }
  Status operator()(DType v) const { return out->set_type(DTypeToProto(v)), OkStatus(); }
  Status operator()(const PartialShape& v) const {
    return ShapeToProto(v, out->mutable_shape()), OkStatus();
  }
  Status operator()(const Tensor& v) const { return ConstantToProto(v, out->mutable_tensor()); }
  Status operator()(const FunctionName& v) const { return FunctionToProto(v, out->mutable_func()); }
  template <typename T>
  Status operator()(const std::vector<T>& list) const {
    AttrValue::ListValue* to = out->mutable_list();
    for (const auto& v : list) TENON_RETURN_IF_ERROR(Add(v, to));
    return OkStatus();
  }

  static Status Add(const std::string& v, AttrValue::ListValue* to) {
    return to->add_s(v), OkStatus();
  }
  static Status Add(int64_t v, AttrValue::ListValue* to) { return to->add_i(v), OkStatus(); }
  static Status Add(float v, AttrValue::ListValue* to) { return to->add_f(v), OkStatus(); }
  static Status Add(bool v, AttrValue::ListValue* to) { return to->add_b(v), OkStatus(); }
  static Status Add(DType v, AttrValue::ListValue* to) {
    return to->add_type(DTypeToProto(v)), OkStatus();
  }
  static Status Add(const PartialShape& v, AttrValue::ListValue* to) {
    return ShapeToProto(v, to->add_shape()), OkStatus();
  }
  static Status Add(const Tensor& v, AttrValue::ListValue* to) {
    return ConstantToProto(v, to->add_tensor());
  }
  static Status Add(const FunctionName& v, AttrValue::ListValue* to) {
    return FunctionToProto(v, to->add_func());
  }
};

StatusOr<Attribute> Read(const AttrValue& proto, int64_t* budget, int depth);

StatusOr<FunctionName> ReadFunction(const NameAttrList& proto, int64_t* budget, int depth) {
  FunctionName function;
  function.name = proto.name();
  for (const auto& [name, value] : proto.attr()) {
    TENON_ASSIGN_OR_RETURN(Attribute attribute, Read(value, budget, depth + 1));
    function.attrs.emplace_back(name, std::move(attribute));
  }
  // A map has no order of its own; sorting makes equal functions equal.
  std::sort(function.attrs.begin(), function.attrs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return function;
}

/// Reads each element of a repeated field with `read`.
template <typename T, typename List, typename Fn>
StatusOr<Attribute> ReadList(const List& list, Fn read) {
  std::vector<T> values;
  values.reserve(list.size());
  for (const auto& element : list) {
    StatusOr<T> value = read(element);
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return Attribute(std::move(values));
}

StatusOr<DType> ReadType(int number) {
  const auto dtype = DTypeFromNumber(number);
  if (!dtype) return InvalidArgument("data type ", number, " is not known");
  return *dtype;
}

StatusOr<Attribute> ReadList(const AttrValue::ListValue& list, int64_t* budget, int depth) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) +
                    (list.b_size() > 0) + (list.type_size() > 0) + (list.shape_size() > 0) +
                    (list.tensor_size() > 0) + (list.func_size() > 0);
  if (kinds > 1) return InvalidArgument("a list has elements of ", kinds, " kinds");
  if (list.s_size() > 0)
    return Attribute(std::vector<std::string>(list.s().begin(), list.s().end()));
  if (list.f_size() > 0) return Attribute(std::vector<float>(list.f().begin(), list.f().end()));
  if (list.b_size() > 0) return Attribute(std::vector<bool>(list.b().begin(), list.b().end()));
  if (list.type_size() > 0) return ReadList<DType>(list.type(), ReadType);
  if (list.shape_size() > 0) return ReadList<PartialShape>(list.shape(), PartialShapeFromProto);
  if (list.tensor_size() > 0) {
    return ReadList<Tensor>(list.tensor(),
                            [&](const TensorProto& t) { return TensorFromProto(t, budget); });
  }
  if (list.func_size() > 0) {
    return ReadList<FunctionName>(
        list.func(), [&](const NameAttrList& f) { return ReadFunction(f, budget, depth); });
  }
  return Attribute(std::vector<int64_t>(list.i().begin(), list.i().end()));
}

StatusOr<Attribute> Read(const AttrValue& proto, int64_t* budget, int depth) {
  if (depth > kMaxFunctionDepth)
    return InvalidArgument("functions are nested deeper than ", kMaxFunctionDepth);
  switch (proto.value_case()) {
    case AttrValue::kS:
      return Attribute(proto.s());
    case AttrValue::kI:
      return Attribute(static_cast<int64_t>(proto.i()));
    case AttrValue::kF:
      return Attribute(proto.f());
    case AttrValue::kB:
      return Attribute(proto.b());
    case AttrValue::kType: {
      TENON_ASSIGN_OR_RETURN(const DType type, ReadType(proto.type()));
      return Attribute(type);
    }
    case AttrValue::kShape: {
      TENON_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(proto.shape()));
      return Attribute(std::move(shape));
    }
    case AttrValue::kTensor: {
      TENON_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto.tensor(), budget));
      return Attribute(std::move(tensor));
    }
    case AttrValue::kFunc: {
      TENON_ASSIGN_OR_RETURN(FunctionName function, ReadFunction(proto.func(), budget, depth));
      return Attribute(std::move(function));
    }
    case AttrValue::kList:
      return ReadList(proto.list(), budget, depth);
    case AttrValue::kPlaceholder:
      return InvalidArgument("the placeholder '", proto.placeholder(),
                             "' has a value only inside a function");
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return InvalidArgument("it has no value");
}

}  // namespace

Status AttributeToProto(const Attribute& attribute, AttrValue* out) {
  out->Clear();
  return std::visit(Writer{out}, attribute.value());
}

StatusOr<Attribute> AttributeFromProto(const AttrValue& proto, int64_t* fill_budget) {
  int64_t own_budget = kMaxFillBytes;
  return Read(proto, fill_budget == nullptr ? &own_budget : fill_budget, 0);
}

}  // namespace tenon
