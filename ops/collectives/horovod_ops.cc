// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/denormals.h"
#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "core/device/communicator.h"
#include "core/gradient/gradient.h"
#include "core/op/op_registry.h"
#include "ops/array/array_basic_ops.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/composition.h"

namespace tenon {
namespace {

/// Horovod's numbers of what a reduction does.
enum class ReduceOp : int64_t { kMean = 0, kSum = 1, kMin = 3, kMax = 4, kProduct = 5 };

constexpr double kCostOfScaling = 0.3;  // ns an element

template <typename T, typename Factor = double>
void Scale(Factor factor, Tensor* data) {
  T* const values = data->data<T>();
  SerialFor(data->num_elements(), kCostOfScaling, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      values[i] = static_cast<T>(static_cast<Factor>(values[i]) * factor);
    }
  });
}

/// A product of two floats is exact as a double: where the factor is a float, as that of the mean
/// over 2, 4 or 8 ranks, the product of floats is the same number, in two thirds of the time.
void ScaleFloats(double factor, Tensor* data) {
  const auto rounded = static_cast<float>(factor);
  if (static_cast<double>(rounded) == factor) {
    Scale<float, float>(rounded, data);
  } else {
    Scale<float>(factor, data);
  }
}

/// Integers are cut off after the product, as Horovod does it.
void ScaleBy(double factor, Tensor* data) {
  if (factor == 1.0) return;
  switch (data->dtype()) {
    case DType::kFloat:
      return ScaleFloats(factor, data);
    case DType::kDouble:
      return Scale<double>(factor, data);
    case DType::kHalf:
      return Scale<Half>(factor, data);
    case DType::kBFloat16:
      return Scale<BFloat16>(factor, data);
    case DType::kInt8:
      return Scale<int8_t>(factor, data);
    case DType::kUInt8:
      return Scale<uint8_t>(factor, data);
    case DType::kInt32:
      return Scale<int32_t>(factor, data);
    case DType::kInt64:
      return Scale<int64_t>(factor, data);
    default:
      return;
  }
}

StatusOr<Communicator*> CommunicatorOf(const KernelContext& ctx) {
  if (ctx.run().communicator != nullptr) return ctx.run().communicator;
  return FailedPrecondition(
      "this process is no rank of a job: its program has to join the others (JoinRanks), and give "
      "the session what it joined");
}

/// A kernel that does something together with all ranks, under the node's name. When the run is
/// cancelled meanwhile, the other ranks, which wait for this one, fail as well.
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
    StatusOr<Collective> collective = Prepare(ctx, ranks);
    if (!collective.ok()) return done(collective.status());
    collective->name = what_;
    collective->allocate = [&ctx, type = collective->data.dtype()](const Shape& shape) {
      return ctx.AllocateTemp(type, shape);
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
    const bool blocks = ctx.may_block;
    auto finish = [this, &ctx, &ranks, cancellation, token,
                   done = std::move(done)](StatusOr<CollectiveResult> result) {
      if (cancellation != nullptr) cancellation->Deregister(token);
      if (!result.ok()) return done(result.status());
      const FlushDenormals flush;  // as where Prepare runs
      done(Finish(ctx, *std::move(result), ranks));
    };
    if (blocks) {
      finish(ranks.Run(*std::move(collective)));
    } else {
      ranks.Start(*std::move(collective), std::move(finish));
    }
  }

 protected:
  /// The collective, but for its name.
  virtual StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator& ranks) const = 0;
  /// Makes the outputs: by default the result is the only one.
  virtual Status Finish(KernelContext& ctx, CollectiveResult result, const Communicator&) const {
    ctx.set_output(0, std::move(result.data));
    return OkStatus();
  }

 private:
  std::string what_;
};

/// A kernel that adds up, or the like.
class ReducingKernel : public RanksKernel {
 public:
  explicit ReducingKernel(KernelConstruction& c)
      : RanksKernel(c), op_(static_cast<ReduceOp>(c.Attr<int64_t>("reduce_op"))) {
    const auto number = static_cast<int64_t>(op_);
    if (number < 0 || number > 5 || number == 2) {
      c.Fail(InvalidArgument("reduce_op must be 0, 1, 3, 4 or 5, found ", number));
    }
  }

