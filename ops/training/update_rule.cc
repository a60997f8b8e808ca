// SPDX-License-Identifier: Apache-2.0
#include "ops/training/update_rule.h"

namespace tenon {
namespace {

/// Locks the variables one inside the other, then runs `update` with their values in `run`. Those
/// that a sparse step changes are copied only if somebody else reads them.
Status ModifyTogether(absl::Span<const std::pair<VariableResource*, int>> variables, Update& run,
                      absl::FunctionRef<Status()> update) {
  if (variables.empty()) return update();
  const auto [variable, k] = variables[0];
  const auto with = [&, k = k](const Tensor* current, Tensor* next) {
    run.current[k] = current;
    run.next[k] = next;
    return ModifyTogether(variables.subspan(1), run, update);
  };
  if (run.is_sparse()) {
    return variable->ModifyInPlace([&](Tensor* value) { return with(value, value); });
  }
  return variable->Modify([&](const Tensor& now, Tensor* next) { return with(&now, next); });
}

class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(KernelConstruction& c, const UpdateInputs& inputs, const UpdateRuleInfo& rule,
               bool host_reads)
      : Kernel(c),
        inputs_(inputs),
        rule_(rule),
        host_reads_(host_reads),
        flag_(rule.flag != nullptr && c.Attr<bool>(rule.flag)) {}

  Status Compute(KernelContext& ctx) const override {
    class Update run(ctx, *this, inputs_, flag_);
    for (const int i : inputs_.scalars) {
      if (ctx.input(i).rank() == 0) continue;
      return InvalidArgument(inputs_.names[i], " is not a scalar: ", ctx.input(i).shape());
    }
    if (run.is_sparse()) {
      const Tensor& indices = ctx.input(inputs_.indices);
      if (indices.rank() != 1) {
        return InvalidArgument("indices must be one-dimensional, found ", indices.shape());
      }
      if (host_reads_) {
        TENON_ASSIGN_OR_RETURN(run.rows, ReadIndices(indices, "indices"));
      }
    }
    const DType dtype = ctx.input(inputs_.grad).dtype();
    std::array<std::shared_ptr<VariableResource>, kMaxStepVariables> variables;
    absl::InlinedVector<std::pair<VariableResource*, int>, kMaxStepVariables> different;
    for (int k = 0; k < inputs_.num_variables; ++k) {
      TENON_ASSIGN_OR_RETURN(variables[k], variables_[k].Find(ctx, dtype, k));
      const auto same = std::find(variables.begin(), variables.end(), variables[k]);
      run.same_as[k] = static_cast<int>(same - variables.begin());
      if (run.same_as[k] == k) different.emplace_back(variables[k].get(), k);
    }
    // By their addresses, so that two steps over the same variables cannot wait for each other.
    std::sort(different.begin(), different.end());
    TENON_RETURN_IF_ERROR(ModifyTogether(different, run, [&] { return Run(run); }));
    if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variables[0].get());
    return OkStatus();
  }

 private:
  Status Run(Update& run) const {
    for (int k = 0; k < inputs_.num_variables; ++k) {
      const int first = run.same_as[k];
      run.current[k] = run.current[first];
      run.next[k] = run.next[first];
      // As in TensorFlow, where a resource that is given twice to a dense step is copied for each:
      // the last one stays.
      if (!run.is_sparse() && run.ctx.ref(k) == nullptr) run.same_as[k] = k;
      run.aliased |= run.same_as[k] != k;
    }
    TENON_RETURN_IF_ERROR(run.CheckShapes(rule_.no_empty_rows));
    return rule_.steps[static_cast<int>(run.current[0]->dtype())](run);
  }

  const UpdateInputs inputs_;
  const UpdateRuleInfo rule_;
  const bool host_reads_;  // scalars and indices
  const bool flag_;
  std::array<VariableInput, kMaxStepVariables> variables_;
};

}  // namespace

Status ScalarOutOfBound(std::string_view name, double value, Bound bound) {
  constexpr std::string_view kWanted[] = {"", "above 0", "at least 0", "at most 0"};
  return InvalidArgument(name, " is ", value, ", wanted ", kWanted[static_cast<int>(bound)]);
}

Status NoSuchRow(int64_t row, int64_t place, int64_t num_rows) {
  return InvalidArgument("Index ", row, " at offset ", place,
                         " in indices is out of range: var has ", num_rows, " rows");
}

UpdateInputs::UpdateInputs(const OpSchema& schema) {
  for (const ArgSchema& arg : schema.inputs) {
    const int i = static_cast<int>(names.size());
    names.push_back(arg.name);
    if (arg.is_ref || arg.type == DType::kResource) {
      ++num_variables;
    } else if (arg.name == "grad" || arg.name == "delta") {
      grad = i;
    } else if (arg.name == "indices") {
      indices = i;
    } else {
      scalars.push_back(i);
    }
  }
}

