// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/base/hash_map.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/queues/waiting_resource.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// Tuples by key whose components come one by one; complete ones are taken in the order in which
/// their keys came.
class Barrier final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "barrier";
  static constexpr std::string_view kTypeName = "N10tensorflow7barrier7BarrierE";
  static constexpr bool kNamedByNode = false;

  struct Options {
    explicit Options(KernelConstruction& c)
        : types(c.Attr<DTypeVector>("component_types")),
          shapes(c.Attr<std::vector<PartialShape>>("shapes")) {
      if (shapes.size() != types.size()) {
        c.Fail(InvalidArgument("All of the component shapes must be specified: ", types.size(),
                               " components have ", shapes.size(), " shapes"));
      }
      for (PartialShape& shape : shapes) {
        if (!shape.rank_known()) shape = Shape();  // as TensorFlow has it
        if (!shape.IsFullyKnown() || shape.num_elements() == 0) {
          c.Fail(InvalidArgument("shapes must be fully known and not empty, found ", shape));
        }
      }
      if (const auto capacity = c.Attr<int64_t>("capacity"); capacity != -1) {
        c.Fail(InvalidArgument("Barrier only accepts capacity=-1, found ", capacity));
      }
    }
    DTypeVector types;
    std::vector<PartialShape> shapes;
  };
  struct Item {
    TString key;
    std::vector<Tensor> values;  // those that have not come are invalid
    int64_t index;
    size_t missing;
  };

  Barrier(const Options& options, std::string name) : options_(options), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  Status CheckShared(const Options& wanted) const {
    if (wanted.types == options_.types && wanted.shapes == options_.shapes) return OkStatus();
    const bool same_types = wanted.types == options_.types;
    const std::string_view what = same_types ? "component shapes" : "component types";
    const auto text = [same_types](const Options& o) {
      return same_types ? Join(o.shapes, ", ") : Join(o.types, ", ");
    };
    return InvalidArgument("Shared barrier '", name_, "' has ", what, " ", text(options_),
                           " but requested ", what, " were ", text(wanted));
  }

  const Options& options() const { return options_; }
  int64_t ready_size() const {
    MutexLock lock(mu_);
    return static_cast<int64_t>(ready_.size());
  }
  int64_t incomplete_size() const {
    MutexLock lock(mu_);
    return static_cast<int64_t>(incomplete_.size());
  }

  /// Gives each key its row of `values` as a component.
  Status Insert(const Tensor& keys, const Tensor& values, int64_t component) {
    return Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      const int64_t before = next_index_;
      Status status;
      for (int64_t i = 0; i < keys.num_elements() && status.ok(); ++i) {
        status = InsertOne(keys.data<TString>()[i], values, i, component, before);
      }
      if (keys.num_elements() == 0 && cancelled_) status = IsClosed("nothing");
      return status;
    });
  }
  Status Close(bool cancel) {
    return Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (closed_ && (cancelled_ || !cancel)) {
        return Cancelled("Barrier '", name_, "' is already closed.");
      }
      closed_ = true;
      cancelled_ = cancel;
      if (cancel) incomplete_.clear();
      return OkStatus();
    });
  }
  void Take(int64_t n, bool allow_less, KernelContext& ctx, Kernel::Done done);

 private:
  class TakeOperation;

  Status IsClosed(std::string_view key) const {
    return Cancelled("Barrier '", name_, "' is closed, which ends the insertion of ", key);
  }
  Status InsertOne(const TString& key, const Tensor& values, int64_t row, int64_t component,
                   int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const std::string name(key);
    auto found = incomplete_.find(name);
    if (found == incomplete_.end()) {
      if (closed_) return IsClosed(name);
      const size_t count = options_.types.size();
      Item item{key, std::vector<Tensor>(count), index, count};
      found = incomplete_.emplace(name, std::move(item)).first;
      next_index_ = index + 1;
    }
    Tensor& value = found->second.values[component];
    if (value.valid()) {
      return InvalidArgument("Key ", name, " already has a value for component ", component,
                             " in barrier ", name_);
    }
    TENON_ASSIGN_OR_RETURN(value, values.Slice(row, row + 1).Copy());
    if (--found->second.missing == 0) {
      ready_.emplace(found->second.index, std::move(found->second));
      incomplete_.erase(found);
    }
    return OkStatus();
  }

  const Options options_;
  const std::string name_;
  StringMap<Item> incomplete_ ABSL_GUARDED_BY(mu_);
  std::multimap<int64_t, Item> ready_ ABSL_GUARDED_BY(mu_);  // by index
  int64_t next_index_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::min();
  bool closed_ ABSL_GUARDED_BY(mu_) = false, cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

class Barrier::TakeOperation final : public WaitingOperation {
 public:
  TakeOperation(Barrier& barrier, int64_t n, bool allow_less, KernelContext& ctx)
      : barrier_(barrier), ctx_(ctx), allow_less_(allow_less), wanted_(n) {}
  std::string_view name() const override { return "BarrierTakeMany"; }