 protected:
  Reduction reduction() const {
    switch (op_) {
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
  double FactorOf(const Communicator& ranks) const {
    return op_ == ReduceOp::kMean ? 1.0 / ranks.size() : 1.0;
  }
  bool is_sum() const { return op_ == ReduceOp::kSum || op_ == ReduceOp::kMean; }

 private:
  const ReduceOp op_;
};

/// A copy of an input that nobody else has, to be written in place.
StatusOr<Tensor> OwnInput(KernelContext& ctx, int i) {
  Tensor taken = ctx.TakeInput(i);
  if (taken.OwnsBuffer() && !taken.follows()) return taken;
  return taken.Copy();
}

class AllReduceKernel final : public ReducingKernel {
 public:
  explicit AllReduceKernel(KernelConstruction& c)
      : ReducingKernel(c),
        before_(c.Attr<float>("prescale_factor")),
        after_(c.Attr<float>("postscale_factor")) {}

 private:
  StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator&) const override {
    TENON_ASSIGN_OR_RETURN(Tensor data, OwnInput(ctx, 0));
    ScaleBy(before_, &data);
    return Collective{
        .kind = Collective::Kind::kAllReduce, .data = std::move(data), .reduction = reduction()};
  }
  Status Finish(KernelContext& ctx, CollectiveResult result,
                const Communicator& ranks) const override {
    ScaleBy(after_ * FactorOf(ranks), &result.data);
    ctx.set_output(0, std::move(result.data));
    return OkStatus();
  }

  const double before_, after_;
};

class ReduceScatterKernel final : public ReducingKernel {
 public:
  explicit ReduceScatterKernel(KernelConstruction& c) : ReducingKernel(c) {
    if (!is_sum()) c.Fail(Unimplemented("reduce_op must be 0 (mean) or 1 (sum)"));
  }

 private:
  StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator&) const override {
    if (ctx.input(0).rank() == 0) return InvalidArgument("a scalar has no rows to deal");
    TENON_ASSIGN_OR_RETURN(Tensor data, OwnInput(ctx, 0));
    return Collective{.kind = Collective::Kind::kAllReduce, .data = std::move(data)};
  }
  Status Finish(KernelContext& ctx, CollectiveResult result,
                const Communicator& ranks) const override {
    const int64_t rows = result.data.dim(0), size = ranks.size(), rank = ranks.rank();
    const int64_t begin = rows / size * rank + std::min(rank, rows % size);
    const int64_t end = begin + rows / size + (rank < rows % size ? 1 : 0);
    TENON_ASSIGN_OR_RETURN(Tensor share, result.data.Slice(begin, end).Copy());
    ScaleBy(FactorOf(ranks), &share);
    ctx.set_output(0, std::move(share));
    return OkStatus();
  }
};

class AllGatherKernel final : public RanksKernel {
 public:
  using RanksKernel::RanksKernel;

 private:
  StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator&) const override {
    if (ctx.input(0).rank() == 0) return InvalidArgument("a scalar has no rows to gather");
    return Collective{.kind = Collective::Kind::kAllGather, .data = ctx.TakeInput(0)};
  }
};

class AllToAllKernel final : public RanksKernel {
 public:
  using RanksKernel::RanksKernel;

 private:
  StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator& ranks) const override {
    const Tensor& data = ctx.input(0);
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
                      .data = ctx.TakeInput(0),
                      .rows_to = std::move(rows_to)};
  }
  Status Finish(KernelContext& ctx, CollectiveResult result,
                const Communicator& ranks) const override {
    ctx.set_output(0, std::move(result.data));
    TENON_ASSIGN_OR_RETURN(Tensor* const from, ctx.AllocateOutput(1, {ranks.size()}));
    std::transform(result.rows_from.begin(), result.rows_from.end(), from->data<int32_t>(),
                   [](int64_t rows) { return static_cast<int32_t>(rows); });
    return OkStatus();
  }
};

class BroadcastKernel final : public RanksKernel {
 public:
  explicit BroadcastKernel(KernelConstruction& c)
      : RanksKernel(c), root_(static_cast<int>(c.Attr<int64_t>("root_rank"))) {}

 private:
  StatusOr<Collective> Prepare(KernelContext& ctx, const Communicator&) const override {
    TENON_ASSIGN_OR_RETURN(Tensor data, OwnInput(ctx, 0));
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

const KernelOptions kOnHost = {.memory = kHostMemory};
constexpr char kNeedsRanks[] = "needs ranks; collective_ops_test covers it";

}  // namespace

void RegisterHorovodOps(OpRegistry& ops) {
  ops.Add<AllReduceKernel>("HorovodAllreduce", UnchangedShape, kOnHost)
      .Grad(AllReduceGrad)
      .NoExample(kNeedsRanks);
  ops.Add<AllGatherKernel>("HorovodAllgather", RowsShape, kOnHost)
      .Grad(AllGatherGrad)
      .NoExample(kNeedsRanks);
  ops.Add<AllToAllKernel>("HorovodAlltoall", RowsShape, kOnHost).NoExample(kNeedsRanks);
  ops.Add<BroadcastKernel>("HorovodBroadcast", UnchangedShape, kOnHost)
      .Grad(BroadcastGrad)
      .NoExample(kNeedsRanks);
  ops.Add<ReduceScatterKernel>("HorovodReducescatter", RowsShape, kOnHost).NoExample(kNeedsRanks);
  ops.Add("HorovodRank", NumberKernel<&Communicator::rank>).NoExample(kNeedsRanks);
  ops.Add("HorovodSize", NumberKernel<&Communicator::size>).NoExample(kNeedsRanks);
  ops.Add("HorovodLocalRank", NumberKernel<&Communicator::local_rank>).NoExample(kNeedsRanks);
  ops.Add("HorovodLocalSize", NumberKernel<&Communicator::local_size>).NoExample(kNeedsRanks);
}

}  // namespace tenon
