// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/base/mutex.h"
#include "core/op/op_registry.h"
#include "core/tensor/resource_store.h"
#include "ops/arguments.h"
#include "ops/sparse/sparse_batch.h"

namespace tenon {
namespace {

/// Sparse tensors that are kept until they are taken, by number. Thread-safe.
class SparseTensorsMap final : public Resource {
 public:
  static constexpr std::string_view kKind = "map of sparse tensors";
  std::string_view kind() const override { return kKind; }

  int64_t Add(SparseParts parts) {
    MutexLock lock(mu_);
    kept_.emplace(next_, std::move(parts));
    return next_++;
  }

  /// Takes out these; InvalidArgument, and all stay, when one is not there.
  StatusOr<std::vector<SparseParts>> Take(const IndexVector& handles) {
    MutexLock lock(mu_);
    std::vector<SparseParts> taken;
    for (const int64_t handle : handles) {
      const auto found = kept_.find(handle);
      if (found == kept_.end()) {
        return InvalidArgument("Unable to find SparseTensor: ", handle, " in map");
      }
      taken.push_back(found->second);
    }
    for (const int64_t handle : handles) kept_.erase(handle);
    return taken;
  }

 private:
  mutable Mutex mu_;
  std::map<int64_t, SparseParts> kept_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

/// The name of the map that a node uses.
struct MapName : KernelState {
  explicit MapName(KernelConstruction& c)
      : container(c.Attr<std::string>("container")), name(c.Attr<std::string>("shared_name")) {
    if (name.empty()) name = c.name();
  }
  StatusOr<std::shared_ptr<SparseTensorsMap>> Find(const KernelContext& ctx) const {
    return ctx.resources().LookupOrCreate<SparseTensorsMap>(
        container, name, [] { return std::make_shared<SparseTensorsMap>(); });
  }

  std::string container, name;
};

Status AddKernel(KernelContext& ctx, const MapName& map) {
  TENON_RETURN_IF_ERROR(SparseTensor::Read(ctx));
  TENON_ASSIGN_OR_RETURN(const auto kept, map.Find(ctx));
  return ctx.Return(Tensor::Scalar(kept->Add({ctx.input(0), ctx.input(1), ctx.input(2)})));
}

Status AddManyKernel(KernelContext& ctx, const SparseTensor& in, const MapName& map) {
  TENON_RETURN_IF_ERROR(in.DenseShape());
  TENON_ASSIGN_OR_RETURN(const auto kept, map.Find(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * handles, ctx.CreateOutput(0, {in.rank() > 0 ? in.dims[0] : 0}));
  return ForEachRow(ctx, in, [&](int64_t row, const SparseParts& parts) {
    handles->data<int64_t>()[row] = kept->Add(parts);
    return OkStatus();
  });
}

Status TakeManyKernel(KernelContext& ctx, const MapName& map) {
  TENON_ASSIGN_OR_RETURN(const IndexVector handles, ReadIndices(ctx.input(0), "sparse_handles"));
  TENON_ASSIGN_OR_RETURN(const auto kept, map.Find(ctx));
  TENON_ASSIGN_OR_RETURN(const std::vector<SparseParts> many, kept->Take(handles));
  return WriteTogether(ctx, many, {static_cast<int64_t>(many.size())}, /*taken=*/true);
}

Status AddManyToMapShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape batch, SparseInputShape(c));
  return c.Return(PartialShape{batch.rank() > 0 ? batch.dim(0) : PartialShape::kUnknownDim});
}

}  // namespace

void RegisterSparseTensorsMap(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({2, 2}, {0, 1, 1, 0});
  const Tensor shape = Tensor::Vector<int64_t>({2, 3});
  ops.Add("AddSparseToTensorsMap", AddKernel).Example({indices, Shape{2}, shape});
  ops.Add("AddManySparseToTensorsMap", AddManyToMapShape, AddManyKernel)
      .Example({indices, Shape{2}, shape});
  ops.Add("TakeManySparseFromTensorsMap", TakeManyKernel)
      .NoExample("needs what another op added; sparse_batch_test covers it");
}

}  // namespace tenon
