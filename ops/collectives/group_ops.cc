// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/strings.h"
#include "core/device/device_groups.h"
#include "core/op/bound_arguments.h"
#include "core/op/op_registry.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// A device's place in a group, for the third version of ops: the first op that uses it in a step
/// is instance 0, and so on.
class GroupCommunicator final : public Resource {
 public:
  static constexpr std::string_view kKind = "communicator";

  GroupCommunicator(int32_t group, int32_t rank, int32_t size, float timeout_seconds)
      : group(group), rank(rank), size(size), timeout_seconds(timeout_seconds) {}
  std::string_view kind() const override { return kKind; }
  int32_t NextInstance() { return next_instance_.fetch_add(1); }

  const int32_t group, rank, size;
  const float timeout_seconds;

 private:
  std::atomic<int32_t> next_instance_{0};
};

std::chrono::milliseconds LimitOf(float timeout_seconds) {
  if (!(timeout_seconds > 0)) return std::chrono::minutes(5);
  return std::chrono::milliseconds(static_cast<int64_t>(std::min(timeout_seconds, 1e9f) * 1000));
}

/// Numbers of the group and of the instance, which the first version of an op has as attributes,
/// the second one as inputs, and the third one in a communicator.
class GroupKernel : public AsyncKernel {
 public:
  explicit GroupKernel(KernelConstruction& c)
      : AsyncKernel(c),
        has_attributes_(c.attrs().Find("group_key") != nullptr),
        timeout_seconds_(c.Attr<float>("timeout_seconds")) {
    if (has_attributes_) {
      size_ = c.Attr<int64_t>("group_size");
      group_ = c.Attr<int64_t>("group_key");
      instance_ = c.Attr<int64_t>("instance_key");
    }
  }

  void ComputeAsync(KernelContext& ctx, Done done) const final {
    DeviceGroups* const groups = ctx.run().groups;
    if (groups == nullptr) {
      return done(FailedPrecondition(
          "collectives among devices run in the steps of sessions, and this is another run"));
    }
    StatusOr<GroupPart> part = Prepare(ctx);
    if (!part.ok()) return done(part.status());
    part->device = ctx.device().name();
    part->what.name = name();
    part->what.allocate = [&ctx, type = part->what.data.dtype()](const Shape& shape) {
      return ctx.AllocateTemp(type, shape);
    };
    Cancellation* const cancellation = ctx.run().cancellation;
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
    part->cancellation = cancellation;
    if (cancellation != nullptr) {
      token = cancellation->Register(
          [groups, group = part->group](const Status& why) { groups->Abort(group, why); });
      if (token == Cancellation::kAlreadyCancelled) return done(cancellation->status());
    }
    groups->Start(*std::move(part), [&ctx, cancellation, token,
                                     done = std::move(done)](StatusOr<CollectiveResult> result) {
      if (cancellation != nullptr) cancellation->Deregister(token);
      done(result.ok() ? ctx.Return(std::move(result->data)) : result.status());
    });
  }

 protected:
  /// The part, but for what all kernels say of theirs.
  virtual StatusOr<GroupPart> Prepare(KernelContext& ctx) const = 0;

  /// `first`: the input that has group_size, of an op whose second version this is.
  StatusOr<GroupPart> PartOf(KernelContext& ctx, int first) const {
    int64_t size = size_, group = group_, instance = instance_;
    if (!has_attributes_) {
      TENON_ASSIGN_OR_RETURN(size, ReadOnlyInteger(ctx.input(first), "group_size"));
      TENON_ASSIGN_OR_RETURN(group, ReadOnlyInteger(ctx.input(first + 1), "group_key"));
      TENON_ASSIGN_OR_RETURN(instance, ReadOnlyInteger(ctx.input(first + 2), "instance_key"));
    }
    GroupPart part;
    part.size = static_cast<int32_t>(size);
    part.group = static_cast<int32_t>(group);
    part.instance = static_cast<int32_t>(instance);
    part.limit = LimitOf(timeout_seconds_);
    return part;
  }

  /// The part of an op of the third version.
  StatusOr<GroupPart> PartOfCommunicator(KernelContext& ctx) const {
    TENON_ASSIGN_OR_RETURN(const auto communicator, ResourceInput<GroupCommunicator>(ctx, 1));
    const int64_t assigned = ctx.input(2).num_elements();
    const bool is_one_row = ctx.input(2).rank() == 2 && ctx.input(2).dim(0) == 1;
    if (assigned != 0 && (assigned != communicator->size || !is_one_row)) {
      return Unimplemented("group_assignment of shape ", ctx.input(2).shape(),
                           ": wanted no element, or one row of ", communicator->size,
                           ", all members of the communicator");
    }
    GroupPart part;
    part.size = communicator->size;
    part.group = communicator->group;
    part.rank = communicator->rank;
    part.instance = communicator->NextInstance();
    part.limit = LimitOf(timeout_seconds_ > 0 ? timeout_seconds_ : communicator->timeout_seconds);
    return part;
  }

