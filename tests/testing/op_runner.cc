// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/op_runner.h"
#include "tests/testing/run_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>

#include "core/base/exceptions.h"
#include "core/graph/graph.h"
#include "ops/register.h"
#include "runtime/device/cpu_device.h"

namespace tenon::testing {
namespace {

/// The attributes of the source nodes that stand for the inputs.
StatusOr<Node*> AddSource(Graph& graph, const std::string& name, const Tensor& value, bool hidden) {
  if (hidden) {
    return graph.AddNode(name, "Placeholder", {{"dtype", value.dtype()}, {"shape", PartialShape()}},
                         {});
  }
  return graph.AddNode(name, "Const", {{"dtype", value.dtype()}, {"value", value}}, {});
}

Status Run(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs, bool hidden,
           OpResult* result) {
  TENON_ASSIGN_OR_RETURN(const OpRegistration* registration, AllOps().Lookup(op));
  InferAttributes(registration->schema, inputs, &attrs);
  Graph graph(AllOps());
  std::vector<Endpoint> sources;
  for (const Tensor& t : inputs) {
    TENON_ASSIGN_OR_RETURN(Node * source,
                           AddSource(graph, StrCat("in", sources.size()), t, hidden));
    sources.push_back({source, 0});
  }
  TENON_ASSIGN_OR_RETURN(Node * node, graph.AddNode("op", op, attrs, sources));
  for (int i = 0; i < node->num_outputs(); ++i) {
    result->declared_shapes.push_back(node->output_shape(i));
    result->declared_types.push_back(node->output_type(i));
  }
  KernelConstruction construction("op", std::string(op), node->attrs(), node->input_types(),
                                  node->output_types(), TestDevice());
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel,
                         registration->MakeKernel(construction));
  ResourceStore resources;
  Cancellation cancellation;
  const ProgramRun run{.cancellation = &cancellation, .resources = &resources};
  const DeviceRun on_device{run, TestDevice(), 1};
  std::vector<Value> in(inputs.size()), out(node->num_outputs());
  for (size_t i = 0; i < inputs.size(); ++i) in[i].tensor = inputs[i];
  KernelContext ctx(on_device, node->output_types(), in.data(), static_cast<int>(in.size()),
                    out.data());
  TENON_RETURN_IF_ERROR(RunKernel(*kernel, ctx));
  for (Value& v : out) {
    result->outputs.push_back(v.ref != nullptr ? v.ref->Read() : std::move(v.tensor));
  }
  return OkStatus();
}

/// The dtypes that some CPU kernel of the op does for a type attribute; empty: any.
DTypeVector KernelTypes(const OpRegistration& op, const std::string& attr) {
  DTypeVector types;
  for (const KernelRegistration& k : op.kernels) {
    if (k.device != kCpu) continue;
    const auto found = std::find_if(k.options.types.begin(), k.options.types.end(),
                                    [&](const auto& entry) { return entry.first == attr; });
    if (found == k.options.types.end()) return {};
    for (const DType t : found->second) {
      if (std::count(types.begin(), types.end(), t) == 0) types.push_back(t);
    }
  }
  return types;
}

/// The dtypes worth trying for a type attribute.
DTypeVector Candidates(const OpRegistration& op, const AttrSchema& attr) {
  static const DTypeVector samples = {DType::kFloat, DType::kInt64, DType::kString, DType::kBool};
  DTypeVector types = KernelTypes(op, attr.name);
  if (types.empty()) types = attr.allowed_types.empty() ? samples : attr.allowed_types;
  std::erase_if(types, [&](DType t) {
    const bool allowed = attr.allowed_types.empty() ||
                         std::count(attr.allowed_types.begin(), attr.allowed_types.end(), t) != 0;
    const bool known =
        IsFloating(t) || IsInteger(t) || IsComplex(t) || t == DType::kBool || t == DType::kString;
    return !allowed || !known;
  });
  return types;
}

/// For each input of the example, the type attribute that it takes its dtype from, if any.
std::vector<const ArgSchema*> ArgOfInput(const OpSchema& schema, size_t num_inputs) {
  std::vector<const ArgSchema*> args;
  size_t singles = 0;
  for (const ArgSchema& a : schema.inputs) {
    singles += a.number_attr.empty() && a.type_list_attr.empty();
  }
  for (const ArgSchema& a : schema.inputs) {
    const bool is_list = !a.number_attr.empty() || !a.type_list_attr.empty();
    const size_t lists = schema.inputs.size() - singles;
    const size_t length = is_list ? (num_inputs - std::min(singles, num_inputs)) / lists : 1;
    args.insert(args.end(), length, &a);
  }
  args.resize(num_inputs, nullptr);
  return args;
}

}  // namespace

Device& TestDevice() {
  static CpuDevice device("/job:localhost/replica:0/task:0/device:CPU:0",
                          std::make_shared<ResourceStore>());
  return device;
}

