// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/array/index_tuples.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mover.h"
#include "ops/cuda/reduce_segments.h"
#include "ops/cuda/register.h"
#include "ops/cuda/tuple_rows.h"
#include "ops/math/segments.h"

namespace tenon {
namespace cuda {
namespace {

/// Ids as keys, by which rows are grouped; negative ones, and with an error those that are too
/// large, belong to no segment.
struct UnsortedKey {
  IndexReader ids;
  int64_t segments;
  uint64_t* keys;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    const int64_t id = ids[i];
    if (id >= segments) NoteIndex(check, i, id);
    keys[i] = static_cast<uint64_t>(id < 0 || id >= segments ? segments : id);
  }
};

template <Reduction kReduction>
Status UnsortedSegmentKernel(KernelContext& ctx, const NodeIdentity& node) {
  const Tensor &data = ctx.input(0), &ids = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int64_t segments, ReadNumSegments(ctx));
  const auto row = data.shape().dims().subspan(ids.rank());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({segments}, row)));
  const int64_t n = ids.num_elements();
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {n}));
  if (n > 0) {
    RunCheck check = AddCheck(ctx, node, [shape = ids.shape(), segments](uint64_t word) {
      const IndexNote note = NotedIndex(word);
      return SegmentOutOfRange(shape, note.place, note.value, segments);
    });
    TENON_RETURN_IF_ERROR(
        ForEach(ctx, n, UnsortedKey{IndexReader(ids), segments, keys.data<uint64_t>(), check}));
  }
  if (out->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const GroupedRows grouped, GroupRows(ctx, keys, segments));
  return ReduceGrouped(ctx, kReduction, data, grouped, Product(row), /*zero_if_empty=*/false, out);
}

/// Sorted ids as keys. What is wrong is noted by the two ids that stand in the wrong order, or by
/// the first one when it is negative.
struct SortedKey {
  IndexReader ids;
  int64_t segments;
  uint64_t* keys;
  RunCheck order_check, range_check;
  __device__ void operator()(int64_t i) const {
    const int64_t id = ids[i], before = i > 0 ? ids[i - 1] : id;
    if (id < before && before >= 0) NoteIndex(order_check, before, id);
    if (id < 0) NoteIndex(range_check, i, id);
    keys[i] = static_cast<uint64_t>(id < 0 || id >= segments ? segments : id);
  }
};

/// How many segments there are, the last id says: once the host has it, the rest is queued.
template <Reduction kReduction>
class SegmentKernel final : public AsyncKernel {
 public:
  explicit SegmentKernel(KernelConstruction& c) : AsyncKernel(c), node_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    if (const Status status = CheckSegmentIds(data, ids); !status.ok()) return done(status);
    const int64_t n = ids.dim(0);
    if (n == 0) return done(Reduce(ctx, 0));
    ctx.device().queue()->CopyToHost(ids.Slice(n - 1, n), ctx.device_run().id,
                                     [this, &ctx, done](StatusOr<Tensor> last) {
                                       done(last.ok() ? ReduceTo(ctx, *last) : last.status());
                                     });
  }

 private:
  Status ReduceTo(KernelContext& ctx, const Tensor& last) const {
    TENON_ASSIGN_OR_RETURN(const IndexVector id, ReadIndices(last, "segment_ids"));
    TENON_ASSIGN_OR_RETURN(const int64_t segments, SortedSegments(id));
    return Reduce(ctx, segments);
  }

  Status Reduce(KernelContext& ctx, int64_t segments) const {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    const auto row = data.shape().dims().subspan(1);
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({segments}, row)));
    const int64_t n = ids.dim(0);
    if (n == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {n}));
    RunCheck order_check = AddCheck(ctx, node_, [](uint64_t word) {
      const IndexNote note = NotedIndex(word);
      return InvalidArgument("segment ids are not increasing: ", note.place, " comes before ",
                             note.value);
    });
    RunCheck range_check = AddCheck(ctx, node_, [segments](uint64_t word) {
      return InvalidArgument("Segment id ", NotedIndex(word).value, " out of range [0, ", segments,
                             "), possibly because 'segment_ids' input is not sorted.");
    });
    TENON_RETURN_IF_ERROR(ForEach(
        ctx, n,
        SortedKey{IndexReader(ids), segments, keys.data<uint64_t>(), order_check, range_check}));
    if (out->num_elements() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const GroupedRows grouped, GroupRows(ctx, keys, segments));
    return ReduceGrouped(ctx, kReduction, data, grouped, Product(row), /*zero_if_empty=*/true, out);
  }

  const NodeIdentity node_;
};