 private:
  const bool has_attributes_;
  const float timeout_seconds_;
  int64_t size_ = 1, group_ = 0, instance_ = 0;
};

Reduction ReductionBy(const std::string& merge) {
  if (merge == "Min") return Reduction::kMin;
  if (merge == "Max") return Reduction::kMax;
  return merge == "Mul" ? Reduction::kProduct : Reduction::kSum;
}

/// The shape of the first version's attribute, which has to be that of `t`.
Status CheckDeclared(const PartialShape& declared, const Shape& found) {
  if (declared.IsCompatibleWith(found)) return OkStatus();
  return InvalidArgument("the attribute shape says ", declared.ToString(), ", found ",
                         found.ToString());
}

Status CheckShares(const GroupPart& part) {
  const Tensor& data = part.what.data;
  if (data.rank() == 0) return InvalidArgument("a scalar has no rows to deal");
  if (part.size < 1 || data.dim(0) % part.size == 0) return OkStatus();
  return InvalidArgument(data.dim(0), " rows cannot be dealt to ", part.size,
                         " devices in equal shares");
}

class GroupReduceKernel final : public GroupKernel {
 public:
  explicit GroupReduceKernel(KernelConstruction& c)
      : GroupKernel(c),
        is_third_(c.op() == "CollectiveReduceV3"),
        reduction_(ReductionBy(c.Attr<std::string>(is_third_ ? "reduction" : "merge_op"))),
        divides_(!is_third_ && c.Attr<std::string>("final_op") == "Div"),
        scatters_(c.op() == "CollectiveReduceScatterV2") {}

 private:
  StatusOr<GroupPart> Prepare(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(GroupPart part, is_third_ ? PartOfCommunicator(ctx) : PartOf(ctx, 1));
    part.what.kind = Collective::Kind::kAllReduce;
    part.what.reduction = reduction_;
    part.what.data = ctx.input(0);
    part.divides = divides_;
    part.scatters = scatters_;
    if (scatters_) TENON_RETURN_IF_ERROR(CheckShares(part));
    return part;
  }

  const bool is_third_;
  const Reduction reduction_;
  const bool divides_, scatters_;
};

class GroupGatherKernel final : public GroupKernel {
 public:
  using GroupKernel::GroupKernel;

 private:
  StatusOr<GroupPart> Prepare(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(GroupPart part, PartOf(ctx, 1));
    part.what.kind = Collective::Kind::kAllGather;
    part.what.data = ctx.input(0);
    if (part.what.data.rank() == 0) return InvalidArgument("a scalar has no rows to gather");
    return part;
  }
};

class GroupAllToAllKernel final : public GroupKernel {
 public:
  explicit GroupAllToAllKernel(KernelConstruction& c)
      : GroupKernel(c), is_third_(c.op() == "CollectiveAllToAllV3") {}

 private:
  StatusOr<GroupPart> Prepare(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(GroupPart part, is_third_ ? PartOfCommunicator(ctx) : PartOf(ctx, 1));
    part.what.kind = Collective::Kind::kAllToAll;
    part.what.data = ctx.input(0);
    TENON_RETURN_IF_ERROR(CheckShares(part));
    return part;
  }

  const bool is_third_;
};

class GroupSendKernel final : public GroupKernel {
 public:
  explicit GroupSendKernel(KernelConstruction& c) : GroupKernel(c) {
    if (c.op() == "CollectiveBcastSend") shape_ = c.Attr<PartialShape>("shape");
  }

 private:
  StatusOr<GroupPart> Prepare(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(GroupPart part, PartOf(ctx, 1));
    part.what.kind = Collective::Kind::kBroadcast;
    part.what.data = ctx.input(0);
    // A variable that changes afterwards changes nothing of what the others get.
    part.what.data.Settle();
    part.is_source = true;
    if (shape_) TENON_RETURN_IF_ERROR(CheckDeclared(*shape_, part.what.data.shape()));
    return part;
  }

  std::optional<PartialShape> shape_;
};

class GroupReceiveKernel final : public GroupKernel {
 public:
  explicit GroupReceiveKernel(KernelConstruction& c) : GroupKernel(c), dtype_(c.Attr<DType>("T")) {
    if (c.op() != "CollectiveBcastRecv") return;
    const auto shape = c.Attr<PartialShape>("shape");
    if (!shape.IsFullyKnown()) {
      c.Fail(InvalidArgument("the attribute shape must be known, found ", shape.ToString()));
    } else {
      shape_ = shape.ToShape();
    }
  }

 private:
  StatusOr<GroupPart> Prepare(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(GroupPart part, PartOf(ctx, 0));
    part.what.kind = Collective::Kind::kBroadcast;
    Shape shape;
    if (shape_) {
      shape = *shape_;
    } else {
      TENON_ASSIGN_OR_RETURN(shape, ReadShape(ctx.input(3), "shape"));
    }
    part.what.data = Tensor(dtype_, shape, BufferRef());
    return part;
  }

