// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/training/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// Scalars of a rule, in the order of its inputs.
inline constexpr int kMaxScalars = 6;
inline constexpr int kMaxVariables = 3;

// A rule says how one element of the variables changes. kScalars are the inputs that are scalars,
// kGrad is the gradient; the first kVariables inputs are the variables. Prepare runs once a step on
// the scalars, Step once an element.

struct GradientDescentRule {
  using Types = decltype(ConcatTypes(FloatTypes(), ComplexTypes()));
  static constexpr int kVariables = 1, kGrad = 2;
  static constexpr std::array kScalars = {1};
  static constexpr const char* kFlag = nullptr;
  template <typename C>
  static void Prepare(C*) {}
  template <typename C>
  static void Step(C* v, const C* s, C g, bool) {
    v[0] -= s[0] * g;
  }
};

struct MomentumRule {
  using Types = decltype(ConcatTypes(FloatTypes(), ComplexTypes()));
  static constexpr int kVariables = 2, kGrad = 3;
  static constexpr std::array kScalars = {2, 4};
  static constexpr const char* kFlag = "use_nesterov";
  template <typename C>
  static void Prepare(C*) {}
  template <typename C>
  static void Step(C* v, const C* s, C g, bool nesterov) {
    v[1] = v[1] * s[1] + g;
    v[0] -= nesterov ? g * s[0] + v[1] * s[1] * s[0] : v[1] * s[0];
  }
};

struct AdagradRule {
  using Types = FloatTypes;
  static constexpr int kVariables = 2, kGrad = 3;
  static constexpr std::array kScalars = {2};
  static constexpr const char* kFlag = "update_slots";
  template <typename C>
  static void Prepare(C*) {}
  template <typename C>
  static void Step(C* v, const C* s, C g, bool update_slots) {
    if (update_slots) v[1] += g * g;
    v[0] -= g * s[0] / std::sqrt(v[1]);
  }
};

struct AdamRule {
  using Types = FloatTypes;
  static constexpr int kVariables = 3, kGrad = 9;
  static constexpr std::array kScalars = {3, 4, 5, 6, 7, 8};
  static constexpr const char* kFlag = "use_nesterov";
  enum { kBeta1Power, kBeta2Power, kRate, kBeta1, kBeta2, kEpsilon };
  /// Turns the learning rate into the step size corrected for the bias of the moments.
  template <typename C>
  static void Prepare(C* s) {
    s[kRate] *= std::sqrt(C(1) - s[kBeta2Power]) / (C(1) - s[kBeta1Power]);
  }
  template <typename C>
  static void Step(C* v, const C* s, C g, bool nesterov) {
    v[1] += (g - v[1]) * (C(1) - s[kBeta1]);
    v[2] += (g * g - v[2]) * (C(1) - s[kBeta2]);
    const C m = nesterov ? v[1] * s[kBeta1] + (C(1) - s[kBeta1]) * g : v[1];
    v[0] -= m * s[kRate] / (std::sqrt(v[2]) + s[kEpsilon]);
  }
};

/// The values before and after of the variables that one step changes together.
struct Together {
  std::array<const Tensor*, kMaxVariables> current;
  std::array<Tensor*, kMaxVariables> next;
};

/// Locks the variables at `order` one inside the other, then runs `update`. The order is that of
/// their addresses, so that two steps over the same variables cannot wait for each other.
template <typename Fn>
Status ModifyTogether(absl::Span<VariableResource* const> variables, absl::Span<const int> order,
                      Together* values, Fn&& update) {
  if (order.empty()) return update(*values);
  return variables[order[0]]->Modify([&](const Tensor& current, Tensor* next) {
    values->current[order[0]] = &current;
    values->next[order[0]] = next;
    return ModifyTogether(variables, order.subspan(1), values, update);
  });
}

