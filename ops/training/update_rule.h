// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/state/variables.h"

// The machinery of optimizers' steps. An optimizer is one rule: how one element of its variables
// changes. Its ops, dense and sparse, for references and for resources, follow from it.
//
//   struct MomentumRule : UpdateRule<2> {
//     enum { kRate, kMomentum };
//     static constexpr const char* kFlag = "use_nesterov";
//     template <typename C>
//     TENON_HD static void Step(auto& v, const C* s, C g, bool nesterov) {
//       v[1] = v[1] * s[kMomentum] + g;
//       v[0] -= nesterov ? g * s[kRate] + v[1] * s[kMomentum] * s[kRate] : v[1] * s[kRate];
//     }
//   };
//   void RegisterMySteps(OpRegistry& ops) { AddSteps<MomentumRule>(ops, "Momentum"); }
//
// Step changes v, the elements of the variables in the order of the inputs, by the scalars s, in
// the order of the inputs, and the gradient's element g. Its statements take effect in turn, since
// one variable may be given as two. Optional members, of which UpdateRule has the usual ones:
//   Types         the dtypes of the kernels
//   kFlag         a bool attribute, which Prepare gets
//   Prepare       runs once a step: may change the scalars, and use more of them up to
//                 kMaxStepScalars; gives the last argument of Step, which Step may leave out
//   Bounds        what the scalars must be
//   kNoEmptyRows  sparse steps refuse rows without elements

namespace tenon {

inline constexpr int kMaxStepVariables = 4;
inline constexpr int kMaxStepScalars = 8;

/// What a scalar must be.
enum class Bound { kNone, kAbove0, kAtLeast0, kAtMost0 };

/// Base of a rule for so many variables.
template <int kNumVariables,
          typename SomeTypes = decltype(ConcatTypes(FloatTypes(), ComplexTypes()))>
struct UpdateRule {
  using Types = SomeTypes;
  static constexpr int kVariables = kNumVariables;
  static constexpr const char* kFlag = nullptr;
  static constexpr bool kNoEmptyRows = false;
  /// `width` is the number of elements in a row that a sparse step changes; 0 for a dense step.
  TENON_HD static bool Prepare(auto* /*scalars*/, bool flag, int64_t /*width*/) { return flag; }
  static std::array<Bound, 0> Bounds(bool /*flag*/) { return {}; }
};

/// Where the inputs of an op stand: the variables first, the scalars in any place.
struct UpdateInputs {
  explicit UpdateInputs(const OpSchema& schema);
  std::vector<std::string> names;
  int num_variables = 0;
  std::vector<int> scalars;
  int grad = -1;
  int indices = -1;  // none: a dense step
};

/// One step at work, while its variables are locked.
class Update {
 public:
  /// Elements at, at + 1, ... of the variables and those of the gradient that go with them.
  struct Piece {
    int64_t at, grad_at, size;
  };

  Update(KernelContext& ctx, const Kernel& kernel, const UpdateInputs& inputs, bool flag)
      : ctx(ctx), kernel(kernel), inputs(inputs), flag(flag) {}

  const Tensor& scalar(int k) const { return ctx.input(inputs.scalars[k]); }
  Status CheckShapes(bool no_empty_rows);
  Status CheckScalars(absl::Span<const Bound> bounds) const;

  /// Calls `fn(begin, end)`, perhaps from several threads, till it has been called for all parts;
  /// piece(i, begin, end) is the part's i-th piece.
  void ForEachPart(double element_ns, absl::FunctionRef<void(int64_t, int64_t)> fn) const;
  int64_t num_pieces() const { return is_sparse() ? static_cast<int64_t>(rows.size()) : 1; }
  Piece piece(int64_t i, int64_t begin, int64_t end) const {
    if (!is_sparse()) return {begin, begin, end - begin};
    const int64_t share = ShareOf(rows[i]);
    return {rows[i] * width, i * width, share >= begin && share < end ? width : 0};
  }
  bool is_sparse() const { return inputs.indices >= 0; }

  KernelContext& ctx;
  const Kernel& kernel;
  const UpdateInputs& inputs;
  const bool flag;
  /// The elements in a row of a sparse step, and to which row each row of the gradient goes, where
  /// the host can read that.
  int64_t width = 0;
  IndexVector rows;
  std::array<const Tensor*, kMaxStepVariables> current{};
  std::array<Tensor*, kMaxStepVariables> next{};
  /// Which of the variables each is the same as; itself for all but those that are `aliased`.
  std::array<int, kMaxStepVariables> same_as{};
  bool aliased = false;

