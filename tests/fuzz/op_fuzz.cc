// SPDX-License-Identifier: Apache-2.0
//
// One node of a random op with random inputs and attributes, corner values first, and now and then
// its gradient, run in a session: it gives what was declared, or an error, soon and within its
// memory. The first four bytes choose the op by a hash of its name, so that kept inputs mean the
// same when ops are added; all further bytes 0 give its first example.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "core/gradient/gradients.h"
#include "core/memory/memory_limit.h"
#include "ops/register.h"
#include "ops/summary/tensor_text.h"
#include "runtime/session/local_session.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/fuzz_tensors.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

/// So little that no pass over it takes seconds under the sanitizers.
constexpr int64_t kOpMemory = int64_t{64} << 20;
constexpr std::chrono::seconds kOpTimeout{1};
constexpr size_t kMaxInputs = 32;
constexpr size_t kMaxOutputs = 4096;
constexpr int kMaxFetches = 8;

/// FNV-1a.
uint32_t NameHash(std::string_view name) {
  uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 16777619u;
  return h;
}

/// The ops by hash of their names: without those that write files or to the terminal, or wait for
/// another device.
const std::map<uint32_t, const OpRegistration*>& FuzzedOps() {
  static const std::map<uint32_t, const OpRegistration*> ops = [] {
    std::map<uint32_t, const OpRegistration*> found;
    for (const OpRegistration* op : AllOps().All()) {
      const std::string& name = op->schema.name;
      bool outside = name[0] == '_';
      for (const char* part : {"File", "Save", "Restore", "Checkpoint", "Print"}) {
        outside |= name.find(part) != std::string::npos;
      }
      if (!outside) found[NameHash(name)] = op;
    }
    return found;
  }();
  return ops;
}

Attribute OddAttribute(FuzzBytes& bytes, const OpRegistration& op, const AttrSchema& schema) {
  const auto dtype = [&] {
    DTypeVector types;
    for (const KernelRegistration& kernel : op.kernels) {
      for (const auto& [attr, done] : kernel.options.types) {
        if (attr == schema.name) types.insert(types.end(), done.begin(), done.end());
      }
    }
    if (types.empty()) types = schema.allowed_types;
    return types.empty() || bytes.Chance(5) ? AnyDType(bytes) : bytes.OneOf(types);
  };
  const auto integer = [&] {
    return bytes.Chance(60) ? schema.minimum.value_or(0) + bytes.Below(4) : OddInteger(bytes);
  };
  const auto text = [&] {
    return schema.allowed_strings.empty() ? bytes.Text(8) : bytes.OneOf(schema.allowed_strings);
  };
  const int length = static_cast<int>(schema.minimum.value_or(0)) + bytes.Below(3);
  const auto list = [&](auto element) {
    std::vector<decltype(element())> values;
    for (int i = 0; i < std::min(length, 100); ++i) values.push_back(element());
    return Attribute(std::move(values));
  };
  const std::string& kind = schema.kind;
  if (kind == "type") return dtype();
  if (kind == "int") return integer();
  if (kind == "string") return text();
  if (kind == "bool") return bytes.Below(2) == 1;
  if (kind == "float") return static_cast<float>(bytes.Raw<int16_t>()) / 256;
  if (kind == "shape") return OddPartialShape(bytes);
  if (kind == "tensor") return OddTensor(bytes, AnyDType(bytes), OddShape(bytes));
  if (kind == "list(type)") return list(dtype);
  if (kind == "list(int)") return list(integer);
  if (kind == "list(string)") return list(text);
  if (kind == "list(shape)") return list([&] { return OddPartialShape(bytes); });
  return schema.default_value.value_or(Attribute(int64_t{0}));
}

/// A case under construction: a node, what it needs, and how it is run.
struct OpCase {
  Graph graph{AllOps()};
  Node* node = nullptr;
  std::vector<std::string> init;
  Session::Feeds feeds;
  std::vector<std::pair<Output, Shape>> sources;  // inputs that are plain values
};

