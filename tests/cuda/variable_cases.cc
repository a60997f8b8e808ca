// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/variable_cases.h"

#include <algorithm>

#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/cuda/device_kind.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/cuda/gpu_test.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/optimizer_step.h"

namespace tenon::testing {
namespace {

constexpr std::string_view kPrefixes[] = {"ResourceSparseApply", "SparseApply", "ResourceApply",
                                          "Apply"};

/// The formula of an optimizer's op, whose values its variables start from; null: it is none.
const Optimizer* OptimizerOf(std::string_view op) {
  for (const std::string_view prefix : kPrefixes) {
    if (!op.starts_with(prefix)) continue;
    for (const Optimizer& o : Optimizers()) {
      if (o.name == op.substr(prefix.size())) return &o;
    }
  }
  return nullptr;
}

bool IsVariable(const ArgSchema& arg) { return arg.is_ref || arg.type == DType::kResource; }

/// Whether all inputs after the variable are of these names.
bool OthersAre(const OpSchema& schema, const std::set<std::string_view>& names) {
  if (schema.inputs.size() < 2 || !IsVariable(schema.inputs[0])) return false;
  return std::all_of(schema.inputs.begin() + 1, schema.inputs.end(),
                     [&](const ArgSchema& arg) { return names.contains(arg.name); });
}

bool ChangesRows(const OpSchema& schema) {
  return (schema.name.starts_with("Scatter") || schema.name.starts_with("ResourceScatter")) &&
         OthersAre(schema, {"indices", "updates"});
}
bool Assigns(const OpSchema& schema) {
  return schema.name.starts_with("Assign") && OthersAre(schema, {"value"});
}
bool Gathers(const OpSchema& schema) {
  return schema.name.starts_with("ResourceGather") && OthersAre(schema, {"indices"});
}

/// The attribute that is the dtype of the variable.
std::string TypeAttr(const OpSchema& schema) {
  for (const ArgSchema& arg : schema.inputs) {
    if (!IsVariable(arg) && arg.name != "indices" && !arg.type_attr.empty()) return arg.type_attr;
  }
  return schema.FindAttr("T") != nullptr ? "T" : "dtype";
}

/// Numbers of the dtype that no update takes far: 1, 2, 3, 1, ...
Tensor SmallNumbers(DType dtype, const Shape& shape, int first) {
  Tensor t(dtype, shape);
  Dispatch(dtype, PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<T>()[i] = static_cast<T>(static_cast<float>((i + first) % 3 + 1));
    }
  });
  return t;
}

/// A graph with one such op: what sets the variables, the op, and what to look at afterwards.
struct VariableGraph {
  Graph graph{AllOps()};
  GraphBuilding building{graph};
  std::vector<Output> inits, reads;
  Node* op = nullptr;
  int times = 1;

  /// A variable of the kind that the argument wants, which starts as `value`.
  Output AddVariable(const ArgSchema& arg, const Tensor& value) {
    const PartialShape shape(value.shape());
    const std::string name = StrCat("v", reads.size());
    if (arg.is_ref) {
      const Output v = VariableV2(shape, value.dtype(), {.name = name});
      inits.push_back(Assign(v, Const(value)));
      reads.push_back(Identity(v));
      return v;
    }
    const Output v = VarHandleOp(value.dtype(), shape, {.name = name});
    inits.push_back(Output(AssignVariableOp(v, Const(value)), 0));
    reads.push_back(ReadVariableOp(v, value.dtype()));
    return v;
  }

  StatusOr<std::vector<Tensor>> Run(bool on_gpu) {
    TENON_RETURN_IF_ERROR(graph.error());
    for (Node* node : graph.nodes()) node->set_requested_device(on_gpu ? kGpuName : kCpuName);
    TENON_ASSIGN_OR_RETURN(const auto session, on_gpu ? GpuSession(graph) : CpuSession(graph));
    std::vector<const Node*> targets;
    std::vector<std::string> initial, looked_at;
    for (const Output& o : inits) initial.push_back(o.node->name());
    for (const Output& o : reads) looked_at.push_back(o.name());
    TENON_RETURN_IF_ERROR(session->Run({}, {}, initial).status());
    // What it gives may be a reference, which shows what the variable is when it is fetched.
    std::vector<std::string> fetches;
    for (int i = 0; i < op->num_outputs(); ++i) fetches.push_back(StrCat(op->name(), ":", i));
    std::vector<Tensor> all;
    for (int i = 0; i < times; ++i) {
      TENON_ASSIGN_OR_RETURN(all, session->Run({}, fetches, {op->name()}));
    }
    TENON_ASSIGN_OR_RETURN(const auto values, session->Run({}, looked_at));
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }
};

