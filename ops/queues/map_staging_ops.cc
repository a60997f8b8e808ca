// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/queues/staging.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// Tuples by key, for those that put and take and find it by name. A tuple may come in parts, and
/// is there when it is complete; it may be taken in parts, and is gone when nothing is left.
class StagingMap final : public StagingStore {
 public:
  static constexpr std::string_view kKind = "staging_map";
  using Tuple = std::vector<std::optional<Tensor>>;
  using Tuples = std::map<int64_t, Tuple>;

  using StagingStore::StagingStore;
  std::string_view kind() const override { return kKind; }

  int64_t incomplete_size() const {
    MutexLock lock(mu_);
    return static_cast<int64_t>(incomplete_.size());
  }

  // For waiting operations.

  Status Put(int64_t key, const DimVector& indices, std::vector<Tensor> values, int64_t size,
             int64_t bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (complete_.contains(key)) return InvalidArgument("key ", key, " is in the map already");
    Tuple& tuple = incomplete_.try_emplace(key, size).first->second;
    if (static_cast<int64_t>(tuple.size()) != size) {
      return InvalidArgument("the tuple of key ", key, " has ", tuple.size(), " tensors, not ",
                             size);
    }
    for (const int64_t i : indices) {
      if (!tuple[i].has_value()) continue;
      return InvalidArgument("The tensor for index '", i, "' for key '", key,
                             "' was already initialized");
    }
    for (size_t i = 0; i < indices.size(); ++i) tuple[indices[i]] = std::move(values[i]);
    AddBytes(bytes);
    for (const auto& t : tuple) {
      if (!t.has_value()) return OkStatus();
    }
    complete_.insert(incomplete_.extract(key));
    return OkStatus();
  }
  Tuples& complete() ABSL_NO_THREAD_SAFETY_ANALYSIS { return complete_; }
  void Freed(int64_t bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS { AddBytes(-bytes); }

 protected:
  /// The number of tuples that are complete.
  int64_t NumElements() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return static_cast<int64_t>(complete_.size());
  }
  void ClearElements() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    complete_.clear();
    incomplete_.clear();
  }
  /// Each waits for its own key.
  bool IsInOrder(int line) const override { return line == kPuts; }

 private:
  Tuples complete_ ABSL_GUARDED_BY(mu_), incomplete_ ABSL_GUARDED_BY(mu_);
};

class PutItemOperation final : public WaitingOperation {
 public:
  PutItemOperation(StagingMap& map, int64_t key, DimVector indices, std::vector<Tensor> values,
                   int64_t size)
      : map_(map),
        key_(key),
        indices_(std::move(indices)),
        values_(std::move(values)),
        size_(size) {
    for (const Tensor& t : values_) bytes_ += static_cast<int64_t>(t.num_bytes());
  }
  std::string_view name() const override { return "MapStage"; }

  StatusOr<Progress> Attempt() override {
    TENON_ASSIGN_OR_RETURN(const bool has_room, map_.HasRoomFor(bytes_));
    if (!has_room) return Progress::kNone;
    TENON_RETURN_IF_ERROR(map_.Put(key_, indices_, std::move(values_), size_, bytes_));
    return Progress::kDone;
  }

 private:
  StagingMap& map_;
  const int64_t key_;
  const DimVector indices_;
  std::vector<Tensor> values_;
  const int64_t size_;
  int64_t bytes_ = 0;
};

/// Gives the tensors of a tuple that indices name, and with `take` removes them. Without a key it
/// is the tuple of the least key, which is then the first output.
class GetItemOperation final : public WaitingOperation {
 public:
  GetItemOperation(StagingMap& map, std::optional<int64_t> key, DimVector indices, bool take,
                   KernelContext& ctx)
      : map_(map), key_(key), indices_(std::move(indices)), take_(take), ctx_(ctx) {}
  std::string_view name() const override { return take_ ? "MapUnstage" : "MapPeek"; }

  StatusOr<Progress> Attempt() override {
    StagingMap::Tuples& tuples = map_.complete();
    const auto found = key_ ? tuples.find(*key_) : tuples.begin();
    if (found == tuples.end()) return Progress::kNone;
    StagingMap::Tuple& tuple = found->second;
    const int first = key_ ? 0 : 1;
    TENON_RETURN_IF_ERROR(Check(found->first, tuple, first));
    if (!key_) ctx_.set_output(0, Tensor::Scalar(found->first));
    for (size_t i = 0; i < indices_.size(); ++i) {
      std::optional<Tensor>& t = tuple[indices_[i]];
      ctx_.set_output(first + static_cast<int>(i), *t);
      if (!take_) continue;
      map_.Freed(static_cast<int64_t>(t->num_bytes()));
      t.reset();
    }
    if (std::none_of(tuple.begin(), tuple.end(), [](const auto& t) { return t.has_value(); })) {
      tuples.erase(found);
    }
    return Progress::kDone;
  }