/// The attributes and inputs of a use of the op: one of its examples, spoilt here and there, or
/// any.
Status ChooseNode(FuzzBytes& bytes, const OpRegistration& op, AttributeMap* attrs,
                  std::vector<Tensor>* inputs) {
  const bool from_example = !op.examples.empty() && !bytes.Chance(40);
  if (from_example) {
    const OpExample& example = bytes.OneOf(op.examples);
    static auto* const known = new std::map<const OpExample*, std::vector<AttributeMap>>;
    auto [choices, added] = known->try_emplace(&example);
    if (added) choices->second = TypeChoices(op, example);
    *attrs = bytes.OneOf(choices->second);
    *inputs = SampleInputs(op, example, *attrs, bytes.Raw<uint8_t>());
    InferAttributes(op.schema, *inputs, attrs);
  }
  for (const AttrSchema& attr : op.schema.attrs) {
    const bool missing = attrs->Find(attr.name) == nullptr;
    const bool needed = missing && !attr.default_value;
    if (needed || (missing ? bytes.Chance(30) : bytes.Chance(4))) {
      attrs->Set(attr.name, OddAttribute(bytes, op, attr));
    }
  }
  TENON_RETURN_IF_ERROR(ApplySchema(op.schema, attrs));
  TENON_ASSIGN_OR_RETURN(const DTypeVector types, ArgTypes(op.schema.inputs, *attrs));
  TENON_ASSIGN_OR_RETURN(const DTypeVector outputs, ArgTypes(op.schema.outputs, *attrs));
  // Planning tens of thousands of them is slow under the sanitizers, and not what this looks for.
  if (types.size() > kMaxInputs || outputs.size() > kMaxOutputs) {
    return InvalidArgument("too many inputs or outputs");
  }
  inputs->resize(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    Tensor& input = (*inputs)[i];
    const DType dtype = BaseType(types[i]);
    if (!input.valid() || input.dtype() != dtype || bytes.Chance(15)) {
      const bool alike = i > 0 && bytes.Chance(50);
      const Shape shape =
          alike ? (*inputs)[bytes.Below(static_cast<int>(i))].shape() : OddShape(bytes);
      input = OddTensor(bytes, dtype, shape);
    } else if (bytes.Chance(15)) {
      Spoil(bytes, &input);
    }
  }
  return OkStatus();
}

StatusOr<Endpoint> AddVariable(OpCase* c, const std::string& name, bool is_ref,
                               const Tensor& value) {
  const AttributeMap attrs = {{"dtype", value.dtype()}, {"shape", PartialShape()}};
  TENON_ASSIGN_OR_RETURN(Node * variable,
                         c->graph.AddNode(name, is_ref ? "VariableV2" : "VarHandleOp", attrs, {}));
  TENON_ASSIGN_OR_RETURN(Node * first,
                         c->graph.AddNode(StrCat(name, "_value"), "Const",
                                          {{"dtype", value.dtype()}, {"value", value}}, {}));
  const AttributeMap types = {{is_ref ? "T" : "dtype", value.dtype()}};
  TENON_ASSIGN_OR_RETURN(
      Node * assign, c->graph.AddNode(StrCat(name, "_init"), is_ref ? "Assign" : "AssignVariableOp",
                                      types, {{variable, 0}, {first, 0}}));
  c->init.push_back(assign->name());
  return Endpoint{variable, 0};
}

/// The handle that ops of that name work on.
StatusOr<Endpoint> AddHandle(FuzzBytes& bytes, OpCase* c, const std::string& name,
                             std::string_view op, const AttributeMap& attrs) {
  const DType dtype = attrs.GetOr("dtype", attrs.GetOr("T", AnyDType(bytes)));
  const bool stack = op.starts_with("Stack");
  if (!stack && !op.starts_with("TensorArray")) {
    const Shape shape = OddShape(bytes);
    return AddVariable(c, name, false, OddTensor(bytes, dtype, shape));
  }
  const auto size = static_cast<int32_t>(bytes.Chance(80) ? bytes.Below(4) : OddInteger(bytes));
  TENON_ASSIGN_OR_RETURN(
      Node * length,
      c->graph.AddNode(StrCat(name, "_size"), "Const",
                       {{"dtype", DType::kInt32}, {"value", Tensor::Scalar(size)}}, {}));
  AttributeMap array = {{stack ? "elem_type" : "dtype", dtype}};
  if (!stack) {
    array.Set("element_shape", OddPartialShape(bytes));
    array.Set("dynamic_size", bytes.Chance(50));
  }
  TENON_ASSIGN_OR_RETURN(Node * made, c->graph.AddNode(name, stack ? "StackV2" : "TensorArrayV3",
                                                       array, {{length, 0}}));
  return Endpoint{made, 0};
}

