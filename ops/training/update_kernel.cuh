// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/device_kind.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/failure.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/sorted_rows.h"
#include "ops/training/update_rule.h"

// The rules of optimizers (see step_rule.h) as kernels of the GPU.

namespace tenon::cuda {

/// The scalars of a step, in the device's memory.
struct UpdateScalars {
  const void* values[kMaxStepScalars] = {};
  bool is_int64[kMaxStepScalars] = {};
  Bound bounds[kMaxStepScalars] = {};
  int count = 0;
};
UpdateScalars ScalarsOf(const Update& update, absl::Span<const Bound> bounds);

/// A check for errors of the step: what NoteScalar notes, or SortRows.
RunCheck AddUpdateCheck(const Update& update, const UpdateScalars& scalars);

/// Notes that scalar `k` is out of its bound.
__device__ inline void NoteScalar(RunCheck check, int k, double value) {
  // The highest bit is SortRows's; 4 for k and 32 for the value leave it 0.
  const uint64_t word =
      static_cast<uint64_t>(k + 1) << 32 | __float_as_uint(static_cast<float>(value));
  NoteFailure(check, word);
}

/// Everything about a step of `Rule` that a thread must know.
template <typename Rule, typename T>
struct UpdateArgs {
  static constexpr int kCount = Rule::kVariables;

  const T* in[kCount];
  T* out[kCount];
  const T* grad;
  UpdateScalars scalars;
  int same_as[kCount];
  bool aliased;
  bool flag;
  int64_t width;  // as Prepare gets it
  RunCheck check;
  const uint32_t* failed;  // StepState's
};

/// The scalars as Prepare left them. False, and the first thread notes it, when one is out of
/// bound.
template <typename Rule, typename T, typename C>
__device__ bool LoadScalars(const UpdateArgs<Rule, T>& args, C (&s)[kMaxStepScalars], bool* flag) {
  const UpdateScalars& scalars = args.scalars;
#pragma unroll
  for (int k = 0; k < kMaxStepScalars; ++k) {
    s[k] = C(0);
    if (k >= scalars.count) continue;
    s[k] = scalars.is_int64[k] ? static_cast<C>(*static_cast<const int64_t*>(scalars.values[k]))
                               : Widen(*static_cast<const T*>(scalars.values[k]));
    const Bound bound = scalars.bounds[k];
    const bool good = bound == Bound::kNone || (bound == Bound::kAbove0 && s[k] > C(0)) ||
                      (bound == Bound::kAtLeast0 && s[k] >= C(0)) ||
                      (bound == Bound::kAtMost0 && s[k] <= C(0));
    if (good) continue;
    if (blockIdx.x == 0 && threadIdx.x == 0) NoteScalar(args.check, k, static_cast<double>(s[k]));
    return false;
  }
  *flag = Rule::Prepare(s, args.flag, args.width);
  return true;
}

/// Changes v, the elements of the variables, by the gradient's element.
template <typename Rule, typename T, typename C>
__device__ __forceinline__ void Change(const UpdateArgs<Rule, T>& args, C (&v)[Rule::kVariables],
                                       const C* s, C g, bool flag) {
  const auto step = [&](auto& elements) {
    if constexpr (step_internal::kTakesFlag<Rule, C>) {
      Rule::Step(elements, s, g, flag);
    } else {
      Rule::Step(elements, s, g);
    }
  };
  if (!args.aliased) return step(v);
  // Apart from v, whose addresses nobody takes: it stays in registers.
  C all[Rule::kVariables];
#pragma unroll
  for (int k = 0; k < Rule::kVariables; ++k) all[k] = v[k];
  step_internal::AliasedElements<C> aliased{};
  for (int k = 0; k < Rule::kVariables; ++k) aliased.element[k] = all + args.same_as[k];
  step(aliased);
#pragma unroll
  for (int k = 0; k < Rule::kVariables; ++k) v[k] = aliased[k];
}

template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DenseStepPass(int64_t n, const __grid_constant__ UpdateArgs<Rule, T> args) {
  using C = ComputeType<T>;
  C s[kMaxStepScalars];
  bool flag = false;
  const bool good = !StepHasFailed(args.failed) && LoadScalars(args, s, &flag);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    C v[Rule::kVariables];
#pragma unroll
    for (int k = 0; k < Rule::kVariables; ++k) v[k] = Widen(args.in[k][i]);
    // Without a step new memory still has to get the old values.
    if (good) Change(args, v, s, Widen(args.grad[i]), flag);
#pragma unroll
    for (int k = 0; k < Rule::kVariables; ++k) args.out[k][i] = Narrow<T>(v[k]);
  }
}

