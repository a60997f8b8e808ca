// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_schema.h"

#include <algorithm>

namespace tenon {
namespace {

std::string_view ListElement(std::string_view kind) {
  return kind.substr(5, kind.size() - 6);  // list(x)
}

template <typename T>
int64_t LengthOf(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size());
}
template <typename T>
int64_t LengthOf(const T&) {
  return 0;
}

Status CheckValue(const AttrSchema& schema, const Attribute& value) {
  const auto allowed_type = [&](DType t) {
    return schema.allowed_types.empty() ||
           std::count(schema.allowed_types.begin(), schema.allowed_types.end(), t) > 0;
  };
  const auto type_error = [&](DType t) {
    std::string wanted;
    for (const DType a : schema.allowed_types) {
      StrAppend(&wanted, wanted.empty() ? "" : ", ", ToString(a));
    }
    return InvalidArgument("Value for attr '", schema.name, "' of ", ToString(t),
                           " is not in the list of allowed values: ", wanted);
  };
  const auto check_type = [&](DType t) -> Status {
    if (t == DType::kInvalid) return InvalidArgument("attr '", schema.name, "' is not a dtype");
    // Arguments are declared as references; a type that says so would be one without a variable.
    if (IsRef(t)) {
      return InvalidArgument("attr '", schema.name, "' must not be the reference type ",
                             ToString(t));
    }
    return allowed_type(t) ? OkStatus() : type_error(t);
  };
  if (const DType* t = value.get_if<DType>()) TENON_RETURN_IF_ERROR(check_type(*t));
  if (const auto* list = value.get_if<DTypeVector>()) {
    for (const DType t : *list) TENON_RETURN_IF_ERROR(check_type(t));
  }
  if (const auto* s = value.get_if<std::string>();
      s != nullptr && !schema.allowed_strings.empty()) {
    if (std::count(schema.allowed_strings.begin(), schema.allowed_strings.end(), *s) == 0) {
      return InvalidArgument("Value for attr '", schema.name, "' of \"", *s,
                             "\" is not in the list of allowed values: \"",
                             Join(schema.allowed_strings, "\", \""), "\"");
    }
  }
  if (schema.minimum) {
    int64_t found = *schema.minimum;
    if (const int64_t* i = value.get_if<int64_t>()) found = *i;
    if (schema.kind.starts_with("list(")) {
      found = std::visit([](const auto& v) { return LengthOf(v); }, value.value());
    }
    if (found < *schema.minimum) {
      return InvalidArgument("attr '", schema.name, "' must be at least ", *schema.minimum,
                             schema.kind.starts_with("list(") ? " long" : "", ", found ", found);
    }
  }
  return OkStatus();
}

}  // namespace

bool OpSchema::has_shapes() const {
  const auto declared = [](const ArgSchema& arg) { return arg.shape.has_value(); };
  return std::any_of(inputs.begin(), inputs.end(), declared) ||
         std::any_of(outputs.begin(), outputs.end(), declared);
}

const AttrSchema* OpSchema::FindAttr(std::string_view attr_name) const {
  for (const AttrSchema& a : attrs) {
    if (a.name == attr_name) return &a;
  }
  return nullptr;
}

Status ApplySchema(const OpSchema& schema, AttributeMap* attrs) {
  for (const AttrSchema& attr : schema.attrs) {
    const Attribute* found = attrs->Find(attr.name);
    if (found == nullptr) {
      if (!attr.default_value) {
        return InvalidArgument("attr '", attr.name, "' of op ", schema.name, " is missing");
      }
      attrs->Set(attr.name, *attr.default_value);
      continue;
    }
    if (attr.kind.starts_with("list(") && attr.kind != "list(int)") {
      const auto* list = found->get_if<std::vector<int64_t>>();
      if (list != nullptr && list->empty()) {
        attrs->Set(attr.name, Attribute::ListOf(ListElement(attr.kind), {}));
        found = attrs->Find(attr.name);
      }
    }
    if (found->kind() != attr.kind) {
      return InvalidArgument("attr '", attr.name, "' of op ", schema.name,
                             " has the wrong type: found ", found->kind(), ", wanted ", attr.kind);
    }
    TENON_RETURN_IF_ERROR(CheckValue(attr, *found));
  }
  return OkStatus();
}

StatusOr<int64_t> ArgLength(const ArgSchema& arg, const AttributeMap& attrs) {
  if (!arg.number_attr.empty()) return attrs.Get<int64_t>(arg.number_attr);
  if (!arg.type_list_attr.empty()) {
    TENON_ASSIGN_OR_RETURN(const auto types, attrs.Get<DTypeVector>(arg.type_list_attr));
    return static_cast<int64_t>(types.size());
  }
  return 1;
}

StatusOr<DTypeVector> ArgTypes(const std::vector<ArgSchema>& args, const AttributeMap& attrs) {
  /// Bounds what an N attribute from outside can make us allocate: some bytes each. (Inputs have to
  /// be there; of outputs, which take more, Graph allows fewer.)
  constexpr int64_t kMaxTensors = 1 << 20;
  DTypeVector types;
  types.reserve(args.size());
  for (const ArgSchema& arg : args) {
    if (!arg.type_list_attr.empty()) {
      TENON_ASSIGN_OR_RETURN(const auto list, attrs.Get<DTypeVector>(arg.type_list_attr));
      for (const DType t : list) types.push_back(arg.is_ref ? MakeRef(t) : t);
      continue;
    }
    DType type = arg.type;
    if (!arg.type_attr.empty()) {
      TENON_ASSIGN_OR_RETURN(type, attrs.Get<DType>(arg.type_attr));
    }
    TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(arg, attrs));
    if (length < 0 || length > kMaxTensors) {
      return InvalidArgument("attr '", arg.number_attr, "' is out of range: ", length);
    }
    types.insert(types.end(), length, arg.is_ref ? MakeRef(type) : type);
  }
  return types;
}

}  // namespace tenon
