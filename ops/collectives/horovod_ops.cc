// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/denormals.h"
#include "core/base/exceptions.h"
#include "core/base/strings.h"
#include "core/device/communicator.h"
#include "core/device/device_queue.h"
#include "core/gradient/gradient.h"
#include "core/op/op_registry.h"
#include "core/tensor/scaling.h"
#include "ops/array/array_basic_ops.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/composition.h"

namespace tenon {
namespace {

/// Horovod's numbers of what a reduction does.
enum class ReduceOp : int64_t { kMean = 0, kSum = 1, kMin = 3, kMax = 4, kProduct = 5 };

StatusOr<Communicator*> CommunicatorOf(const KernelContext& ctx) {
  if (ctx.run().communicator != nullptr) return ctx.run().communicator;
  return FailedPrecondition(
      "this process is no rank of a job: its program has to join the others (JoinRanks), and give "
      "the session what it joined");
}

/// A copy that nobody else has, to be written in place.
StatusOr<Tensor> Owned(Tensor data) {
  if (data.OwnsBuffer() && !data.follows()) return data;
  return data.Copy();
}

/// A kernel that does something together with all ranks, under the node's name. When the run is
/// cancelled meanwhile, the other ranks, which wait for this one, fail as well.
///
/// On a device with memory of its own the data stay there if the ranks have joined by that device
/// and its library does all of it. Else they are copied to the host's memory, and the result back.
class RanksKernel : public AsyncKernel {
 public:
  explicit RanksKernel(KernelConstruction& c) : AsyncKernel(c), what_(c.name()) {
    const auto set = c.Attr<int64_t>("process_set_id");
    if (set != 0) c.Fail(Unimplemented("process sets are not supported, found number ", set));
    const size_t slash = what_.rfind('/');
    if (c.Attr<bool>("ignore_name_scope") && slash != std::string::npos) what_.erase(0, slash + 1);
  }

  void ComputeAsync(KernelContext& ctx, Done done) const final {
    const auto found = CommunicatorOf(ctx);
    if (!found.ok()) return done(found.status());
    Communicator& ranks = **found;
    if (ctx.input(0).IsHostMemory()) {
      return Begin(ctx, ranks, ctx.TakeInput(0), ctx.may_block, std::move(done));
    }
    DeviceQueue& queue = *ctx.device().queue();
    const int64_t step = ctx.device_run().id;
    const bool stays =
        ranks.device_memory() == &ctx.device().allocator() && IsDoneOnDevice(ctx.input(0).dtype());
    if (!stays) {
      return queue.CopyToHost(ctx.TakeInput(0), step,
                              [this, &ctx, &ranks, done = std::move(done)](StatusOr<Tensor> copy) {
                                if (!copy.ok()) return done(copy.status());
                                Begin(ctx, ranks, *std::move(copy), /*may_block=*/false, done);
                              });
    }
    StatusOr<Tensor> data = ctx.TakeInput(0);
    if (is_in_place_) data = Owned(*std::move(data));
    if (!data.ok()) return done(data.status());
    // An empty copy comes when all is done that is queued, what makes the data and uses them too.
    queue.CopyToHost(Tensor(DType::kUInt8, {0}, BufferRef()), step,
                     [this, &ctx, &ranks, data = *std::move(data),
                      done = std::move(done)](const StatusOr<Tensor>& reached) mutable {
                       if (!reached.ok()) return done(reached.status());
                       Begin(ctx, ranks, std::move(data), /*may_block=*/false, std::move(done));
                     });
  }

 protected:
  /// `is_in_place`: the collective writes its data.
  RanksKernel(KernelConstruction& c, bool is_in_place) : RanksKernel(c) {
    is_in_place_ = is_in_place;
  }

  /// Whether the library of a device can do it.
  virtual bool IsDoneOnDevice(DType) const { return true; }
  /// The collective of `data`, which it may write where it is in place, but for the name.
  virtual StatusOr<Collective> Prepare(const KernelContext& ctx, Tensor data,
                                       const Communicator& ranks) const = 0;
  /// Output 0, which is by default the result; makes the others.
  virtual StatusOr<Tensor> Finish(KernelContext&, CollectiveResult result,
                                  const Communicator&) const {
    return std::move(result.data);
  }

