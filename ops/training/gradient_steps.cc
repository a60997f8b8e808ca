// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/maths.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

// A rule says how one element of the variables changes. kScalars are the inputs that are scalars,
// kGrad is the gradient; the first kVariables inputs are the variables. Prepare runs once a step on
// the scalars, Step once an element, with the value of the attribute kFlag.

struct RuleDefaults {
  using Types = FloatTypes;
  static constexpr const char* kFlag = nullptr;
  static void Prepare(auto*) {}
};

struct GradientDescentRule : RuleDefaults {
  using Types = decltype(ConcatTypes(FloatTypes(), ComplexTypes()));
  static constexpr int kVariables = 1, kGrad = 2;
  static constexpr std::array kScalars = {1};
  static void Step(auto* v, const auto* s, auto g, bool) { v[0] -= s[0] * g; }
};

struct MomentumRule : RuleDefaults {
  using Types = decltype(ConcatTypes(FloatTypes(), ComplexTypes()));
  static constexpr int kVariables = 2, kGrad = 3;
  static constexpr std::array kScalars = {2, 4};
  static constexpr const char* kFlag = "use_nesterov";
  static void Step(auto* v, const auto* s, auto g, bool nesterov) {
    v[1] = v[1] * s[1] + g;
    v[0] -= nesterov ? g * s[0] + v[1] * s[1] * s[0] : v[1] * s[0];
  }
};

struct AdagradRule : RuleDefaults {
  static constexpr int kVariables = 2, kGrad = 3;
  static constexpr std::array kScalars = {2};
  static constexpr const char* kFlag = "update_slots";
  static void Step(auto* v, const auto* s, auto g, bool update_slots) {
    if (update_slots) v[1] += g * g;
    v[0] -= g * s[0] / std::sqrt(v[1]);
  }
};

struct AdamRule : RuleDefaults {
  static constexpr int kVariables = 3, kGrad = 9;
  static constexpr std::array kScalars = {3, 4, 5, 6, 7, 8};
  static constexpr const char* kFlag = "use_nesterov";
  enum { kBeta1Power, kBeta2Power, kRate, kBeta1, kBeta2, kEpsilon };
  /// Turns the learning rate into the step size corrected for the bias of the moments.
  static void Prepare(auto* s) { s[kRate] *= std::sqrt(1 - s[kBeta2Power]) / (1 - s[kBeta1Power]); }
  static void Step(auto* v, const auto* s, auto g, bool nesterov) {
    v[1] += (g - v[1]) * (1 - s[kBeta1]);
    v[2] += (g * g - v[2]) * (1 - s[kBeta2]);
    const auto m = nesterov ? v[1] * s[kBeta1] + (1 - s[kBeta1]) * g : v[1];
    v[0] -= m * s[kRate] / (std::sqrt(v[2]) + s[kEpsilon]);
  }
};

/// A variable that a step changes, its value before and after.
struct Slot {
  std::shared_ptr<VariableResource> variable;
  const Tensor* current = nullptr;
  Tensor* next = nullptr;
};

/// Locks the variables of `slots` one inside the other, then runs `update`.
template <typename Fn>
Status ModifyTogether(absl::Span<Slot* const> slots, const Fn& update) {
  if (slots.empty()) return update();
  return slots[0]->variable->Modify([&](const Tensor& current, Tensor* next) {
    slots[0]->current = &current;
    slots[0]->next = next;
    return ModifyTogether(slots.subspan(1), update);
  });
}

template <typename Rule, typename T>
void ApplyTo(absl::Span<const Slot> slots, const KernelContext& ctx, bool flag) {
  using C = ComputeType<T>;
  std::array<C, Rule::kScalars.size()> scalars;
  for (size_t i = 0; i < Rule::kScalars.size(); ++i) {
    scalars[i] = C(ctx.input(Rule::kScalars[i]).template scalar<T>());
  }
  Rule::Prepare(scalars.data());
  std::array<const T*, Rule::kVariables> from;
  std::array<T*, Rule::kVariables> to;
  for (int k = 0; k < Rule::kVariables; ++k) {
    from[k] = slots[k].current->data<T>();
    to[k] = slots[k].next->data<T>();
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
    flag ? loop(true) : loop(false);
  });
}

template <typename Rule>
Status Update(absl::Span<const Slot> slots, const KernelContext& ctx, bool flag) {
  const Tensor& grad = ctx.input(Rule::kGrad);
  for (int i = 0; i < Rule::kVariables; ++i) {
    if (slots[i].current->shape() == grad.shape()) continue;
    return InvalidArgument("var and grad do not have the same shape: variable ", i, " is ",
                           slots[i].current->shape(), ", the gradient ", grad.shape());
  }
  const bool known = Dispatch(grad.dtype(), typename Rule::Types(),
                              [&]<typename T>(T) { ApplyTo<Rule, T>(slots, ctx, flag); });
  return known ? OkStatus() : Unimplemented("no such step for ", grad.dtype());
}

template <typename Rule>
struct ApplyState : KernelState {
  explicit ApplyState(KernelConstruction& c) {
    if constexpr (Rule::kFlag != nullptr) flag = c.Attr<bool>(Rule::kFlag);
  }
  bool flag = false;
  std::array<VariableInput, Rule::kVariables> inputs;
};

template <typename Rule>
Status ApplyKernel(KernelContext& ctx, const ApplyState<Rule>& state) {
  std::array<Slot, Rule::kVariables> slots;
  std::array<Slot*, Rule::kVariables> order;
  for (int i = 0; i < Rule::kVariables; ++i) {
    TENON_ASSIGN_OR_RETURN(slots[i].variable,
                           state.inputs[i].Find(ctx, ctx.input(Rule::kGrad).dtype(), i));
    order[i] = &slots[i];
    for (int j = 0; j < i; ++j) {
      if (slots[i].variable == slots[j].variable) {
        return InvalidArgument("inputs ", j, " and ", i, " are the same variable");
      }
    }
  }
  for (const int i : Rule::kScalars) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument("input ", i, " is not a scalar: ", ctx.input(i).shape());
  }
  // By their addresses, so that two steps over the same variables cannot wait for each other.
  std::sort(order.begin(), order.end(),
            [](const Slot* a, const Slot* b) { return a->variable < b->variable; });
  TENON_RETURN_IF_ERROR(
      ModifyTogether(order, [&] { return Update<Rule>(slots, ctx, state.flag); }));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, slots[0].variable.get());
  return OkStatus();
}

/// Adds Apply<name> and ResourceApply<name>.
template <typename Rule>
void AddRule(OpRegistry& ops, std::string_view name) {
  for (const char* prefix : {"Apply", "ResourceApply"}) {
    OpBuilder op = ops.Get(StrCat(prefix, name));
    op.Shape(op.schema().outputs.empty() ? NoOutputShape : UnchangedShape)
        .Kernel(kCpu, ApplyKernel<Rule>, {.types = {{"T", DTypesOf(typename Rule::Types())}}})
        .NoExample("needs a variable; training_ops_test covers it");
  }
}

}  // namespace

void RegisterGradientSteps(OpRegistry& ops) {
  AddRule<GradientDescentRule>(ops, "GradientDescent");
  AddRule<MomentumRule>(ops, "Momentum");
  AddRule<AdagradRule>(ops, "Adagrad");
  AddRule<AdamRule>(ops, "Adam");
}

}  // namespace tenon