Status Update::CheckShapes(bool no_empty_rows) {
  const Shape& var = current[0]->shape();
  const Tensor& grad = ctx.input(inputs.grad);
  for (int k = 1; k < inputs.num_variables; ++k) {
    if (current[k]->shape() == var) continue;
    return InvalidArgument("var and ", inputs.names[k], " do not have the same shape: ", var,
                           " and ", current[k]->shape());
  }
  if (!is_sparse()) {
    if (grad.shape() == var) return OkStatus();
    return InvalidArgument("var and ", inputs.names[inputs.grad],
                           " do not have the same shape: ", var, " and ", grad.shape());
  }
  if (var.rank() == 0) return InvalidArgument("var must be at least 1 dimensional");
  const int64_t n = ctx.input(inputs.indices).dim(0);
  const auto row_dims = var.dims().subspan(1);
  if (grad.rank() != var.rank() || grad.dim(0) != n || grad.shape().dims().subspan(1) != row_dims) {
    return InvalidArgument("grad is ", grad.shape(), ", wanted a row of var, which is ", var,
                           ", for each of ", n, " indices");
  }
  if (no_empty_rows && std::find(row_dims.begin(), row_dims.end(), 0) != row_dims.end()) {
    return InvalidArgument("the rows of var have no elements: ", var);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0 && rows[i] < var.dim(0)) continue;
    return NoSuchRow(rows[i], static_cast<int64_t>(i), var.dim(0));
  }
  width = n > 0 ? grad.num_elements() / n : 0;
  return OkStatus();
}

Status Update::CheckScalars(absl::Span<const Bound> bounds) const {
  for (size_t k = 0; k < bounds.size(); ++k) {
    double x = 0;
    const Tensor& t = scalar(static_cast<int>(k));
    Dispatch(t.dtype(), FloatTypes(),
             [&]<typename T>(T) { x = static_cast<double>(t.scalar<T>()); });
    const bool good[] = {true, x > 0, x >= 0, x <= 0};
    if (good[static_cast<int>(bounds[k])]) continue;
    return ScalarOutOfBound(inputs.names[inputs.scalars[k]], x, bounds[k]);
  }
  return OkStatus();
}

void Update::ForEachPart(double element_ns, absl::FunctionRef<void(int64_t, int64_t)> fn) const {
  if (!is_sparse()) return ParallelFor(current[0]->num_elements(), element_ns, fn);
  const double row_ns = 5 + element_ns * static_cast<double>(width);
  // Each range looks at all rows: there are no more ranges than threads.
  const int64_t ranges = std::min<int64_t>(kShares, ThreadBudget());
  const auto first = [=](int64_t range) { return range * kShares / ranges; };
  ParallelFor(ranges, row_ns * static_cast<double>(rows.size()) / static_cast<double>(ranges),
              [&](int64_t begin, int64_t end) { fn(first(begin), first(end)); });
}

namespace {

/// Calls `add` for each op of the optimizer with the options of its kernel and what makes it.
template <typename Add>
void ForEachStep(OpRegistry& registry, std::string_view name, const UpdateRuleInfo& dense,
                 const UpdateRuleInfo& sparse, bool host_reads, Add add) {
  for (const char* prefix : {"Apply", "ResourceApply", "SparseApply", "ResourceSparseApply"}) {
    const std::string full_name = StrCat(prefix, name);
    if (registry.Find(full_name) == nullptr) continue;
    OpBuilder op = registry.Get(full_name);
    const UpdateInputs inputs(op.schema());
    const UpdateRuleInfo& rule = inputs.indices >= 0 ? sparse : dense;
    add(op, KernelOptions{.types = {{"T", rule.types}}},
        [inputs, rule, host_reads](KernelConstruction& c) {
          return std::make_unique<UpdateKernel>(c, inputs, rule, host_reads);
        });
  }
}

}  // namespace

void AddSteps(OpRegistry& registry, std::string_view name, const UpdateRuleInfo& dense,
              const UpdateRuleInfo& sparse) {
  ForEachStep(registry, name, dense, sparse, true,
              [](OpBuilder& op, const KernelOptions& options, KernelFactory factory) {
                op.Shape(op.schema().outputs.empty() ? NoOutputShape : UnchangedShape)
                    .AddKernel(kCpu, options, std::move(factory))
                    .NoExample("needs a variable; optimizer_steps_test covers it");
              });
}

void AddDeviceSteps(OpRegistry& registry, DeviceKind device, std::string_view name,
                    const UpdateRuleInfo& dense, const UpdateRuleInfo& sparse) {
  ForEachStep(registry, name, dense, sparse, false,
              [device](OpBuilder& op, const KernelOptions& options, KernelFactory factory) {
                op.AddKernel(device, options, std::move(factory));
              });
}

}  // namespace tenon