 private:
  void Begin(KernelContext& ctx, Communicator& ranks, StatusOr<Tensor> data, bool may_block,
             Done done) const {
    const FlushDenormals flush;
    const bool is_on_host = data->IsHostMemory();
    if (is_in_place_ && is_on_host) data = Owned(*std::move(data));
    if (!data.ok()) return done(data.status());
    // No exception may leave a device's thread.
    StatusOr<Collective> collective =
        CatchExceptions([&] { return Prepare(ctx, *std::move(data), ranks); });
    if (!collective.ok()) return done(collective.status());
    collective->name = what_;
    collective->on_device = !is_on_host;
    DeviceQueue* const queue = ctx.device().queue();
    Allocator& memory =
        queue != nullptr && is_on_host ? queue->host_allocator() : ctx.device().allocator();
    collective->allocate = [&memory, type = collective->data.dtype()](const Shape& shape) {
      return Tensor::Allocate(memory, type, shape);
    };
    Cancellation* const cancellation = ctx.run().cancellation;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
    if (cancellation != nullptr) {
      token = cancellation->Register([&ranks](const Status& why) { ranks.Abort(why); });
      if (token == Cancellation::kAlreadyCancelled) {
        ranks.Abort(cancellation->status());
        return done(cancellation->status());
      }
    }
    auto finish = [this, &ctx, &ranks, cancellation, token,
                   done = std::move(done)](StatusOr<CollectiveResult> result) {
      if (cancellation != nullptr) cancellation->Deregister(token);
      if (!result.ok()) return done(result.status());
      const FlushDenormals flush;  // as where Prepare runs
      done(Return(ctx, Finish(ctx, *std::move(result), ranks)));
    };
    if (may_block) {
      finish(ranks.Run(*std::move(collective)));
    } else {
      ranks.Start(*std::move(collective), std::move(finish));
    }
  }

  /// Makes it output 0, in the device's memory.
  static Status Return(KernelContext& ctx, StatusOr<Tensor> result) {
    DeviceQueue* const queue = ctx.device().queue();
    if (result.ok() && queue != nullptr && result->IsHostMemory()) {
      result = queue->CopyToDevice(*result);
    }
    return ctx.Return(std::move(result));
  }

  std::string what_;
  bool is_in_place_ = false;
};

/// A kernel that adds up, or the like.
class ReducingKernel : public RanksKernel {
 public:
  /// `after`: a factor for what comes out.
  ReducingKernel(KernelConstruction& c, double after)
      : RanksKernel(c, /*is_in_place=*/true),
        op_(static_cast<ReduceOp>(c.Attr<int64_t>("reduce_op"))),
        after_(after) {
    const auto number = static_cast<int64_t>(op_);
    if (number < 0 || number > 5 || number == 2) {
      c.Fail(InvalidArgument("reduce_op must be 0, 1, 3, 4 or 5, found ", number));
    }
  }

 protected:
  Reduction reduction(DType dtype) const {
    switch (op_) {
      case ReduceOp::kMean:
        return IsMeanOfRanks(dtype) ? Reduction::kMean : Reduction::kSum;
      case ReduceOp::kMin:
        return Reduction::kMin;
      case ReduceOp::kMax:
        return Reduction::kMax;
      case ReduceOp::kProduct:
        return Reduction::kProduct;
      default:
        return Reduction::kSum;
    }
  }
  /// Multiplies a result by what is left to do.
  void Scale(const Communicator& ranks, Tensor* result) const {
    const bool is_sum_of_mean = op_ == ReduceOp::kMean && !IsMeanOfRanks(result->dtype());
    ScaleBy(is_sum_of_mean ? after_ / ranks.size() : after_, result);
  }
  static void ScaleBy(double factor, Tensor* data) {
    if (factor == 1.0) return;
    ScaleNumbers(data->dtype(), data->raw_data(), static_cast<size_t>(data->num_elements()),
                 factor);
  }
  bool IsDoneOnDevice(DType dtype) const override {
    return after_ == 1.0 && (op_ != ReduceOp::kMean || IsFloating(dtype));
  }
  bool is_sum() const { return op_ == ReduceOp::kSum || op_ == ReduceOp::kMean; }