 private:
  /// A sparse step is shared out by the variables' rows, some neighbours together, so that the
  /// gradients of one row stay in turn.
  static constexpr int64_t kShares = 64, kNeighbours = 16;
  static int64_t ShareOf(int64_t row) { return row / kNeighbours % kShares; }
};

/// InvalidArgument for a scalar that is not within its bound.
Status ScalarOutOfBound(std::string_view name, double value, Bound bound);
/// InvalidArgument for entry `place` of indices that is no row of var, which has so many.
Status NoSuchRow(int64_t row, int64_t place, int64_t num_rows);

/// What the template below collects of a rule, so that the rest is compiled once.
struct UpdateRuleInfo {
  DTypeVector types;
  std::array<Status (*)(const Update&), kNumDTypes> steps{};
  const char* flag = nullptr;
  bool no_empty_rows = false;
};

/// Adds those of Apply<name>, ResourceApply<name>, SparseApply<name> and ResourceSparseApply<name>
/// that are declared, for the CPU.
void AddSteps(OpRegistry& ops, std::string_view name, const UpdateRuleInfo& dense,
              const UpdateRuleInfo& sparse);
/// The kernels alone, for a device whose memory the host does not read: what scalars and indices
/// are is for `steps` to check.
void AddDeviceSteps(OpRegistry& ops, DeviceKind device, std::string_view name,
                    const UpdateRuleInfo& dense, const UpdateRuleInfo& sparse);

namespace step_internal {

/// The elements of variables some of which are the same.
template <typename C>
struct AliasedElements {
  C* element[kMaxStepVariables];
  TENON_HD C& operator[](int k) const { return *element[k]; }
};

/// Whether the rule's Step has the last argument.
template <typename Rule, typename C>
inline constexpr bool kTakesFlag = !requires(C * v, const C* s, C g) {
  Rule::Step(v, s, g);
};

template <typename Rule, typename T>
Status RunUpdate(const Update& update) {
  using C = ComputeType<T>;
  std::array<C, kMaxStepScalars> scalars{};
  for (size_t k = 0; k < update.inputs.scalars.size(); ++k) {
    const Tensor& t = update.scalar(static_cast<int>(k));
    scalars[k] = t.dtype() == DType::kInt64 ? static_cast<C>(t.scalar<int64_t>())
                                            : static_cast<C>(t.scalar<T>());
  }
  TENON_RETURN_IF_ERROR(update.CheckScalars(Rule::Bounds(update.flag)));
  const bool flag = Rule::Prepare(scalars.data(), update.flag, update.width);

  // A flag of type bool: some variables are the same.
  const auto run_part = [&](auto step_flag, int64_t begin, int64_t end) {
    constexpr bool kAliased = std::is_same_v<decltype(step_flag), bool>;
    constexpr int kCount = Rule::kVariables;
    const auto s = scalars;
    const T* grad = update.ctx.input(update.inputs.grad).data<T>();
    std::array<const T*, kCount> in;
    std::array<T*, kCount> out;
    for (int k = 0; k < kCount; ++k) {
      in[k] = update.current[k]->data<T>();
      out[k] = update.next[k]->data<T>();
    }
    const auto change = [&](auto& v, C g) {
      if constexpr (kTakesFlag<Rule, C>) {
        Rule::Step(v, s.data(), g, step_flag);
      } else {
        Rule::Step(v, s.data(), g);
      }
    };
    for (int64_t p = 0; p < update.num_pieces(); ++p) {
      const Update::Piece piece = update.piece(p, begin, end);
      TENON_SIMD
      for (int64_t i = 0; i < piece.size; ++i) {
        C v[kCount];
        for (int k = 0; k < kCount; ++k) v[k] = static_cast<C>(in[k][piece.at + i]);
        const C g = static_cast<C>(grad[piece.grad_at + i]);
        if constexpr (kAliased) {
          AliasedElements<C> aliased{};
          for (int k = 0; k < kCount; ++k) aliased.element[k] = v + update.same_as[k];
          change(aliased, g);
          for (int k = 0; k < kCount; ++k) v[k] = aliased[k];
        } else {
          change(v, g);
        }
        for (int k = 0; k < kCount; ++k) out[k][piece.at + i] = static_cast<T>(v[k]);
      }
    }
  };
  update.ForEachPart(0.3 * Rule::kVariables, [&](int64_t begin, int64_t end) {
    // The flag is a constant in each of the frequent loops, so that they vectorise.
    if (update.aliased) return run_part(flag, begin, end);
    if constexpr (kTakesFlag<Rule, C>) {
      if (flag) return run_part(std::true_type(), begin, end);
    }
    run_part(std::false_type(), begin, end);
  });
  return OkStatus();
}

template <typename Rule, typename... Ts>
UpdateRuleInfo Describe(TypeList<Ts...>) {
  UpdateRuleInfo info{
      .types = {kDTypeOf<Ts>...}, .flag = Rule::kFlag, .no_empty_rows = Rule::kNoEmptyRows};
  ((info.steps[static_cast<int>(kDTypeOf<Ts>)] = &RunUpdate<Rule, Ts>), ...);
  return info;
}

}  // namespace step_internal

/// The ops of an optimizer, whose sparse steps may have a rule of their own.
template <typename Rule, typename SparseRule = Rule>
void AddSteps(OpRegistry& ops, std::string_view name) {
  AddSteps(ops, name, step_internal::Describe<Rule>(typename Rule::Types()),
           step_internal::Describe<SparseRule>(typename SparseRule::Types()));
}

/// 1, 0 or -1 as x is; NaN when x is.
template <Element T>
TENON_HD T SignOf(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}

}  // namespace tenon