/// Two steps of an optimizer.
void BuildStep(const OpRegistration& op, const Optimizer& optimizer, DType dtype,
               const Shape& shape, bool flag, VariableGraph* g) {
  const std::string prefix =
      op.schema.name.substr(0, op.schema.name.size() - optimizer.name.size());
  OptimizerStep step(optimizer, prefix, shape);
  if (step.is_sparse()) step.SetRows({3, 0, 3, 2});  // one twice, one not at all
  const auto input = [&](const Tensor& t) {
    return Const(RunOpOrDie("Cast", {t}, {{"DstT", dtype}}));
  };
  NodeBuilder node(op.schema.name);
  size_t variables = 0;
  for (const ArgSchema& arg : op.schema.inputs) {
    if (IsVariable(arg)) {
      const Tensor start = DoubleTensor(shape, step.variables[variables++]);
      node.Input(g->AddVariable(arg, RunOpOrDie("Cast", {start}, {{"DstT", dtype}})));
    } else if (arg.name == "grad" || arg.name == "delta") {
      node.Input(input(step.gradient));
    } else if (arg.name == "indices") {
      node.Input(Const(step.indices));
    } else if (arg.name == "global_step") {
      node.Input(Const(Tensor::Scalar(static_cast<int64_t>(step.scalars.at(arg.name)))));
    } else {
      node.Input(input(Tensor::Scalar(step.scalars.at(arg.name))));
    }
  }
  if (!optimizer.flag.empty()) node.Attr(optimizer.flag, flag);
  g->op = node.Finish();
  g->times = 2;
}

/// An update of rows, an assignment, or a gather.
void BuildUpdate(const OpRegistration& op, DType dtype, VariableGraph* g) {
  const bool tuples = op.schema.name.find("Nd") != std::string::npos;
  const Shape shape{9, 5};
  NodeBuilder node(op.schema.name);
  for (const ArgSchema& arg : op.schema.inputs) {
    if (IsVariable(arg)) {
      node.Input(g->AddVariable(arg, SmallNumbers(dtype, shape, 0)));
    } else if (arg.name == "indices") {
      const Tensor rows = Tensor::Of<int32_t>({4}, {3, 0, 3, 7});
      node.Input(Const(tuples ? Tensor::Of<int32_t>({4, 1}, {3, 0, 3, 7}) : rows));
    } else {
      node.Input(Const(SmallNumbers(dtype, arg.name == "value" ? shape : Shape{4, 5}, 1)));
    }
  }
  if (Gathers(op.schema)) node.Attr("dtype", dtype);
  g->op = node.Finish();
}

void CompareGraphs(const OpRegistration& op, DType dtype, OpRow* row,
                   const std::function<void(VariableGraph*)>& build) {
  VariableGraph graph;
  build(&graph);
  const auto wanted = graph.Run(false);
  if (!wanted.ok()) return row->Fail(StrCat("on the CPU: ", wanted.status().ToString()));
  std::vector<Tensor> first;
  for (int run = 0; run < 2; ++run) {
    const auto found = graph.Run(true);
    if (!found.ok()) return row->Fail(StrCat(found.status().ToString(), "; ", dtype));
    if (run == 1) {
      const std::string d = Compare(*found, first, Closeness::kSame).difference;
      if (!d.empty()) row->Fail(StrCat("run again, it gives something else: ", d));
      continue;
    }
    first = *found;
    const bool moves = Gathers(op.schema) || op.schema.name.ends_with("Update");
    const Comparison c = Compare(*found, *wanted, moves ? Closeness::kSame : Closeness::kSums);
    if (!c.difference.empty()) return row->Fail(c.difference);
    row->AddCase(dtype, c.error);
  }
}

}  // namespace

bool HasVariableCases(const OpRegistration& op) {
  const bool known = OptimizerOf(op.schema.name) != nullptr || ChangesRows(op.schema) ||
                     Assigns(op.schema) || Gathers(op.schema);
  return known && std::any_of(op.kernels.begin(), op.kernels.end(), [](const auto& k) {
           return k.device == kCuda || k.options.memory != KernelMemory::kDevice;
         });
}

void CompareVariableCases(const OpRegistration& op, OpRow* row, bool once) {
  const std::string attr = TypeAttr(op.schema);
  const Optimizer* const optimizer = OptimizerOf(op.schema.name);
  for (const DType dtype : DTypesOf(PlainTypes())) {
    AttributeMap attrs = {{attr, dtype}};
    if (op.schema.FindAttr("Tindices") != nullptr) attrs.Set("Tindices", DType::kInt32);
    const AttrSchema* const schema = op.schema.FindAttr(attr);
    const DTypeVector& allowed = schema->allowed_types;
    if (!allowed.empty() && std::count(allowed.begin(), allowed.end(), dtype) == 0) continue;
    if (op.FindKernel(kCuda, attrs) == nullptr || op.FindKernel(kCpu, attrs) == nullptr) continue;
    if (optimizer == nullptr) {
      CompareGraphs(op, dtype, row, [&](VariableGraph* g) { BuildUpdate(op, dtype, g); });
      if (once) return;
      continue;
    }
    if (IsComplex(dtype) || !IsFloating(dtype)) continue;
    for (const Shape& shape : {Shape{33}, Shape{5, 3}, Shape{1003}}) {
      const bool sparse = op.schema.name.find("Sparse") != std::string::npos;
      if (sparse && shape.rank() == 1 && shape.dim(0) == 33) continue;
      CompareGraphs(op, dtype, row, [&](VariableGraph* g) {
        BuildStep(op, *optimizer, dtype, shape, !optimizer->flag.empty() && shape.rank() == 2, g);
      });
      if (once) return;
    }
  }
}

}  // namespace tenon::testing