OpResult RunOp(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs,
               bool hide_inputs) {
  OpResult result;
  result.status = Run(op, inputs, std::move(attrs), hide_inputs, &result);
  return result;
}

Tensor RunOpOrDie(std::string_view op, const std::vector<Tensor>& inputs, AttributeMap attrs) {
  OpResult result = RunOp(op, inputs, std::move(attrs));
  EXPECT_TRUE(result.status.ok()) << op << ": " << result.status;
  if (!result.status.ok() || result.outputs.empty()) return Tensor();
  return result.outputs[0];
}

void InferAttributes(const OpSchema& schema, const std::vector<Tensor>& inputs,
                     AttributeMap* attrs) {
  const auto args = ArgOfInput(schema, inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (args[i] == nullptr) continue;
    const ArgSchema& arg = *args[i];
    if (!arg.number_attr.empty() && attrs->Find(arg.number_attr) == nullptr) {
      attrs->Set(arg.number_attr, static_cast<int64_t>(std::count(args.begin(), args.end(), &arg)));
    }
    if (!arg.type_attr.empty() && attrs->Find(arg.type_attr) == nullptr) {
      attrs->Set(arg.type_attr, inputs[i].dtype());
    }
    if (!arg.type_list_attr.empty() && attrs->Find(arg.type_list_attr) == nullptr) {
      DTypeVector types;
      for (size_t j = 0; j < inputs.size(); ++j) {
        if (args[j] == &arg) types.push_back(inputs[j].dtype());
      }
      attrs->Set(arg.type_list_attr, std::move(types));
    }
  }
}

std::vector<AttributeMap> TypeChoices(const OpRegistration& op, const OpExample& example) {
  AttributeMap fixed = example.attrs;
  const auto args = ArgOfInput(op.schema, example.inputs.size());
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    const Tensor* value = std::get_if<Tensor>(&example.inputs[i]);
    if (value == nullptr || args[i] == nullptr || args[i]->type_attr.empty()) continue;
    fixed.Set(args[i]->type_attr, value->dtype());
  }
  std::vector<const AttrSchema*> open;
  for (const AttrSchema& a : op.schema.attrs) {
    if (a.kind == "type" && fixed.Find(a.name) == nullptr) open.push_back(&a);
  }
  AttributeMap first = fixed;
  for (const AttrSchema* a : open) {
    const DTypeVector types = Candidates(op, *a);
    if (!types.empty()) first.Set(a->name, types[0]);
  }
  std::vector<AttributeMap> choices = {first};
  for (const AttrSchema* a : open) {
    const DTypeVector types = Candidates(op, *a);
    for (size_t i = 1; i < types.size(); ++i) {
      AttributeMap choice = first;
      choice.Set(a->name, types[i]);
      if (op.FindKernel(kCpu, choice) != nullptr) choices.push_back(std::move(choice));
    }
  }
  return choices;
}

std::vector<Tensor> SampleInputs(const OpRegistration& op, const OpExample& example,
                                 const AttributeMap& attrs, uint64_t seed) {
  const auto args = ArgOfInput(op.schema, example.inputs.size());
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    if (const Tensor* value = std::get_if<Tensor>(&example.inputs[i])) {
      inputs.push_back(value->Copy().value());
      continue;
    }
    DType dtype = DType::kFloat;
    if (args[i] != nullptr && args[i]->type != DType::kInvalid) {
      dtype = args[i]->type;
    } else if (args[i] != nullptr && !args[i]->type_attr.empty()) {
      dtype = attrs.GetOr<DType>(args[i]->type_attr, dtype);
    }
    inputs.push_back(Sample(dtype, std::get<Shape>(example.inputs[i]), op.domain.low,
                            op.domain.high, seed + 1000 * i));
  }
  return inputs;
}

Tensor Sample(DType dtype, const Shape& shape, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  Tensor t(dtype, shape);
  const int64_t n = t.num_elements();
  if (dtype == DType::kString) {
    for (int64_t i = 0; i < n; ++i) t.data<TString>()[i] = std::string(1, 'a' + random() % 3);
  }
  Dispatch(dtype, PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) {
      const double x = uniform(random);
      if constexpr (std::is_same_v<T, bool>) {
        t.data<T>()[i] = random() % 2 == 0;
      } else if constexpr (std::is_integral_v<T>) {
        const double whole = std::is_signed_v<T> ? std::rint(x) : std::rint(std::fabs(x));
        t.data<T>()[i] = static_cast<T>(std::clamp(whole, std::ceil(low), std::floor(high)));
      } else if constexpr (requires { t.data<T>()->real(); }) {
        t.data<T>()[i] = T(x, uniform(random));
      } else {
        t.data<T>()[i] = T(x);
      }
    }
  });
  return t;
}

}  // namespace tenon::testing