  const DType dtype_;
  std::optional<Shape> shape_;
};

/// A kernel's own, so that all members count from 0 in each step.
class CommunicatorKernel final : public Kernel {
 public:
  explicit CommunicatorKernel(KernelConstruction& c)
      : Kernel(c), timeout_seconds_(c.Attr<float>("timeout_seconds")) {}

  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const int64_t group, ReadOnlyInteger(ctx.input(0), "group_key"));
    TENON_ASSIGN_OR_RETURN(const int64_t rank, ReadOnlyInteger(ctx.input(1), "rank"));
    TENON_ASSIGN_OR_RETURN(const int64_t size, ReadOnlyInteger(ctx.input(2), "group_size"));
    if (rank < 0 || rank >= size) {
      return InvalidArgument("rank ", rank, " is not one of the ", size, " of group ", group,
                             ", which count from 0");
    }
    ResourceHandle handle;
    handle.device = ctx.device().name();
    handle.container = "collective_op_group";
    handle.name = StrCat(group, ":", rank);
    handle.resource =
        std::make_shared<GroupCommunicator>(static_cast<int32_t>(group), static_cast<int32_t>(rank),
                                            static_cast<int32_t>(size), timeout_seconds_);
    return ctx.Return(Tensor::Scalar(handle));
  }

 private:
  const float timeout_seconds_;
};

Status AssignGroupKernel(KernelContext& ctx) {
  const Tensor& groups = ctx.input(0);
  if (groups.rank() != 2) {
    return InvalidArgument("group_assignment must be a matrix, found shape ", groups.shape());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t device, ReadOnlyInteger(ctx.input(1), "device_index"));
  TENON_ASSIGN_OR_RETURN(const int64_t base, ReadOnlyInteger(ctx.input(2), "base_key"));
  const auto numbers = groups.flat<int32_t>();
  const auto found = std::find(numbers.begin(), numbers.end(), device);
  if (found == numbers.end()) {
    return InvalidArgument("device_index ", device, " is not found in group_assignment");
  }
  const int64_t row = (found - numbers.begin()) / groups.dim(1);
  ctx.set_output(0, Tensor::Scalar<int32_t>(static_cast<int32_t>(groups.dim(1))));
  ctx.set_output(1, Tensor::Scalar<int32_t>(static_cast<int32_t>(base + row)));
  return OkStatus();
}

Status ShapeOfAttr(ShapeContext& c) { return c.Return(c.Attr<PartialShape>("shape")); }

Status ShapeOfInput(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.ConstantShape(3));
  return c.Return(shape);
}

Status DealtShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 1));
  c.set_output(0, input.WithDim(0, PartialShape::kUnknownDim));
  return OkStatus();
}

const KernelOptions kMeetOnHost = {.memory = kHostMemory};
constexpr char kNeedsGroup[] = "needs a group; group_ops_test covers it";

}  // namespace

void RegisterGroupOps(OpRegistry& ops) {
  for (const char* op : {"CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceV3"}) {
    ops.Add<GroupReduceKernel>(op, UnchangedShape, kMeetOnHost).NoExample(kNeedsGroup);
  }
  ops.Add<GroupReduceKernel>("CollectiveReduceScatterV2", DealtShape, kMeetOnHost)
      .NoExample(kNeedsGroup);
  ops.Add<GroupGatherKernel>("CollectiveGather", DealtShape, kMeetOnHost).NoExample(kNeedsGroup);
  ops.Add<GroupGatherKernel>("CollectiveGatherV2", DealtShape, kMeetOnHost).NoExample(kNeedsGroup);
  for (const char* op : {"CollectiveAllToAllV2", "CollectiveAllToAllV3"}) {
    ops.Add<GroupAllToAllKernel>(op, UnchangedShape, kMeetOnHost).NoExample(kNeedsGroup);
  }
  ops.Add<CommunicatorKernel>("CollectiveInitializeCommunicator", DeclaredShape)
      .Example({Tensor::Scalar(1), Tensor::Scalar(0), Tensor::Scalar(2)});
  ops.Add<GroupSendKernel>("CollectiveBcastSend", ShapeOfAttr, kMeetOnHost).NoExample(kNeedsGroup);
  ops.Add<GroupSendKernel>("CollectiveBcastSendV2", UnchangedShape, kMeetOnHost)
      .NoExample(kNeedsGroup);
  ops.Add<GroupReceiveKernel>("CollectiveBcastRecv", ShapeOfAttr, kMeetOnHost)
      .NoExample(kNeedsGroup);
  ops.Add<GroupReceiveKernel>("CollectiveBcastRecvV2", ShapeOfInput, kMeetOnHost)
      .NoExample(kNeedsGroup);
  ops.Add("CollectiveAssignGroupV2", AssignGroupKernel)
      .Example({Tensor::Vector<int32_t>({0, 1}).Reshaped({1, 2}).value(), Tensor::Scalar(1),
                Tensor::Scalar(7)});
}

}  // namespace tenon