struct TupleKey {
  TupleRows tuples;
  int64_t rows;
  uint64_t* keys;
  RunCheck check;
  __device__ void operator()(int64_t i) const {
    int64_t bad = 0;
    const int64_t row = tuples.Row(i, &bad);
    if (row < 0) NoteIndex(check, i, bad);
    keys[i] = static_cast<uint64_t>(row < 0 ? rows : row);
  }
};

/// Updates of one row are added in their order, so that the sum is the same in every run.
Status ScatterNdKernel(KernelContext& ctx, const Tensor& indices, const Tensor& updates,
                       const Shape& shape, const NodeIdentity& node) {
  TENON_RETURN_IF_ERROR(CheckUpdateTuples(indices.shape(), updates.shape(), shape));
  TENON_ASSIGN_OR_RETURN(const TupleSizes sizes, SizesOfTuples(indices.shape(), shape));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  TENON_ASSIGN_OR_RETURN(const TupleRows tuples, TupleRows::Create(indices, shape));
  // Without updates the tuples are looked at all the same, where they have numbers.
  const bool looks = sizes.depth > 0 && sizes.count > 0;
  RunCheck check = looks ? AddTupleCheck(ctx, node, indices.shape(), "shape", shape) : RunCheck();
  if (updates.num_elements() == 0) {
    TENON_RETURN_IF_ERROR(kDeviceMover.zero(ctx, out));
    return looks ? CheckTuples(ctx, tuples, sizes.count, check) : OkStatus();
  }
  const int64_t rows = Product(shape.dims(), 0, sizes.depth);
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {sizes.count}));
  TENON_RETURN_IF_ERROR(
      ForEach(ctx, sizes.count, TupleKey{tuples, rows, keys.data<uint64_t>(), check}));
  TENON_ASSIGN_OR_RETURN(const GroupedRows grouped, GroupRows(ctx, keys, rows));
  return ReduceGrouped(ctx, Reduction::kSum, updates, grouped, sizes.width, true, out);
}

}  // namespace
}  // namespace cuda

void RegisterCudaSegments(OpRegistry& ops) {
  using cuda::SegmentKernel;
  using cuda::UnsortedSegmentKernel;
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  ops.Get("SegmentSum").Kernel<SegmentKernel<Reduction::kSum>>(kCuda, real);
  ops.Get("SegmentMean").Kernel<SegmentKernel<Reduction::kMean>>(kCuda, real);
  ops.Get("SegmentProd").Kernel<SegmentKernel<Reduction::kProd>>(kCuda, real);
  ops.Get("SegmentMax").Kernel<SegmentKernel<Reduction::kMax>>(kCuda, real);
  ops.Get("SegmentMin").Kernel<SegmentKernel<Reduction::kMin>>(kCuda, real);
  cuda::AddKernel(ops, "UnsortedSegmentSum", UnsortedSegmentKernel<Reduction::kSum>, real);
  cuda::AddKernel(ops, "UnsortedSegmentProd", UnsortedSegmentKernel<Reduction::kProd>, real);
  cuda::AddKernel(ops, "UnsortedSegmentMax", UnsortedSegmentKernel<Reduction::kMax>, real);
  cuda::AddKernel(ops, "UnsortedSegmentMin", UnsortedSegmentKernel<Reduction::kMin>, real);
  cuda::AddKernel(
      ops, "ScatterNd", cuda::ScatterNdKernel,
      {.types = {{"T", DTypesOf(decltype(ConcatTypes(RealTypes(), TypeList<bool>()))())}}});
}

}  // namespace tenon
