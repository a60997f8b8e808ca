// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_function.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "core/base/hash_map.h"
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

/// Whether attributes have values of this kind, or lists of them.
bool IsAttributeKind(std::string_view kind) {
  if (kind.starts_with("list(") && kind.ends_with(")")) kind = kind.substr(5, kind.size() - 6);
  constexpr std::string_view kKinds[] = {"string", "int",   "float",  "bool",
                                         "type",   "shape", "tensor", "func"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

StatusOr<AttrSchema> ReadAttribute(const OpDef::AttrDef& proto, int64_t* budget) {
  AttrSchema attr;
  attr.name = proto.name();
  attr.kind = proto.type();
  if (!IsAttributeKind(attr.kind)) {
    return InvalidArgument("attr '", attr.name, "' has the unknown type '", attr.kind, "'");
  }
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
      if (const DType* type = attribute->get_if<DType>(); type != nullptr && IsRef(*type)) {
        return InvalidArgument("node '", node.name, "': attr '", name,
                               "' must not be the reference type ", ToString(*type));
      }
      node.attrs.Set(name, *std::move(attribute));
    }
  }
  return node;
}

/// The node that an input of a function's body names: "node:output:0", "^node" or an argument.
std::string_view NodeOfInput(std::string_view input) {
  if (input.starts_with('^')) return input.substr(1);
  return input.substr(0, input.find(':'));
}

/// InvalidArgument where nodes of a body need each other, other than through a NextIteration:
/// whoever walks from a node to its inputs comes to an end.
Status CheckNoCycle(const FunctionDefinition& function, const OpRegistry& registry) {
  const std::vector<FunctionNode>& nodes = function.nodes;
  flat_hash_set<std::string_view> arguments;
  for (const ArgSchema& argument : function.signature.schema.inputs)
    arguments.insert(argument.name);
  flat_hash_map<std::string_view, size_t> places;
  for (size_t i = 0; i < nodes.size(); ++i) places.emplace(nodes[i].name, i);
  std::vector<std::vector<size_t>> consumers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0), ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& input : nodes[i].inputs) {
      const std::string_view name = NodeOfInput(input);
      const auto found = places.find(name);
      // Names that are nowhere are told later.
      if (found == places.end() || (input[0] != '^' && arguments.contains(name))) continue;
      const OpRegistration* const op = registry.Find(nodes[found->second].op);
      if (op != nullptr && op->schema.flow == FlowKind::kNextIteration) continue;
      consumers[found->second].push_back(i);
      ++missing[i];
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push_back(i);
  }
  for (size_t done = 0; done < ready.size(); ++done) {
    for (const size_t consumer : consumers[ready[done]]) {
      if (--missing[consumer] == 0) ready.push_back(consumer);
    }
  }
  if (ready.size() == nodes.size()) return OkStatus();
  const size_t first =
      std::find_if(missing.begin(), missing.end(), [](size_t n) { return n > 0; }) -
      missing.begin();
  return InvalidArgument("the body has a cycle that does not go through NextIteration; node '",
                         nodes[first].name, "' is on it or behind it");
}

StatusOr<FunctionDefinition> ReadFunction(const FunctionDef& proto, const OpRegistry& registry,
                                          int64_t* budget) {
  FunctionDefinition function;
  TENON_ASSIGN_OR_RETURN(function.signature.schema, ReadSignature(proto.signature(), budget));
  function.signature.shape = UnknownShape;
  for (const NodeDef& node : proto.node_def()) {
    TENON_ASSIGN_OR_RETURN(function.nodes.emplace_back(), ReadNode(node, registry, budget));
  }
  TENON_RETURN_IF_ERROR(CheckNoCycle(function, registry));
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