template <typename Rule, typename T>
void ApplyTo(const Together& values, const KernelContext& ctx, bool flag) {
  using C = ComputeType<T>;
  std::array<C, kMaxScalars> scalars{};
  for (size_t i = 0; i < Rule::kScalars.size(); ++i) {
    scalars[i] = C(ctx.input(Rule::kScalars[i]).template scalar<T>());
  }
  Rule::Prepare(scalars.data());
  std::array<const T*, Rule::kVariables> from;
  std::array<T*, Rule::kVariables> to;
  for (int k = 0; k < Rule::kVariables; ++k) {
    from[k] = values.current[k]->data<T>();
    to[k] = values.next[k]->data<T>();
  }
  const T* grad = ctx.input(Rule::kGrad).template data<T>();
  const int64_t n = ctx.input(Rule::kGrad).num_elements();
  ParallelFor(n, 0.3 * Rule::kVariables, [&](int64_t begin, int64_t end) {
    const auto loop = [&](bool constant_flag) {
      const auto s = scalars;
      const auto in = from;
      const auto out = to;
      for (int64_t i = begin; i < end; ++i) {
        C v[Rule::kVariables];
        for (int k = 0; k < Rule::kVariables; ++k) v[k] = C(in[k][i]);
        Rule::Step(v, s.data(), C(grad[i]), constant_flag);
        for (int k = 0; k < Rule::kVariables; ++k) out[k][i] = T(v[k]);
      }
    };
    // Twice, so that the flag is a constant in each loop and the loops vectorise.
    if (flag) {
      loop(true);
    } else {
      loop(false);
    }
  });
}

template <typename Rule>
class ApplyKernel final : public Kernel {
 public:
  explicit ApplyKernel(KernelConstruction& c) : Kernel(c), dtype_(c.Attr<DType>("T")) {
    for (int i = 0; i < Rule::kVariables; ++i) {
      inputs_[i] = std::make_unique<VariableInput>(i);
    }
    if constexpr (Rule::kFlag != nullptr) flag_ = c.Attr<bool>(Rule::kFlag);
  }

  Status Compute(KernelContext& ctx) const override {
    std::array<std::shared_ptr<VariableResource>, Rule::kVariables> held;
    std::array<VariableResource*, Rule::kVariables> variables;
    std::array<int, Rule::kVariables> order;
    for (int i = 0; i < Rule::kVariables; ++i) {
      TENON_ASSIGN_OR_RETURN(held[i], inputs_[i]->Find(ctx, dtype_));
      variables[i] = held[i].get();
      order[i] = i;
      for (int j = 0; j < i; ++j) {
        if (variables[i] == variables[j]) {
          return InvalidArgument("inputs ", j, " and ", i, " are the same variable");
        }
      }
    }
    for (const int i : Rule::kScalars) {
      if (ctx.input(i).rank() != 0) {
        return InvalidArgument("input ", i, " is not a scalar: ", ctx.input(i).shape().ToString());
      }
    }
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return std::less<>()(variables[a], variables[b]); });
    Together values;
    TENON_RETURN_IF_ERROR(ModifyTogether(variables, order, &values,
                                         [&](const Together& t) { return Update(t, ctx); }));
    if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variables[0]);
    return OkStatus();
  }

 private:
  Status Update(const Together& values, const KernelContext& ctx) const {
    const Shape& shape = ctx.input(Rule::kGrad).shape();
    for (int i = 0; i < Rule::kVariables; ++i) {
      if (!(values.current[i]->shape() == shape)) {
        return InvalidArgument("var and grad do not have the same shape: variable ", i, " is ",
                               values.current[i]->shape().ToString(), ", the gradient ",
                               shape.ToString());
      }
    }
    const bool known = Dispatch(dtype_, typename Rule::Types(), [&](auto zero) {
      ApplyTo<Rule, decltype(zero)>(values, ctx, flag_);
    });
    return known ? OkStatus() : Unimplemented("no such step for ", ToString(dtype_));
  }

  const DType dtype_;
  bool flag_ = false;
  std::array<std::unique_ptr<VariableInput>, Rule::kVariables> inputs_;
};

/// Adds Apply<name> and ResourceApply<name>.
template <typename Rule>
void AddRule(OpRegistry& ops, std::string_view name) {
  for (const char* prefix : {"Apply", "ResourceApply"}) {
    OpBuilder op = ops.Get(StrCat(prefix, name));
    op.Shape(op.schema().outputs.empty() ? NoOutputShape : UnchangedShape)
        .template Kernel<ApplyKernel<Rule>>(kCpu,
                                            {.types = {{"T", DTypesOf(typename Rule::Types())}}})
        .NoExample("needs a variable; training_ops_test covers it");
  }
}

}  // namespace

void RegisterTrainingKernels(OpRegistry& ops) {
  AddRule<GradientDescentRule>(ops, "GradientDescent");
  AddRule<MomentumRule>(ops, "Momentum");
  AddRule<AdagradRule>(ops, "Adagrad");
  AddRule<AdamRule>(ops, "Adam");
}

}  // namespace tenon