  // Under the barrier's lock, which the analysis cannot see.
  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    auto& ready = barrier_.ready_;
    const auto there = static_cast<int64_t>(ready.size());
    if (barrier_.closed_) {
      if (allow_less_) wanted_ = std::min(wanted_, there);
      const int64_t coming = allow_less_ ? 0 : static_cast<int64_t>(barrier_.incomplete_.size());
      if (there + coming < std::max<int64_t>(wanted_, 1)) {
        return OutOfRange("Barrier '", barrier_.name_,
                          "' is closed and has insufficient elements (requested ", wanted_,
                          ", total size ", there + coming, ")");
      }
    }
    if (there < wanted_) return Progress::kNone;
    for (int64_t i = 0; i < wanted_; ++i) taken_.push_back(ready.extract(ready.begin()).mapped());
    return Progress::kDone;
  }

  void TakeBack() override {}

  Status Finish() override {
    TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx_.CreateOutput(0, {wanted_}));
    TENON_ASSIGN_OR_RETURN(Tensor * keys, ctx_.CreateOutput(1, {wanted_}));
    for (int64_t i = 0; i < wanted_; ++i) {
      indices->data<int64_t>()[i] = taken_[i].index;
      keys->data<TString>()[i] = taken_[i].key;
    }
    for (size_t k = 0; k < barrier_.options_.shapes.size(); ++k) {
      const auto dims = barrier_.options_.shapes[k].dims();
      TENON_ASSIGN_OR_RETURN(Tensor * out,
                             ctx_.CreateOutput(static_cast<int>(k) + 2, Concat({wanted_}, dims)));
      const int64_t size = Product(dims);
      for (int64_t i = 0; i < wanted_; ++i)
        CopyElements(taken_[i].values[k], 0, out, i * size, size);
    }
    return OkStatus();
  }

 private:
  Barrier& barrier_;
  KernelContext& ctx_;
  const bool allow_less_;
  int64_t wanted_;
  std::vector<Item> taken_;
};

void Barrier::Take(int64_t n, bool allow_less, KernelContext& ctx, Kernel::Done done) {
  Start(0, std::make_unique<TakeOperation>(*this, n, allow_less, ctx), ctx, std::move(done));
}

Status BarrierInsertKernel(KernelContext& ctx, int64_t component) {
  TENON_ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx));
  const Tensor &keys = ctx.input(1), &values = ctx.input(2);
  const Barrier::Options& options = barrier->options();
  const auto count = static_cast<int64_t>(options.types.size());
  if (component < 0 || component >= count) return NotInRange(component, count, "component_index");
  TENON_RETURN_IF_ERROR(CheckRank(keys, 1, "keys"));
  if (keys.dim(0) > 0 && values.num_elements() == 0) {
    return InvalidArgument("Tensors with no elements are not supported: received shape ",
                           values.shape());
  }
  const PartialShape wanted(Concat({keys.dim(0)}, options.shapes[component].dims()));
  if (values.dtype() != options.types[component] || PartialShape(values.shape()) != wanted) {
    return InvalidArgument("values must be ", options.types[component], " of shape ", wanted,
                           ", found ", values.dtype(), " of shape ", values.shape());
  }
  return barrier->Insert(keys, values, component);
}

class BarrierTakeKernel final : public AsyncKernel {
 public:
  explicit BarrierTakeKernel(KernelConstruction& c)
      : AsyncKernel(c),
        types_(c.Attr<DTypeVector>("component_types")),
        allow_less_(c.Attr<bool>("allow_small_batch")) {
    RefuseTimeout(c);
  }

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const auto barrier = ResourceInput<Barrier>(ctx);
    if (!barrier.ok()) return done(barrier.status());
    if ((*barrier)->options().types != types_) {
      return done(InvalidArgument("the barrier has components of ",
                                  Join((*barrier)->options().types, ", "), ", wanted ",
                                  Join(types_, ", ")));
    }
    const StatusOr<int64_t> n = ReadInteger(ctx.input(1), "num_elements");
    if (!n.ok()) return done(n.status());
    if (*n < 0) return done(InvalidArgument("num_elements is ", *n, ", wanted at least 0"));
    (*barrier)->Take(*n, allow_less_, ctx, std::move(done));
  }

 private:
  const DTypeVector types_;
  const bool allow_less_;
};

Status BarrierCloseKernel(KernelContext& ctx, bool cancel) {
  TENON_ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx));
  return barrier->Close(cancel);
}

template <int64_t (Barrier::*kSize)() const>
Status BarrierSizeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto barrier, ResourceInput<Barrier>(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(((*barrier).*kSize)())));
}

}  // namespace

void RegisterBarrierOps(OpRegistry& ops) {
  const char* const why = "needs a barrier; barrier_ops_test covers it";
  ops.Add<ResourceNodeKernel<Barrier>>("Barrier", ReferenceShape).NoExample(why);
  ops.Add("BarrierInsertMany", NoOutputShape, BarrierInsertKernel, {.attrs = {"component_index"}})
      .NoExample(why);
  ops.Add<BarrierTakeKernel>("BarrierTakeMany", UnknownShape).NoExample(why);
  ops.Add("BarrierClose", NoOutputShape, BarrierCloseKernel, {.attrs = {"cancel_pending_enqueues"}})
      .NoExample(why);
  ops.Add("BarrierReadySize", ScalarShape, BarrierSizeKernel<&Barrier::ready_size>).NoExample(why);
  ops.Add("BarrierIncompleteSize", ScalarShape, BarrierSizeKernel<&Barrier::incomplete_size>)
      .NoExample(why);
}

}  // namespace tenon