 private:
  Status Check(int64_t key, const StagingMap::Tuple& tuple, int first) const {
    for (size_t i = 0; i < indices_.size(); ++i) {
      const int64_t index = indices_[i];
      if (index < 0 || index >= static_cast<int64_t>(tuple.size())) {
        return NotInRange(index, static_cast<int64_t>(tuple.size()), "indices[", i, "]");
      }
      if (!tuple[index].has_value()) {
        return InvalidArgument("Tensor at index '", index, "' for key '", key,
                               "' has already been removed.");
      }
      const DType wanted = ctx_.output_type(first + static_cast<int>(i));
      if (tuple[index]->dtype() != wanted) {
        return InvalidArgument("tensor ", index, " is ", tuple[index]->dtype(), ", wanted ",
                               wanted);
      }
    }
    return OkStatus();
  }

  StagingMap& map_;
  const std::optional<int64_t> key_;
  const DimVector indices_;
  const bool take_;
  KernelContext& ctx_;
};

StatusOr<int64_t> KeyInput(const KernelContext& ctx) {
  if (ctx.input(0).rank() == 0) return ReadInteger(ctx.input(0), "key");
  return InvalidArgument("key must be an int64 scalar, found shape ", ctx.input(0).shape());
}

Status CheckOrder(absl::Span<const int64_t> indices) {
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] > indices[i - 1]) continue;
    return InvalidArgument("Indices are not strictly ordered: indices[", i, "] is ", indices[i],
                           ", the one before ", indices[i - 1]);
  }
  return OkStatus();
}

struct MapName : StoreName<StagingMap> {
  explicit MapName(KernelConstruction& c)
      : StoreName(c), size(static_cast<int64_t>(c.Attr<DTypeVector>("dtypes").size())) {}

  /// The tensors of a tuple.
  int64_t size;
};

class MapStageKernel final : public AsyncKernel {
 public:
  explicit MapStageKernel(KernelConstruction& c) : AsyncKernel(c), map_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const auto map = map_.Find(ctx);
    if (!map.ok()) return done(map.status());
    auto operation = Make(ctx, **map);
    if (!operation.ok()) return done(operation.status());
    (*map)->Start(StagingMap::kPuts, *std::move(operation), ctx, std::move(done));
  }

 private:
  StatusOr<std::unique_ptr<WaitingOperation>> Make(KernelContext& ctx, StagingMap& map) const {
    TENON_ASSIGN_OR_RETURN(const int64_t key, KeyInput(ctx));
    TENON_ASSIGN_OR_RETURN(DimVector indices,
                           ReadIntegerVector(ctx.input(1), "indices", ctx.num_inputs() - 2));
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= map_.size) {
        return NotInRange(indices[i], map_.size, "indices[", i, "]");
      }
    }
    TENON_RETURN_IF_ERROR(CheckOrder(indices));
    std::vector<Tensor> values;
    for (int i = 2; i < ctx.num_inputs(); ++i) values.push_back(ctx.TakeInput(i));
    return std::make_unique<PutItemOperation>(map, key, std::move(indices), std::move(values),
                                              map_.size);
  }

  const MapName map_;
};

/// MapUnstage, MapPeek, and MapUnstageNoKey, which has no key as input.
class MapGetKernel final : public AsyncKernel {
 public:
  explicit MapGetKernel(KernelConstruction& c)
      : AsyncKernel(c), map_(c), take_(!c.op().ends_with("Peek")) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const auto map = map_.Find(ctx);
    if (!map.ok()) return done(map.status());
    auto operation = Make(ctx, **map);
    if (!operation.ok()) return done(operation.status());
    (*map)->Start(take_ ? StagingMap::kTakes : StagingMap::kPeeks, *std::move(operation), ctx,
                  std::move(done));
  }

 private:
  StatusOr<std::unique_ptr<WaitingOperation>> Make(KernelContext& ctx, StagingMap& map) const {
    std::optional<int64_t> key;
    const int keys = ctx.num_inputs() - 1;
    if (keys > 0) {
      TENON_ASSIGN_OR_RETURN(key, KeyInput(ctx));
    }
    TENON_ASSIGN_OR_RETURN(DimVector indices, ReadIntegerVector(ctx.input(keys), "indices",
                                                                ctx.num_outputs() - 1 + keys));
    TENON_RETURN_IF_ERROR(CheckOrder(indices));
    return std::make_unique<GetItemOperation>(map, key, std::move(indices), take_, ctx);
  }

  const MapName map_;
  const bool take_;
};

}  // namespace

void RegisterMapStagingOps(OpRegistry& ops) {
  // A map is in the order of its keys, whichever of the two it is.
  for (const char* prefix : {"", "Ordered"}) {
    const auto get = [&](std::string_view name, ShapeFn shape) {
      return ops.Get(StrCat(prefix, name))
          .Shape(shape)
          .NoExample("needs a staging map; map_staging_ops_test covers it");
    };
    get("MapStage", NoOutputShape).Kernel<MapStageKernel>(kCpu);
    for (const char* name : {"MapUnstage", "MapUnstageNoKey", "MapPeek"}) {
      get(name, UnknownShape).Kernel<MapGetKernel>(kCpu);
    }
    get("MapSize", ScalarShape).Kernel(kCpu, StoreSizeKernel<StagingMap, &StagingMap::size>);
    get("MapIncompleteSize", ScalarShape)
        .Kernel(kCpu, StoreSizeKernel<StagingMap, &StagingMap::incomplete_size>);
    get("MapClear", NoOutputShape).Kernel(kCpu, ClearStoreKernel<StagingMap>);
  }
}

}  // namespace tenon
