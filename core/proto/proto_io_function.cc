// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_function.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "core/graph/graph.h"
#include "core/proto/proto_io_attribute.h"
#include "core/proto/proto_io_tensor.h"

namespace tenon {
namespace {

/// With map entries in order, so that equal functions have equal bytes.
std::string SerializedInOrder(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

StatusOr<ArgSchema> ReadArgument(const OpDef::ArgDef& proto) {
  ArgSchema arg;
  arg.name = proto.name();
  arg.type_attr = proto.type_attr();
  arg.number_attr = proto.number_attr();
  arg.type_list_attr = proto.type_list_attr();
  arg.is_ref = proto.is_ref();
  if (!arg.type_attr.empty() || !arg.type_list_attr.empty()) return arg;
  const auto type = DTypeFromNumber(proto.type());
  if (!type || *type == DType::kInvalid) {
    return InvalidArgument("argument '", arg.name, "' has the unknown type ", proto.type());
  }
  arg.type = *type;
  return arg;
}

StatusOr<AttrSchema> ReadAttribute(const OpDef::AttrDef& proto, int64_t* budget) {
  AttrSchema attr;
  attr.name = proto.name();
  attr.kind = proto.type();
  if (proto.has_minimum()) attr.minimum = proto.minimum();
  if (proto.has_default_value()) {
    TENON_ASSIGN_OR_RETURN(attr.default_value, AttributeFromProto(proto.default_value(), budget));
  }
  for (const int number : proto.allowed_values().list().type()) {
    const auto type = DTypeFromNumber(number);
    if (!type) return InvalidArgument("attr '", attr.name, "' allows the unknown type ", number);
    attr.allowed_types.push_back(*type);
  }
  const auto& strings = proto.allowed_values().list().s();
  attr.allowed_strings.assign(strings.begin(), strings.end());
  return attr;
}

StatusOr<OpSchema> ReadSignature(const OpDef& proto, int64_t* budget) {
  OpSchema schema;
  schema.name = proto.name();
  schema.is_stateful = proto.is_stateful();
  for (const OpDef::ArgDef& arg : proto.input_arg()) {
    TENON_ASSIGN_OR_RETURN(schema.inputs.emplace_back(), ReadArgument(arg));
  }
  for (const OpDef::ArgDef& arg : proto.output_arg()) {
    TENON_ASSIGN_OR_RETURN(schema.outputs.emplace_back(), ReadArgument(arg));
  }
  for (const OpDef::AttrDef& attr : proto.attr()) {
    TENON_ASSIGN_OR_RETURN(schema.attrs.emplace_back(), ReadAttribute(attr, budget));
  }
  return schema;
}

StatusOr<FunctionNode> ReadNode(const NodeDef& proto, const OpRegistry& registry, int64_t* budget) {
  FunctionNode node{proto.name(), proto.op(), proto.device(), {}, {}, {}};
  if (!IsLegalNodeName(node.name)) return IllegalNodeName(node.name, "node");
  const OpRegistration* const op = registry.Find(node.op);
  if (op != nullptr && op->schema.is_runtime_only()) {
    return InvalidArgument("node '", node.name, "' (", node.op,
                           "): the op is for the runtime's own use");
  }
  node.inputs.assign(proto.input().begin(), proto.input().end());
  for (const auto& [name, value] : proto.attr()) {
    if (value.value_case() == AttrValue::kPlaceholder) {
      node.parameters.emplace_back(name, value.placeholder());
    } else if (value.value_case() != AttrValue::VALUE_NOT_SET) {
      auto attribute = AttributeFromProto(value, budget);
      if (!attribute.ok()) {
        return Annotate(attribute.status(), StrCat("node '", node.name, "': attr '", name, "'"));
      }
      node.attrs.Set(name, *std::move(attribute));
    }
  }
  return node;
}

StatusOr<FunctionDefinition> ReadFunction(const FunctionDef& proto, const OpRegistry& registry,
                                          int64_t* budget) {
  FunctionDefinition function;
  TENON_ASSIGN_OR_RETURN(function.signature.schema, ReadSignature(proto.signature(), budget));
  function.signature.shape = UnknownShape;
  for (const NodeDef& node : proto.node_def()) {
    TENON_ASSIGN_OR_RETURN(function.nodes.emplace_back(), ReadNode(node, registry, budget));
  }
  for (const auto& [name, value] : proto.ret()) function.results.emplace(name, value);
  for (const auto& [name, node] : proto.control_ret()) function.control_results.push_back(node);
  const auto noinline_attr = proto.attr().find("_noinline");
  function.stays_apart = noinline_attr != proto.attr().end() && noinline_attr->second.b();
  function.proto = SerializedInOrder(proto);
  return function;
}

}  // namespace

Status AddFunctionsFromProto(const FunctionDefLibrary& proto, const OpRegistry& registry,
                             FunctionLibrary* library) {
  FunctionLibrary extended = *library;
  StringMap<std::string> gradients;
  for (const GradientDef& gradient : proto.gradient()) {
    gradients.emplace(gradient.function_name(), gradient.gradient_func());
  }
  int64_t budget = kMaxFillBytes;
  for (const FunctionDef& def : proto.function()) {
    const std::string& name = def.signature().name();
    if (name.empty()) return InvalidArgument("a function of the library has no name");
    if (registry.Find(name) != nullptr) {
      return InvalidArgument("Cannot add function '", name,
                             "' because an op with the same name already exists.");
    }
    auto function = ReadFunction(def, registry, &budget);
    if (!function.ok()) return Annotate(function.status(), StrCat("function '", name, "'"));
    if (const auto found = gradients.find(name); found != gradients.end()) {
      function->gradient = found->second;
    }
    TENON_RETURN_IF_ERROR(
        extended.Add(std::make_shared<const FunctionDefinition>(*std::move(function))));
  }
  for (const auto& [function, gradient] : gradients) {
    for (const std::string& name : {function, gradient}) {
      if (extended.Find(name) != nullptr) continue;
      return InvalidArgument("the gradient of '", function, "' is '", gradient,
                             "', but the library has no function '", name, "'");
    }
  }
  *library = std::move(extended);
  return OkStatus();
}

Status FunctionsToProto(const FunctionLibrary& library, FunctionDefLibrary* out) {
  out->Clear();
  for (const FunctionDefinition* function : library.All()) {
    if (!out->add_function()->ParseFromString(function->proto)) {
      return Internal("cannot read function '", function->name(), "' back");
    }
    if (function->gradient.empty()) continue;
    GradientDef* gradient = out->add_gradient();
    gradient->set_function_name(function->name());
    gradient->set_gradient_func(function->gradient);
  }
  return OkStatus();
}

}  // namespace tenon
