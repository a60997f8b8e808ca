// SPDX-License-Identifier: Apache-2.0
//
// Updates of variables in the GPU's memory: as a whole, and of the rows and slices that indices
// name. A step that has failed until then makes none.
#include "ops/array/index_tuples.h"
#include "ops/cuda/change_rows.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/failure.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/state/assign.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon::cuda {
namespace {

template <typename T>
struct AddElement {
  const T *a, *b;
  T* out;
  bool subtract;
  __device__ void operator()(int64_t i) const {
    const auto x = Widen(a[i]), y = Widen(b[i]);
    out[i] = Narrow<T>(subtract ? Minus(x, y) : Plus(x, y));
  }
  __device__ void Keep(int64_t i) const { out[i] = a[i]; }
};

/// Assigns elements of the size of E.
template <typename E>
struct AssignElement {
  const E *current, *value;
  E* out;
  __device__ void operator()(int64_t i) const { out[i] = value[i]; }
  __device__ void Keep(int64_t i) const { out[i] = current[i]; }
};

Status AssignUnlessFailed(const KernelContext& ctx, const Tensor& current, const Tensor& value,
                          Tensor* next) {
  Status status;
  DispatchBytes(value.dtype(), [&]<typename E>(E) {
    status.Update(UpdateEach(ctx, value.num_elements(),
                             AssignElement<E>{static_cast<const E*>(current.raw_data()),
                                              static_cast<const E*>(value.raw_data()),
                                              static_cast<E*>(next->raw_data())}));
  });
  return status;
}

Status AssignKernel(KernelContext& ctx, bool validate_shape) {
  return AssignToReference(ctx, validate_shape, AssignUnlessFailed);
}
Status AssignVariableKernel(KernelContext& ctx, const ResourceCache<VariableResource>& cache,
                            bool validate_shape) {
  return AssignToHandle(ctx, cache, validate_shape, AssignUnlessFailed);
}

template <Update kUpdate>
Status UpdateOnDevice(KernelContext& ctx, VariableResource* variable, const Tensor& value) {
  if (value.dtype() != variable->dtype()) {
    return InvalidArgument("the variable is ", variable->dtype(), ", the value is ", value.dtype());
  }
  return variable->Modify([&](const Tensor& current, Tensor* next) -> Status {
    TENON_RETURN_IF_ERROR(CheckUpdateShape(current, value));
    return DispatchStatus(value.dtype(), RealTypes(), [&]<typename T>(T) {
      return UpdateEach(ctx, value.num_elements(),
                        AddElement<T>{current.data<T>(), value.data<T>(), next->data<T>(),
                                      kUpdate == Update::kSubtract});
    });
  });
}

template <Update kUpdate>
Status AssignUpdateKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.input(1).dtype()));
  TENON_RETURN_IF_ERROR(UpdateOnDevice<kUpdate>(ctx, variable.get(), ctx.input(1)));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
  return OkStatus();
}

/// What is noted of an integer that is to be divided by 0; not the word of an index.
constexpr uint64_t kDividedByZero = 1;

template <typename T>
struct CheckDivisor {
  const T* divisors;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    if (divisors[i] == T(0)) NoteFailure(check, kDividedByZero);
  }
};

/// Queues a look for zeros among integers, since an update is made as a whole or not at all.
Status QueueDivisorCheck(KernelContext& ctx, const Tensor& divisors, RunCheck check) {
  Status status;
  Dispatch(divisors.dtype(), IntTypes(), [&]<typename T>(T) {
    status.Update(
        ForEach(ctx, divisors.num_elements(), CheckDivisor<T>{divisors.data<T>(), check}));
  });
  return status;
}

using Scatter = Status (*)(KernelContext&, const NodeIdentity&, VariableResource*, Update,
                           const Tensor& indices, const Tensor& updates);

Status DivisionError() { return InvalidArgument("Integer division by zero"); }