/// One thread makes all steps of an element, in the order of the gradient's rows.
template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SparseStepPass(const RowSpan span, const __grid_constant__ UpdateArgs<Rule, T> args) {
  using C = ComputeType<T>;
  C s[kMaxStepScalars];
  bool flag = false;
  if (StepHasFailed(args.failed) || !LoadScalars(args, s, &flag)) return;
  const int64_t width = args.width, n = span.count * width;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const int64_t first = i / width, column = i % width;
    const int64_t row = span.FirstOfRow(first);
    if (row < 0) continue;
    const int64_t at = row * width + column, end = span.EndOfRow(first);
    C v[Rule::kVariables];
#pragma unroll
    for (int k = 0; k < Rule::kVariables; ++k) v[k] = Widen(args.out[k][at]);
    for (int64_t k = first; k < end; ++k) {
      Change(args, v, s, Widen(args.grad[span.places[k] * width + column]), flag);
      // Each step finds what the one before has stored.
#pragma unroll
      for (int k = 0; k < Rule::kVariables; ++k) v[k] = Widen(Narrow<T>(v[k]));
    }
#pragma unroll
    for (int k = 0; k < Rule::kVariables; ++k) args.out[k][at] = Narrow<T>(v[k]);
  }
}

template <typename Rule, typename T>
UpdateArgs<Rule, T> ArgsOf(const Update& update) {
  const auto bounds = Rule::Bounds(update.flag);
  UpdateArgs<Rule, T> args{};
  for (int k = 0; k < Rule::kVariables; ++k) {
    args.in[k] = update.current[k]->data<T>();
    args.out[k] = update.next[k]->data<T>();
    args.same_as[k] = update.same_as[k];
  }
  args.grad = update.ctx.input(update.inputs.grad).data<T>();
  args.scalars = ScalarsOf(update, bounds);
  args.aliased = update.aliased;
  args.flag = update.flag;
  args.width = update.width;
  if (update.is_sparse() || !bounds.empty()) {
    args.check = AddUpdateCheck(update, args.scalars);
  }
  return args;
}

template <typename Rule, typename T>
Status QueueDenseStep(const Update& update) {
  UpdateArgs<Rule, T> args = ArgsOf<Rule, T>(update);
  TENON_ASSIGN_OR_RETURN(const StepState state, QueueStepState(update.ctx));
  args.failed = state.failed;
  const int64_t n = update.current[0]->num_elements();
  DenseStepPass<Rule, T><<<GridBlocks(n), kBlockThreads, 0, StreamOf(update.ctx)>>>(n, args);
  return LaunchStatus();
}

template <typename Rule, typename T>
Status QueueSparseStep(const Update& update) {
  UpdateArgs<Rule, T> args = ArgsOf<Rule, T>(update);
  TENON_ASSIGN_OR_RETURN(const SortedRows sorted,
                         SortRows(update.ctx, update.ctx.input(update.inputs.indices),
                                  update.current[0]->dim(0), args.check));
  // Behind the sorting, which finds indices that are none.
  TENON_ASSIGN_OR_RETURN(const StepState state, QueueStepState(update.ctx));
  args.failed = state.failed;
  // Also without an element: scalars are checked all the same.
  SparseStepPass<Rule, T>
      <<<GridBlocks(sorted.span.count * args.width), kBlockThreads, 0, StreamOf(update.ctx)>>>(
          sorted.span, args);
  return LaunchStatus();
}

/// Stands for a rule of steps that the optimizer does not have.
struct NoRule {};

/// The rule's kernels for the dtypes of the GPU.
template <typename Rule, bool kSparse>
UpdateRuleInfo DescribeOnDevice() {
  UpdateRuleInfo info;
  if constexpr (!std::is_same_v<Rule, NoRule>) {
    info.flag = Rule::kFlag;
    info.no_empty_rows = Rule::kNoEmptyRows;
    const auto add = [&]<typename... Ts>(TypeList<Ts...>) {
      const auto one = [&]<typename T>(T*) {
        if constexpr (!kIsComplex<T>) {
          info.types.push_back(kDTypeOf<T>);
          auto& queue = info.steps[static_cast<int>(kDTypeOf<T>)];
          if constexpr (kSparse) {
            queue = &QueueSparseStep<Rule, T>;
          } else {
            queue = &QueueDenseStep<Rule, T>;
          }
        }
      };
      (one(static_cast<Ts*>(nullptr)), ...);
    };
    add(typename Rule::Types());
  }
  return info;
}

/// Registers the steps of an optimizer.
template <typename DenseRule, typename SparseRule>
void AddSteps(OpRegistry& ops, std::string_view name) {
  AddDeviceSteps(ops, kCuda, name, DescribeOnDevice<DenseRule, false>(),
                 DescribeOnDevice<SparseRule, true>());
}

}  // namespace tenon::cuda