 private:
  /// Whether the ranks make the mean; else its factor and the one for what comes out are one.
  bool IsMeanOfRanks(DType dtype) const { return IsFloating(dtype) && after_ == 1.0; }

  const ReduceOp op_;
  const double after_;
};

class AllReduceKernel final : public ReducingKernel {
 public:
  explicit AllReduceKernel(KernelConstruction& c)
      : ReducingKernel(c, c.Attr<float>("postscale_factor")),
        before_(c.Attr<float>("prescale_factor")) {}

 private:
  bool IsDoneOnDevice(DType dtype) const override {
    return before_ == 1.0 && ReducingKernel::IsDoneOnDevice(dtype);
  }
  StatusOr<Collective> Prepare(const KernelContext&, Tensor data,
                               const Communicator&) const override {
    const Reduction how = reduction(data.dtype());
    ScaleBy(before_, &data);  // by 1 in a device's memory
    return Collective{
        .kind = Collective::Kind::kAllReduce, .data = std::move(data), .reduction = how};
  }
  StatusOr<Tensor> Finish(KernelContext&, CollectiveResult result,
                          const Communicator& ranks) const override {
    Scale(ranks, &result.data);
    return std::move(result.data);
  }

  const double before_;
};

class ReduceScatterKernel final : public ReducingKernel {
 public:
  explicit ReduceScatterKernel(KernelConstruction& c) : ReducingKernel(c, /*after=*/1.0) {
    if (!is_sum()) c.Fail(Unimplemented("reduce_op must be 0 (mean) or 1 (sum)"));
  }

 private:
  StatusOr<Collective> Prepare(const KernelContext&, Tensor data,
                               const Communicator&) const override {
    if (data.rank() == 0) return InvalidArgument("a scalar has no rows to deal");
    const Reduction how = reduction(data.dtype());
    return Collective{
        .kind = Collective::Kind::kAllReduce, .data = std::move(data), .reduction = how};
  }
  StatusOr<Tensor> Finish(KernelContext&, CollectiveResult result,
                          const Communicator& ranks) const override {
    const int64_t rows = result.data.dim(0), size = ranks.size(), rank = ranks.rank();
    const int64_t begin = rows / size * rank + std::min(rank, rows % size);
    const int64_t end = begin + rows / size + (rank < rows % size ? 1 : 0);
    TENON_ASSIGN_OR_RETURN(Tensor share, result.data.Slice(begin, end).Copy());
    Scale(ranks, &share);
    return share;
  }
};

class AllGatherKernel final : public RanksKernel {
 public:
  using RanksKernel::RanksKernel;

 private:
  StatusOr<Collective> Prepare(const KernelContext&, Tensor data,
                               const Communicator&) const override {
    if (data.rank() == 0) return InvalidArgument("a scalar has no rows to gather");
    return Collective{.kind = Collective::Kind::kAllGather, .data = std::move(data)};
  }
};

class AllToAllKernel final : public RanksKernel {
 public:
  using RanksKernel::RanksKernel;

 private:
  StatusOr<Collective> Prepare(const KernelContext& ctx, Tensor data,
                               const Communicator& ranks) const override {
    if (data.rank() == 0) return InvalidArgument("a scalar has no rows to deal");
    const auto splits = ctx.input(1).flat<int32_t>();
    const int64_t size = ranks.size();
    const bool is_even = splits.empty() && data.dim(0) % size == 0;
    if (!is_even && static_cast<int64_t>(splits.size()) != size) {
      return InvalidArgument("there are ", splits.size(), " splits for ", data.dim(0), " rows and ",
                             size, " ranks");
    }
    std::vector<int64_t> rows_to;
    rows_to.assign(static_cast<size_t>(size), data.dim(0) / size);
    std::copy(splits.begin(), splits.end(), rows_to.begin());
    return Collective{.kind = Collective::Kind::kAllToAll,
                      .data = std::move(data),
                      .rows_to = std::move(rows_to)};
  }
  StatusOr<Tensor> Finish(KernelContext& ctx, CollectiveResult result,
                          const Communicator& ranks) const override {
    TENON_ASSIGN_OR_RETURN(Tensor from,
                           Tensor::Allocate(CpuAllocator(), DType::kInt32, {ranks.size()}));
    std::transform(result.rows_from.begin(), result.rows_from.end(), from.data<int32_t>(),
                   [](int64_t rows) { return static_cast<int32_t>(rows); });
    ctx.set_output(1, std::move(from));
    return std::move(result.data);
  }
};

class BroadcastKernel final : public RanksKernel {
 public:
  explicit BroadcastKernel(KernelConstruction& c)
      : RanksKernel(c, /*is_in_place=*/true),
        root_(static_cast<int>(c.Attr<int64_t>("root_rank"))) {}