Status ScatterRows(KernelContext& ctx, const NodeIdentity& node, VariableResource* variable,
                   Update update, const Tensor& indices, const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckUpdateType(*variable, updates));
  return variable->ModifyInPlace([&](Tensor* value) -> Status {
    TENON_RETURN_IF_ERROR(CheckHasRows(*value));
    TENON_RETURN_IF_ERROR(CheckRowUpdates(*value, indices, updates));
    const int64_t limit = value->dim(0);
    const RunCheck check =
        AddCheck(ctx, node, [limit, shape = indices.shape()](uint64_t word) -> Status {
          if (word == kDividedByZero) return DivisionError();
          const IndexNote note = NotedIndex(word);
          return NotInRange(note.value, limit, ElementName("indices", shape.dims(), note.place));
        });
    TENON_ASSIGN_OR_RETURN(const SortedRows sorted, SortRows(ctx, indices, limit, check));
    // Behind the look at the indices, of whose error the CPU speaks second.
    if (update == Update::kDivide) {
      TENON_RETURN_IF_ERROR(QueueDivisorCheck(ctx, updates, check));
    }
    const int64_t width = Product(value->shape().dims(), 1, value->rank());
    return ChangeRows(ctx, update, sorted.span, width, updates, updates.rank() == 0, value);
  });
}

Status ScatterSlices(KernelContext& ctx, const NodeIdentity& node, VariableResource* variable,
                     Update update, const Tensor& indices, const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckUpdateType(*variable, updates));
  return variable->ModifyInPlace([&](Tensor* value) -> Status {
    const Shape& shape = value->shape();
    TENON_RETURN_IF_ERROR(CheckUpdateTuples(indices.shape(), updates.shape(), shape));
    TENON_ASSIGN_OR_RETURN(const TupleSizes sizes, SizesOfTuples(indices.shape(), shape));
    TENON_ASSIGN_OR_RETURN(const TupleRows tuples, TupleRows::Create(indices, shape));
    const RunCheck check = AddTupleCheck(ctx, node, indices.shape(), "shape", shape);
    // Nothing may be as many tuples as one likes.
    const bool none = indices.num_elements() == 0 && updates.num_elements() == 0;
    const int64_t limit = Product(shape.dims(), 0, sizes.depth);
    TENON_ASSIGN_OR_RETURN(const SortedRows sorted,
                           SortTuples(ctx, tuples, none ? 0 : sizes.count, limit, check));
    return ChangeRows(ctx, update, sorted.span, sizes.width, updates, false, value);
  });
}

template <Scatter kScatter, Update kUpdate>
Status ScatterUpdateKernel(KernelContext& ctx, const VariableInput& input,
                           const NodeIdentity& node) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.input(2).dtype()));
  TENON_RETURN_IF_ERROR(kScatter(ctx, node, variable.get(), kUpdate, ctx.input(1), ctx.input(2)));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
  return OkStatus();
}

template <Update kUpdate>
void AddScatter(OpRegistry& ops, std::string_view name, const DTypeVector& types) {
  for (const ScatterOp& op : ScatterOps(ops, name)) {
    AddKernel(ops, op.name,
              op.tuples ? ScatterUpdateKernel<ScatterSlices, kUpdate>
                        : ScatterUpdateKernel<ScatterRows, kUpdate>,
              {.types = {{op.type_attr, types}}});
  }
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaVariableUpdates(OpRegistry& ops) {
  using cuda::AddKernel, cuda::AddScatter, cuda::AssignUpdateKernel;
  const DTypeVector real = DTypesOf(RealTypes()), plain = DTypesOf(PlainTypes());
  AddKernel(ops, "Assign", cuda::AssignKernel,
            {.types = {{"T", plain}}, .attrs = {"validate_shape"}, .cheap = true});
  AddKernel(ops, "AssignVariableOp", cuda::AssignVariableKernel,
            {.types = {{"dtype", plain}}, .attrs = {"validate_shape"}, .cheap = true});
  AddKernel(ops, "AssignAdd", AssignUpdateKernel<Update::kAdd>, {.types = {{"T", real}}});
  AddKernel(ops, "AssignSub", AssignUpdateKernel<Update::kSubtract>, {.types = {{"T", real}}});
  AddKernel(ops, "AssignAddVariableOp", AssignUpdateKernel<Update::kAdd>,
            {.types = {{"dtype", real}}});
  AddKernel(ops, "AssignSubVariableOp", AssignUpdateKernel<Update::kSubtract>,
            {.types = {{"dtype", real}}});
  AddScatter<Update::kAssign>(ops, "Update", plain);
  AddScatter<Update::kAdd>(ops, "Add", real);
  AddScatter<Update::kSubtract>(ops, "Sub", real);
  AddScatter<Update::kMultiply>(ops, "Mul", real);
  AddScatter<Update::kDivide>(ops, "Div", real);
  AddScatter<Update::kMin>(ops, "Min", real);
  AddScatter<Update::kMax>(ops, "Max", real);
}

}  // namespace tenon