/// For whoever looks at an input that found something.
void Describe(const OpRegistration& op, const AttributeMap& attrs,
              const std::vector<Tensor>& inputs, bool hidden) {
  std::fprintf(stderr, "%s%s\n", op.schema.name.c_str(), hidden ? ", inputs fed" : "");
  for (const auto& [name, value] : attrs) {
    std::fprintf(stderr, "  %s = %s\n", name.c_str(), value.ToString().c_str());
  }
  for (const Tensor& t : inputs) {
    std::fprintf(stderr, "  %s%s %s\n", ToString(t.dtype()).c_str(), t.shape().ToString().c_str(),
                 SummarizeTensor(t, 40).c_str());
  }
}

Status BuildCase(FuzzBytes& bytes, const OpRegistration& op, OpCase* c) {
  AttributeMap attrs;
  std::vector<Tensor> inputs;
  TENON_RETURN_IF_ERROR(ChooseNode(bytes, op, &attrs, &inputs));
  TENON_ASSIGN_OR_RETURN(const DTypeVector types, ArgTypes(op.schema.inputs, attrs));
  const bool hide = bytes.Chance(30);
  std::vector<Endpoint> endpoints;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = StrCat("in", i);
    const Tensor& value = inputs[i];
    Endpoint end;
    if (IsRef(types[i])) {
      TENON_ASSIGN_OR_RETURN(end, AddVariable(c, name, true, value));
    } else if (value.dtype() == DType::kResource) {
      TENON_ASSIGN_OR_RETURN(end, AddHandle(bytes, c, name, op.schema.name, attrs));
    } else if (hide || value.dtype() == DType::kVariant) {
      const PartialShape shape = bytes.Chance(50) ? PartialShape(value.shape()) : PartialShape();
      TENON_ASSIGN_OR_RETURN(
          end.node,
          c->graph.AddNode(name, "Placeholder", {{"dtype", value.dtype()}, {"shape", shape}}, {}));
      c->feeds.emplace_back(name, value);
      c->sources.emplace_back(end, value.shape());
    } else {
      TENON_ASSIGN_OR_RETURN(
          end.node,
          c->graph.AddNode(name, "Const", {{"dtype", value.dtype()}, {"value", value}}, {}));
      c->sources.emplace_back(end, value.shape());
    }
    endpoints.push_back(end);
  }
  if (std::getenv("TENON_FUZZ_VERBOSE") != nullptr) Describe(op, attrs, inputs, hide);
  TENON_ASSIGN_OR_RETURN(c->node, c->graph.AddNode("op", op.schema.name, attrs, endpoints));
  return OkStatus();
}

/// A broken invariant of our own would be an Internal error.
void CheckCode(const Status& status) {
  TENON_CHECK(status.code() != StatusCode::kInternal, status.ToString());
}

void CheckValues(const std::vector<Output>& fetches, const std::vector<Tensor>& values) {
  TENON_CHECK(values.size() == fetches.size());
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Tensor& value = values[i];
    TENON_CHECK(value.valid() && value.dtype() == fetches[i].dtype(), fetches[i].name());
    TENON_CHECK(fetches[i].shape().IsCompatibleWith(value.shape()), fetches[i].name(), " is ",
                value.shape().ToString(), ", declared ", fetches[i].shape().ToString());
    // Every byte must be there and written.
    if (IsPlain(value.dtype()) && value.num_elements() > 0) {
      const auto* data = static_cast<const volatile char*>(value.raw_data());
      (void)data[0];
      (void)data[value.num_bytes() - 1];
    }
  }
}