 private:
  StatusOr<Collective> Prepare(const KernelContext&, Tensor data,
                               const Communicator&) const override {
    return Collective{.kind = Collective::Kind::kBroadcast, .data = std::move(data), .root = root_};
  }

  const int root_;
};

template <int (Communicator::*number)() const>
Status NumberKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Communicator* const ranks, CommunicatorOf(ctx));
  ctx.set_output(0, Tensor::Scalar<int32_t>((ranks->*number)()));
  return OkStatus();
}

Status RowsShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 1));
  c.set_output(0, input.WithDim(0, PartialShape::kUnknownDim));
  return OkStatus();
}

/// The derivative of a sum over ranks is the sum of the derivatives on all.
void AllReduceGrad(GradContext& g) {
  HorovodAllreduceOptions options;
  options.reduce_op = g.Attr<int64_t>("reduce_op");
  if (options.reduce_op > 1) {
    return g.Fail(Unimplemented("a least, greatest or product over ranks has no gradient here"));
  }
  options.prescale_factor = g.Attr<float>("prescale_factor");
  options.postscale_factor = g.Attr<float>("postscale_factor");
  g.dx(0) = HorovodAllreduce(g.dy(0), options);
}

/// The derivatives of this rank's rows, of which all ranks have made use.
void AllGatherGrad(GradContext& g) {
  const Output rows = Slice(ShapeOf(g.in(0)), {0}, {1});
  const Output before = Slice(HorovodAllgather(rows), {0}, Reshape(HorovodRank(), {1}));
  const Output begin = Sum(before, 0), end = begin + Reshape(rows, std::vector<int32_t>());
  g.dx(0) = GatherV2(HorovodAllreduce(g.dy(0)), Range(begin, end, 1), 0);
}

/// The derivative belongs to the rank whose tensor it was.
void BroadcastGrad(GradContext& g) {
  const Output sum = HorovodAllreduce(g.dy(0));
  const auto root = static_cast<int32_t>(g.Attr<int64_t>("root_rank"));
  g.dx(0) = SelectV2(Equal(HorovodRank(), root), sum, ZerosLike(sum));
}

const KernelOptions kAnywhere = {.memory = kAnyMemory};
constexpr char kNeedsRanks[] = "needs ranks; collective_ops_test covers it";

}  // namespace

void RegisterHorovodOps(OpRegistry& ops) {
  ops.Add<AllReduceKernel>("HorovodAllreduce", UnchangedShape, kAnywhere)
      .Grad(AllReduceGrad)
      .NoExample(kNeedsRanks);
  ops.Add<AllGatherKernel>("HorovodAllgather", RowsShape, kAnywhere)
      .Grad(AllGatherGrad)
      .NoExample(kNeedsRanks);
  ops.Add<AllToAllKernel>("HorovodAlltoall", RowsShape, kAnywhere).NoExample(kNeedsRanks);
  ops.Add<BroadcastKernel>("HorovodBroadcast", UnchangedShape, kAnywhere)
      .Grad(BroadcastGrad)
      .NoExample(kNeedsRanks);
  ops.Add<ReduceScatterKernel>("HorovodReducescatter", RowsShape, kAnywhere).NoExample(kNeedsRanks);
  ops.Add("HorovodRank", NumberKernel<&Communicator::rank>).NoExample(kNeedsRanks);
  ops.Add("HorovodSize", NumberKernel<&Communicator::size>).NoExample(kNeedsRanks);
  ops.Add("HorovodLocalRank", NumberKernel<&Communicator::local_rank>).NoExample(kNeedsRanks);
  ops.Add("HorovodLocalSize", NumberKernel<&Communicator::local_size>).NoExample(kNeedsRanks);
}

}  // namespace tenon