/// Adds the gradients by the inputs that have one, which must have their shapes. (Those of a
/// TensorArray's flow are scalars, as it should be.)
void AddGradientsOf(OpCase* c, std::vector<Output>* grads, std::vector<Shape>* shapes) {
  if (c->node->op().find("TensorArray") != std::string::npos) return;
  std::vector<Output> xs, ys, found;
  for (int i = 0; i < c->node->num_outputs(); ++i) {
    const Output y(c->node, i);
    if (IsFloating(y.dtype()) && !IsRef(c->node->output_type(i))) ys.push_back(y);
  }
  std::vector<Shape> all;
  for (const auto& [x, shape] : c->sources) {
    if (!IsFloating(x.dtype()) && !IsComplex(x.dtype())) continue;
    xs.push_back(x);
    all.push_back(shape);
  }
  if (ys.empty() || xs.empty()) return;
  Graph before = c->graph.Clone();
  {
    GraphBuilding building(c->graph);
    found = Gradients(ys, xs, {.allow_unconnected = true});
  }
  CheckCode(c->graph.error());
  if (!c->graph.error().ok()) {  // the op itself can still run
    c->node = before.node(c->node->id());
    c->graph = std::move(before);
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].exists()) continue;
    grads->push_back(found[i]);
    shapes->push_back(all[i]);
  }
}

std::vector<std::string> NamesOf(const std::vector<Output>& outputs) {
  std::vector<std::string> names;
  for (const Output& o : outputs) names.push_back(o.name());
  return names;
}

void FuzzOp(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kOpMemory);
  FuzzBytes bytes(data);
  const auto& ops = FuzzedOps();
  auto chosen = ops.lower_bound(bytes.Raw<uint32_t>());
  if (chosen == ops.end()) chosen = ops.begin();
  LocalSessionOptions options;
  options.threads = 1;
  options.passes.enabled = !bytes.Chance(50);
  const bool with_gradient = bytes.Chance(25);
  OpCase c;
  const Status built = BuildCase(bytes, *chosen->second, &c);
  CheckCode(built);
  if (!built.ok()) return;
  std::vector<Output> fetches, grads;
  std::vector<Shape> shapes;
  if (with_gradient) AddGradientsOf(&c, &grads, &shapes);
  for (int i = 0; i < std::min(c.node->num_outputs(), kMaxFetches); ++i) {
    fetches.push_back(Output(c.node, i));
  }
  const auto session = MakeLocalSession(c.graph, options);
  CheckCode(session.status());
  if (!session.ok()) return;
  StepOptions step;
  step.timeout = kOpTimeout;
  if (!c.init.empty()) {
    const auto ready = (*session)->Run({}, {}, c.init, step);
    CheckCode(ready.status());
  }
  const auto values = (*session)->Run(c.feeds, NamesOf(fetches), {"op"}, step);
  CheckCode(values.status());
  if (!values.ok()) return;
  CheckValues(fetches, *values);
  if (grads.empty()) return;
  const auto slopes = (*session)->Run(c.feeds, NamesOf(grads), {}, step);
  CheckCode(slopes.status());
  if (!slopes.ok()) return;
  CheckValues(grads, *slopes);
  for (size_t i = 0; i < grads.size(); ++i) {
    TENON_CHECK((*slopes)[i].shape() == shapes[i], "the gradient is ",
                (*slopes)[i].shape().ToString(), ", the value ", shapes[i].ToString());
  }
}

/// Every op's first example, alone, with its gradient, and with all choices left to the fuzzer.
std::vector<std::string> OpSeeds() {
  std::vector<std::string> seeds;
  for (const auto& [hash, op] : FuzzedOps()) {
    std::string name(4, '\0');
    std::memcpy(name.data(), &hash, 4);
    const std::string head = name + '\0';
    seeds.push_back(head + std::string(24, '\0'));
    if (op->gradient) seeds.push_back(head + '\x63' + std::string(24, '\0'));
    seeds.push_back(head + std::string({'\0', '\x63'}) + std::string(40, '\0'));
  }
  return seeds;
}

const bool op_registered =
    RegisterFuzzTarget({.name = "op", .run = FuzzOp, .mutate = nullptr, .seeds = OpSeeds});

}  // namespace
}  // namespace tenon::testing
